//! Other users: what they may not do, what they may, and what root must not fall for.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;

use bumpless_substrate::region::{Access, Region, RegionError};
use bumpless_substrate::sync::Ordering;

use crate::peer::{self, Peer};
use crate::scene::{CAPACITY, FILES, FILLED, Scene, TABLE, create, fill, needs_root, words};

const NOBODY: u32 = 65_534;

/// A folder that everybody may enter, with a region of root's.
fn open_scene(access: Access) -> Scene {
    let scene = Scene::new();
    std::fs::set_permissions(scene.folder(), PermissionsExt::from_mode(0o755)).unwrap();
    Region::create(&scene.path(), &TABLE, CAPACITY, access, fill).unwrap();
    scene
}

/// What the calls say when made by `nobody`: attach, observe, create, remove.
fn as_nobody<F: Fn()>(test: F, path: &Path) -> [String; 4] {
    let mut command = peer::command(test, "nobody", &[("path", path.as_os_str())]);
    command.uid(NOBODY).gid(NOBODY);
    let mut nobody = Peer::spawn(&mut command);
    [nobody.hear(), nobody.hear(), nobody.hear(), nobody.hear()]
}

fn play_nobody() -> ! {
    let path = peer::argument("path");
    let path: &Path = path.as_ref();
    let say = |result: Result<Region, RegionError>| match result {
        Ok(region) => {
            let whole = words(&region)
                .iter()
                .all(|w| w.load(Ordering::Relaxed) == FILLED);
            peer::say(format!("ok {whole}"));
        }
        Err(e) => peer::say(e),
    };
    say(Region::attach(path, &TABLE));
    say(Region::observe(path, &TABLE));
    say(create(path).map(|(region, _)| region));
    peer::say(Region::remove(path).map_or_else(|e| e.to_string(), |()| "removed".to_owned()));
    peer::done()
}

#[test]
fn another_user_is_refused_with_the_mode_that_is_in_the_way() {
    if peer::plays("nobody") {
        play_nobody();
    }
    if !needs_root("become another user") {
        return;
    }
    let test = another_user_is_refused_with_the_mode_that_is_in_the_way;
    let scene = open_scene(Access::Private);
    let answers = as_nobody(test, &scene.path());
    for answer in &answers {
        assert!(answer.contains(scene.path().to_str().unwrap()), "{answer}");
        assert!(answer.contains("has mode 0600 and"), "{answer}");
        assert!(answer.contains("owner uid 0, we are uid 65534"), "{answer}");
    }

    std::fs::set_permissions(scene.folder(), PermissionsExt::from_mode(0o700)).unwrap();
    for answer in as_nobody(test, &scene.path()) {
        let folder = scene.folder().display();
        assert!(
            answer.contains(&format!("{folder} has mode 0700")),
            "{answer}"
        );
    }
    assert_eq!(scene.names(), FILES);
}

#[test]
fn another_user_may_observe_what_is_readable_for_others_and_do_no_more() {
    if peer::plays("nobody") {
        play_nobody();
    }
    if !needs_root("become another user") {
        return;
    }
    let scene = open_scene(Access::ReadForOthers);
    let [attach, observe, create, remove] = as_nobody(
        another_user_may_observe_what_is_readable_for_others_and_do_no_more,
        &scene.path(),
    );
    assert_eq!(observe, "ok true");
    for answer in [attach, create, remove] {
        assert!(answer.contains("has mode 06"), "{answer}");
    }
    let lock = std::fs::metadata(scene.folder().join("table.lock")).unwrap();
    assert_eq!(
        lock.permissions().mode() & 0o777,
        0o600,
        "reading gives no power over locks"
    );
}

#[test]
fn a_member_of_the_group_may_attach_to_a_group_s_region() {
    if peer::plays("nobody") {
        play_nobody();
    }
    if !needs_root("become another user") {
        return;
    }
    let scene = open_scene(Access::Group);
    for name in scene.names() {
        chown(scene.folder().join(name), None, Some(NOBODY)).unwrap();
    }
    let [attach, observe, create, remove] = as_nobody(
        a_member_of_the_group_may_attach_to_a_group_s_region,
        &scene.path(),
    );
    assert_eq!([attach, observe, create].map(|a| a == "ok true"), [true; 3]);
    assert!(
        remove.contains("has mode"),
        "the folder is not theirs: {remove}"
    );
    // Root is no member of that group, but owns the file.
    Region::attach(&scene.path(), &TABLE).unwrap();
}

#[test]
fn root_does_not_attach_to_a_stranger_s_file_nor_replace_or_delete_it() {
    if !needs_root("own files of another user") {
        return;
    }
    for (mode, group) in [
        (0o600, NOBODY),
        (0o644, NOBODY),
        (0o660, NOBODY),
        (0o666, 0),
    ] {
        let scene = open_scene(Access::Private);
        let path = scene.path();
        chown(&path, Some(NOBODY), Some(group)).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        let wanted = RegionError::Untrusted {
            path: path.clone(),
            owner: NOBODY,
            group,
            mode,
            us: 0,
        };
        assert_eq!(Region::attach(&path, &TABLE).unwrap_err(), wanted);
        assert_eq!(create(&path).unwrap_err(), wanted);
        let reset = Region::reset(&path, &TABLE, 1, Access::Private, fill, |_, _| ());
        assert_eq!(reset.unwrap_err(), wanted);
        assert_eq!(Region::remove(&path).unwrap_err(), wanted);
        Region::observe(&path, &TABLE).unwrap();
    }
}

#[test]
fn a_file_that_everybody_may_write_is_refused_even_if_it_is_ours() {
    let scene = Scene::new().with_region();
    std::fs::set_permissions(scene.path(), PermissionsExt::from_mode(0o602)).unwrap();
    let error = Region::attach(&scene.path(), &TABLE).unwrap_err();
    assert!(
        matches!(error, RegionError::Untrusted { mode: 0o602, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("0602"), "{error}");
}
