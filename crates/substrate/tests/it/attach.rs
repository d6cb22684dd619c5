//! Opening what is there: every wrong file is refused by name, found and wanted.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;

use bumpless_substrate::region::{Access, PREAMBLE_LEN, PathState, Region, RegionError};

use crate::peer;
use crate::scene::{CAPACITY, STALE_BOOT_ID, Scene, TABLE, fill, make_stale, overwrite};

/// Both ways of opening refuse the file with the same error, which names the path and both texts.
fn refused(scene: &Scene, names: [&str; 2]) -> RegionError {
    let path = scene.path();
    let attached = Region::attach(&path, &TABLE).unwrap_err();
    assert_eq!(Region::observe(&path, &TABLE).unwrap_err(), attached);
    let created = Region::create(&path, &TABLE, CAPACITY, Access::Private, fill).unwrap_err();
    assert_eq!(created, attached, "create leaves alone what it cannot use");
    let text = attached.to_string();
    for wanted in [path.to_str().unwrap(), names[0], names[1]] {
        assert!(text.contains(wanted), "{text:?} does not say {wanted:?}");
    }
    attached
}

#[test]
fn a_missing_file_is_refused() {
    let scene = Scene::new();
    let path = scene.path();
    let wanted = RegionError::NotFound { path: path.clone() };
    assert_eq!(Region::attach(&path, &TABLE).unwrap_err(), wanted);
    assert_eq!(Region::observe(&path, &TABLE).unwrap_err(), wanted);
    assert_eq!(scene.names(), [""; 0], "looking makes no file");
}

#[test]
fn a_path_without_a_file_name_is_refused() {
    for path in ["/", "..", "a/.."] {
        let error = Region::attach(path.as_ref(), &TABLE).unwrap_err();
        assert!(
            matches!(error, RegionError::NoFileName { .. }),
            "{path}: {error}"
        );
    }
    let error = Region::attach("/no/such/folder/table".as_ref(), &TABLE).unwrap_err();
    assert!(error.to_string().contains("/no/such/folder"), "{error}");
}

#[test]
fn an_empty_file_is_refused_with_both_lengths() {
    let scene = Scene::new();
    std::fs::write(scene.path(), b"").unwrap();
    let error = refused(&scene, ["0 B", "64 B"]);
    assert!(matches!(
        error,
        RegionError::Length {
            found: 0,
            wanted: PREAMBLE_LEN,
            ..
        }
    ));
}

#[test]
fn a_file_short_or_long_by_one_byte_is_refused_with_both_lengths() {
    for len in [4159, 4161] {
        let scene = Scene::new().with_region();
        std::fs::File::options()
            .write(true)
            .open(scene.path())
            .unwrap()
            .set_len(len)
            .unwrap();
        let error = refused(&scene, [&format!("{len} B"), "4160 B"]);
        assert!(matches!(error, RegionError::Length { wanted: 4160, .. }));
    }
}

#[test]
fn each_wrong_field_of_the_preamble_is_refused_by_name() {
    let fields: [(u64, &[u8], [&str; 2]); 9] = [
        (0, b"BUMPLESs", ["magic 0x73", "wanted 0x53"]),
        (8, b"TABL", ["kind \"TABL\"", "wanted \"TEST\""]),
        (12, &4_u32.to_ne_bytes(), ["version 4", "wanted 3"]),
        (
            16,
            &0x0403_0201_u32.to_ne_bytes(),
            ["mark 0x04030201", "wanted 0x01020304"],
        ),
        (
            20,
            &128_u32.to_ne_bytes(),
            ["records of 128 B", "wanted 64 B"],
        ),
        (24, &0_u32.to_ne_bytes(), ["capacity 0", "1 to 64"]),
        (24, &65_u32.to_ne_bytes(), ["capacity 65", "1 to 64"]),
        (28, &0_u32.to_ne_bytes(), ["ready word 0", "wanted 1"]),
        (
            32,
            &(1_u64 << 58).to_ne_bytes(),
            ["288230376151711744 B", "wanted 4160 B"],
        ),
    ];
    for (at, bytes, names) in fields {
        let scene = Scene::new().with_region();
        overwrite(&scene.path(), at, bytes);
        refused(&scene, names);
        let word_there =
            std::fs::read(scene.path()).unwrap()[at as usize..][..bytes.len()].to_vec();
        assert_eq!(word_there, bytes, "the refused file is untouched");
    }
}

#[test]
fn a_file_of_another_boot_is_refused_with_both_ids() {
    let scene = Scene::new().with_region();
    make_stale(&scene.path());
    let wanted = bumpless_substrate::identity::boot_id().unwrap();
    let error = RegionError::StaleBoot {
        path: scene.path(),
        found: STALE_BOOT_ID,
        wanted,
    };
    assert_eq!(Region::attach(&scene.path(), &TABLE).unwrap_err(), error);
    assert_eq!(Region::observe(&scene.path(), &TABLE).unwrap_err(), error);
    assert!(error.to_string().contains("b0b0b0b0b0b0b0b0"), "{error}");
    let old = Region::observe_of_any_boot(&scene.path(), &TABLE).unwrap();
    assert_eq!((old.boot_id(), old.is_read_only()), (STALE_BOOT_ID, true));
}

#[test]
fn what_is_no_regular_file_is_refused_by_kind_and_never_waited_for() {
    type Make = fn(&std::path::Path);
    let kinds: [(&str, Make); 5] = [
        ("directory", |path| std::fs::create_dir(path).unwrap()),
        ("FIFO", |path| {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, kind, mode, 0).unwrap();
        }),
        ("socket", |path| {
            drop(std::os::unix::net::UnixListener::bind(path).unwrap())
        }),
        ("symlink", |path| {
            let target = path.with_file_name("target");
            drop(crate::scene::create(&target).unwrap());
            std::os::unix::fs::symlink(target, path).unwrap();
        }),
        ("symlink", |path| {
            std::os::unix::fs::symlink("nowhere", path).unwrap()
        }),
    ];
    for (name, make) in kinds {
        let scene = Scene::new();
        make(&scene.path());
        refused(&scene, [name, "regular file"]);
        for error in [
            Region::reset(&scene.path(), &TABLE, 4, Access::Private, fill, |_, _| ()).unwrap_err(),
            Region::remove(&scene.path()).unwrap_err(),
        ] {
            assert!(
                matches!(error, RegionError::NotRegular { .. }),
                "{name}: {error}"
            );
        }
    }
}

#[test]
fn a_deleted_lock_file_is_told_and_reset_makes_it_anew() {
    let scene = Scene::new().with_region();
    std::fs::remove_file(scene.folder().join("table.lock")).unwrap();
    let error = Region::attach(&scene.path(), &TABLE).unwrap_err();
    assert_eq!(
        error,
        RegionError::LockFileMissing {
            path: scene.folder().join("table.lock")
        }
    );
    Region::observe(&scene.path(), &TABLE).unwrap();
    Region::reset(
        &scene.path(),
        &TABLE,
        CAPACITY,
        Access::Private,
        fill,
        |_, _| (),
    )
    .unwrap();
    Region::attach(&scene.path(), &TABLE).unwrap();
}

#[test]
fn a_lock_file_that_is_a_symlink_or_writable_for_all_is_refused() {
    let scene = Scene::new().with_region();
    let lock = scene.folder().join("table.lock");
    std::fs::set_permissions(&lock, PermissionsExt::from_mode(0o602)).unwrap();
    let error = Region::attach(&scene.path(), &TABLE).unwrap_err();
    assert!(
        matches!(error, RegionError::Untrusted { mode: 0o602, .. }),
        "{error}"
    );

    let elsewhere = scene.folder().join("elsewhere");
    std::fs::rename(&lock, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &lock).unwrap();
    let error = Region::attach(&scene.path(), &TABLE).unwrap_err();
    assert_eq!(
        error,
        RegionError::NotRegular {
            path: lock,
            found: "symlink"
        }
    );
}

#[test]
fn relative_paths_are_made_absolute_when_opened() {
    if peer::plays("relative") {
        let (region, _) = crate::scene::create("table".as_ref()).unwrap();
        std::env::set_current_dir("/").unwrap();
        peer::say(format!(
            "{} {:?}",
            region.path().display(),
            region.path_state().unwrap()
        ));
        peer::done();
    }
    let scene = Scene::new();
    let mut command = peer::command(
        relative_paths_are_made_absolute_when_opened,
        "relative",
        &[],
    );
    let mut peer = peer::Peer::spawn(command.current_dir(scene.folder()));
    assert_eq!(peer.hear(), format!("{} Current", scene.path().display()));
}

#[test]
fn a_name_of_any_bytes_is_a_name() {
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new();
    let path = scene.folder().join(OsStr::from_bytes(b"t\xff\n *"));
    let (region, _) = crate::scene::create(&path).unwrap();
    assert_eq!(region.path_state().unwrap(), PathState::Current);
    drop(Region::attach(&path, &TABLE).unwrap());
    drop(region);
    Region::remove(&path).unwrap();
    assert_eq!(scene.names(), [""; 0]);
}
