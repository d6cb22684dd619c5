//! Making regions: complete or not there, once, whoever starts and whoever dies.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use bumpless_substrate::region::{Access, Born, Format, PathState, Region, RegionError};
use bumpless_substrate::sync::Ordering;

use crate::peer::{self, Peer};
use crate::scene::{
    CAPACITY, FILES, FILLED, REVIVED, SLOTS_HAVE_LOCKS, Scene, TABLE, create, eventually, fill,
    make_stale, needs_root, word, words,
};

#[test]
fn a_new_region_is_zero_but_for_what_init_wrote() {
    let scene = Scene::new();
    let init = |region: &Region| word(region, 3).store(33, Ordering::Relaxed);
    let (region, born) =
        Region::create(&scene.path(), &TABLE, CAPACITY, Access::Private, init).unwrap();
    assert_eq!(born, Born::New);
    for (number, word) in words(&region).iter().enumerate() {
        assert_eq!(
            word.load(Ordering::Relaxed),
            if number == 3 { 33 } else { 0 }
        );
    }
    assert_ne!(region.creation_id(), 0);
    assert_eq!(
        region.boot_id(),
        bumpless_substrate::identity::boot_id().unwrap()
    );
    assert_eq!(region.path_state().unwrap(), PathState::Current);
    assert!(!region.is_read_only());
    assert_eq!(scene.names(), FILES);
    let file = std::fs::metadata(scene.path()).unwrap();
    assert_eq!(file.len(), 4160);
    assert!(file.blocks() * 512 >= 4160, "all of it is reserved");
}

#[test]
fn create_attaches_to_a_live_region_and_touches_nothing() {
    let scene = Scene::new();
    let (first, _) = scene.create();
    assert!(first.locks().unwrap().try_lock(5).unwrap());
    word(&first, 0).store(9, Ordering::Relaxed);
    let (second, born) = scene.create();
    assert_eq!(born, Born::Attached);
    assert_eq!(second.creation_id(), first.creation_id());
    assert_eq!(word(&second, 0).load(Ordering::Relaxed), 9);
    let taken_too = second.locks().unwrap().try_lock(5).unwrap();
    assert_ne!(taken_too, SLOTS_HAVE_LOCKS);
}

#[test]
fn create_with_another_capacity_names_both() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    let error = Region::create(&scene.path(), &TABLE, 32, Access::Private, fill).unwrap_err();
    let path = scene.path();
    assert_eq!(
        error,
        RegionError::CapacityDiffers {
            path,
            found: 64,
            wanted: 32
        }
    );
    drop(region);
    make_stale(&scene.path());
    let stale = Region::create(&scene.path(), &TABLE, 32, Access::Private, fill).unwrap_err();
    assert_eq!(stale, error, "a stale file keeps its capacity too");
}

#[test]
fn a_capacity_of_0_or_beyond_the_limit_is_refused_before_anything_is_made() {
    let scene = Scene::new();
    for (max_capacity, capacity, limit) in [
        (64, 0, 64),
        (64, 65, 64),
        (64, u32::MAX, 64),
        (u32::MAX, (1 << 30) + 1, 1 << 30),
    ] {
        let format = Format {
            max_capacity,
            ..TABLE
        };
        let create = Region::create(&scene.path(), &format, capacity, Access::Private, fill);
        let path = scene.path();
        let wanted = RegionError::Capacity {
            path,
            found: capacity,
            limit,
        };
        assert_eq!(create.unwrap_err(), wanted);
        let reset = Region::reset(
            &scene.path(),
            &format,
            capacity,
            Access::Private,
            fill,
            |_, _| (),
        );
        assert_eq!(reset.unwrap_err(), wanted);
    }
    assert_eq!(scene.names(), [""; 0]);
}

#[test]
fn a_length_that_no_file_can_have_is_an_error() {
    let scene = Scene::new();
    for region_len in [(|_| u64::MAX) as fn(u32) -> u64, |_| 1 << 62] {
        let format = Format {
            region_len,
            ..TABLE
        };
        let error = Region::create(&scene.path(), &format, 1, Access::Private, |_| ()).unwrap_err();
        assert!(
            matches!(
                error,
                RegionError::NoSpace { .. } | RegionError::System { .. }
            ),
            "{error}"
        );
    }
    assert_eq!(scene.names(), [""; 0]);
}

#[test]
fn modes_are_those_of_the_access_whatever_the_umask() {
    if peer::plays("creator") {
        for (name, access) in [
            ("a", Access::Private),
            ("b", Access::Group),
            ("c", Access::ReadForOthers),
        ] {
            for umask in [0o000, 0o027, 0o777] {
                rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
                let path = format!("{}/{name}{umask:o}", peer::argument("folder"));
                Region::create(path.as_ref(), &TABLE, 4, access, fill).unwrap();
                Region::reset(path.as_ref(), &TABLE, 4, access, fill, |_, _| ()).unwrap();
            }
        }
        peer::done();
    }
    let scene = Scene::new();
    let peer = Peer::start(
        modes_are_those_of_the_access_whatever_the_umask,
        "creator",
        &[("folder", scene.folder().as_os_str())],
    );
    assert!(peer.wait().success());
    let names = scene.names();
    assert_eq!(names.len(), 9 * FILES.len());
    for name in names {
        let mode = std::fs::metadata(scene.folder().join(&name))
            .unwrap()
            .permissions()
            .mode();
        let wanted = match (&name[..1], name.contains('.')) {
            ("b", _) => 0o660,
            ("c", false) => 0o644,
            _ => 0o600,
        };
        assert_eq!(mode & 0o7777, wanted, "{name}");
    }
}

/// Makes, uses and removes one region for ever.
fn make_for_ever(path: &std::path::Path) -> ! {
    loop {
        match create(path) {
            Ok((region, Born::New)) => drop(region),
            // A predecessor was killed between making and removing.
            Ok((_, Born::Attached)) => make_stale(path),
            Ok((region, Born::Revived)) => {
                drop(region);
                Region::reset(path, &TABLE, CAPACITY, Access::Private, fill, |_, _| ()).unwrap();
                Region::remove(path).unwrap();
            }
            Err(e) => panic!("{e}"),
        }
    }
}

#[test]
fn a_creator_killed_at_any_moment_leaves_a_finished_region_or_none() {
    if peer::plays("creator") {
        peer::say("starts");
        make_for_ever(peer::argument("path").as_ref());
    }
    let scene = Scene::new();
    let path = scene.path();
    let (mut found, mut missing) = (0, 0);
    for round in 0..60 {
        let mut creator = Peer::start(
            a_creator_killed_at_any_moment_leaves_a_finished_region_or_none,
            "creator",
            &[("path", path.as_os_str())],
        );
        assert_eq!(creator.hear(), "starts");
        // A different moment each time: this many looks at the path.
        for _ in 0..round * 37 {
            let _ = path.symlink_metadata();
        }
        // Where both have one processor, or few, one of the sights is rare: each is waited for, every
        // fourth time.
        if round % 2 == 1 {
            let wants_one = round % 4 == 1;
            eventually("it is there, or is not", || {
                path.symlink_metadata().is_ok() == wants_one
            });
        }
        creator.kill();

        // Who waits for somebody in vain gives up, with an error.
        let (region, born) = create(&path).unwrap();
        match born {
            Born::New => missing += 1,
            _ => found += 1,
        }
        for (number, word) in words(&region).iter().enumerate() {
            let value = word.load(Ordering::Relaxed);
            let revived = number == 1 && value == REVIVED;
            assert!(
                value == FILLED || revived,
                "round {round}, word {number}: {value:#x}"
            );
        }
    }
    assert!(
        found > 0 && missing > 0,
        "found {found}, missing {missing}: one kind never seen"
    );
    Region::remove(&path).unwrap();
    assert_eq!(scene.names(), [""; 0], "no remains");
}

#[test]
fn sixty_four_processes_that_start_at_once_share_one_region() {
    const ROUNDS: usize = 20;
    if peer::plays("one of many") {
        let folder = peer::argument("folder");
        peer::say("ready");
        while let Some(round) = peer::listen() {
            let path = format!("{folder}/{round}");
            let (region, born) = create(path.as_ref()).unwrap();
            let locks = region.locks().unwrap();
            let slot = (0..CAPACITY)
                .find(|&slot| locks.try_lock(slot).unwrap())
                .unwrap();
            peer::say(format!("{born:?} {} {slot}", region.creation_id()));
            // Kept, with its lock, until all have one.
            assert_eq!(peer::listen().as_deref(), Some("next"));
        }
        peer::done();
    }
    let scene = Scene::in_memory();
    let mut peers: Vec<Peer> = (0..64)
        .map(|_| {
            Peer::start(
                sixty_four_processes_that_start_at_once_share_one_region,
                "one of many",
                &[("folder", scene.folder().as_os_str())],
            )
        })
        .collect();
    for peer in &mut peers {
        assert_eq!(peer.hear(), "ready");
    }
    for round in 0..ROUNDS {
        for peer in &mut peers {
            peer.tell(&round.to_string());
        }
        let mut slots = BTreeSet::new();
        let mut ids = BTreeSet::new();
        let mut makers = 0;
        for peer in &mut peers {
            let said = peer.hear();
            let [born, id, slot] = said.split(' ').collect::<Vec<_>>()[..] else {
                panic!("heard {said:?}");
            };
            makers += usize::from(born == "New");
            ids.insert(id.to_owned());
            slots.insert(slot.to_owned());
        }
        let slots_wanted = if SLOTS_HAVE_LOCKS { 64 } else { 1 };
        assert_eq!(
            (makers, ids.len(), slots.len()),
            (1, 1, slots_wanted),
            "round {round}"
        );
        for peer in &mut peers {
            peer.tell("next");
        }
    }
    for peer in peers {
        assert!(peer.wait().success());
    }
}

#[test]
fn threads_that_create_remove_and_attach_at_once_never_split_a_region() {
    let scene = Scene::in_memory();
    let path = scene.path();
    let rounds = 200;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let (region, _) = create(&path).unwrap();
                    assert!(
                        words(&region)
                            .iter()
                            .all(|w| w.load(Ordering::Relaxed) == FILLED)
                    );
                    // Whoever is attached to the same region has the same lock file.
                    if let Ok(other) = Region::attach(&path, &TABLE)
                        && other.creation_id() == region.creation_id()
                        && region.locks().unwrap().try_lock(0).unwrap()
                    {
                        let taken_too = other.locks().unwrap().try_lock(0).unwrap();
                        assert_ne!(taken_too, SLOTS_HAVE_LOCKS);
                    }
                    drop(region);
                    Region::remove(&path).unwrap();
                }
            });
        }
    });
    assert_eq!(scene.names(), [""; 0]);
}

#[test]
fn a_full_file_system_is_an_error_at_create_and_nothing_is_left() {
    if peer::plays("on a small file system") {
        let folder = peer::argument("folder");
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=64k", "none", &folder])
            .status()
            .unwrap();
        assert!(mount.success());
        let path = std::path::PathBuf::from(format!("{folder}/table"));
        let large = Format {
            max_capacity: 1 << 20,
            ..TABLE
        };
        let create = |capacity| Region::create(&path, &large, capacity, Access::Private, |_| ());
        assert_eq!(
            create(1024).unwrap_err(),
            RegionError::NoSpace {
                path: path.clone(),
                wanted: 64 + 64 * 1024
            }
        );
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);

        // One that fits goes on working when the rest of the file system is full.
        let (region, born) = create(256).unwrap();
        assert_eq!(born, Born::New);
        let filler = std::fs::write(format!("{folder}/filler"), vec![1; 1 << 16]).unwrap_err();
        assert_eq!(filler.raw_os_error(), Some(libc::ENOSPC));
        for word in words(&region) {
            word.store(1, Ordering::Relaxed);
        }
        // A replacement cannot be made; the region stays.
        let reset = Region::reset(&path, &large, 256, Access::Private, |_| (), |_, _| ());
        assert!(matches!(reset.unwrap_err(), RegionError::NoSpace { .. }));
        assert_eq!(region.path_state().unwrap(), PathState::Current);
        peer::say("all as it should be");
        peer::done();
    }
    if !needs_root("mount a small file system") {
        return;
    }
    let scene = Scene::new();
    let mut peer = Peer::start_through(
        &["unshare", "--mount"],
        a_full_file_system_is_an_error_at_create_and_nothing_is_left,
        "on a small file system",
        &[("folder", scene.folder().as_os_str())],
    );
    assert_eq!(peer.hear(), "all as it should be");
}
