//! Replacing and reviving: one successor, under the lock, with what must survive.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

use bumpless_substrate::locks::LockState;
use bumpless_substrate::region::{Access, Born, PathState, Region, RegionError};
use bumpless_substrate::sync::Ordering;

use crate::peer::{self, Peer};
use crate::scene::{
    CAPACITY, FILES, FILLED, REVIVED, STALE_BOOT_ID, Scene, TABLE, create, fill, make_stale, word,
    words,
};

fn reset(scene: &Scene) -> (Region, Option<Region>) {
    Region::reset(
        &scene.path(),
        &TABLE,
        CAPACITY,
        Access::Private,
        fill,
        |_, _| (),
    )
    .unwrap()
}

#[test]
fn reset_makes_a_new_region_and_leaves_the_old_mapping_valid() {
    let scene = Scene::new();
    let (old, _) = scene.create();
    assert!(old.locks().unwrap().try_lock(1).unwrap());
    word(&old, 0).store(1, Ordering::Relaxed);

    let (new, replaced) = reset(&scene);
    assert_ne!(new.creation_id(), old.creation_id());
    assert_eq!(replaced.unwrap().creation_id(), old.creation_id());
    assert_eq!(new.path_state().unwrap(), PathState::Current);
    assert_eq!(old.path_state().unwrap(), PathState::Superseded);
    word(&old, 0).store(2, Ordering::Relaxed);
    assert_eq!(
        word(&new, 0).load(Ordering::Relaxed),
        FILLED,
        "stores reach the old one alone"
    );
    assert!(
        new.locks().unwrap().try_lock(1).unwrap(),
        "the old slot's lock is another"
    );
    assert_ne!(old.locks().unwrap().probe(1).unwrap(), LockState::Free);
    assert_eq!(
        Region::attach(&scene.path(), &TABLE).unwrap().creation_id(),
        new.creation_id()
    );
    assert_eq!(scene.names(), FILES);
}

#[test]
fn reset_carries_over_before_anybody_sees_the_new_region() {
    let scene = Scene::new();
    let (old, _) = scene.create();
    word(&old, 5).store(41, Ordering::Relaxed);
    let carry = |old: &Region, new: &Region| {
        assert_eq!(
            old.path_state().unwrap(),
            PathState::Current,
            "not yet replaced"
        );
        let carried = word(old, 5).load(Ordering::Relaxed) + 1;
        word(new, 5).store(carried, Ordering::Relaxed);
    };
    let (new, _) = Region::reset(&scene.path(), &TABLE, 32, Access::Private, fill, carry).unwrap();
    assert_eq!(word(&new, 5).load(Ordering::Relaxed), 42);
    assert_eq!((old.capacity(), new.capacity()), (64, 32));
}

#[test]
fn reset_replaces_what_is_no_region_and_makes_what_is_missing() {
    let scene = Scene::new();
    let (_, replaced) = reset(&scene);
    assert!(replaced.is_none());
    std::fs::write(scene.path(), b"rubbish").unwrap();
    let (new, replaced) = reset(&scene);
    assert!(replaced.is_none());
    assert_eq!(new.path_state().unwrap(), PathState::Current);
    drop(new);
    make_stale(&scene.path());
    let (_, replaced) = reset(&scene);
    assert_eq!(
        replaced.unwrap().boot_id(),
        STALE_BOOT_ID,
        "a stale region is carried over too"
    );
}

#[test]
fn the_remains_of_a_killed_replacement_are_in_nobodys_way() {
    let scene = Scene::new().with_region();
    std::fs::write(scene.folder().join("table.new"), b"half").unwrap();
    reset(&scene);
    assert_eq!(scene.names(), FILES);
    std::fs::write(scene.folder().join("table.new"), b"half").unwrap();
    Region::remove(&scene.path()).unwrap();
    assert_eq!(scene.names(), [""; 0]);
}

#[test]
fn remove_leaves_nothing_and_orphans_those_attached() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    Region::remove(&scene.path()).unwrap();
    assert_eq!(scene.names(), [""; 0]);
    assert_eq!(region.path_state().unwrap(), PathState::Orphaned);
    word(&region, 0).store(1, Ordering::Relaxed);
    Region::remove(&scene.path()).unwrap();

    let (next, born) = scene.create();
    assert_eq!(born, Born::New);
    assert_eq!(region.path_state().unwrap(), PathState::Superseded);
    assert_ne!(next.creation_id(), region.creation_id());
}

#[test]
fn a_file_unlinked_and_made_again_under_us_is_noticed() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    std::fs::remove_file(scene.path()).unwrap();
    assert_eq!(region.path_state().unwrap(), PathState::Orphaned);
    let (_, born) = scene.create();
    assert_eq!(born, Born::New);
    assert_eq!(region.path_state().unwrap(), PathState::Superseded);
    std::fs::rename(scene.folder(), scene.folder().with_extension("moved")).unwrap();
    assert_eq!(region.path_state().unwrap(), PathState::Orphaned);
    std::fs::remove_dir_all(scene.folder().with_extension("moved")).unwrap();
}

#[test]
fn a_stale_region_is_revived_with_its_id_and_its_contents() {
    let scene = Scene::new();
    let (before, _) = scene.create();
    word(&before, 9).store(99, Ordering::Relaxed);
    let creation_id = before.creation_id();
    drop(before);
    make_stale(&scene.path());
    let stale_inode = std::fs::metadata(scene.path()).unwrap().ino();

    let (revived, born) = scene.create();
    assert_eq!(born, Born::Revived);
    assert_eq!(revived.creation_id(), creation_id);
    assert_eq!(
        revived.boot_id(),
        bumpless_substrate::identity::boot_id().unwrap()
    );
    assert_ne!(
        std::fs::metadata(scene.path()).unwrap().ino(),
        stale_inode,
        "a private copy"
    );
    for (number, word) in words(&revived).iter().enumerate() {
        let wanted = match number {
            1 => REVIVED,
            9 => 99,
            _ => FILLED,
        };
        assert_eq!(word.load(Ordering::Relaxed), wanted, "word {number}");
    }
    assert_eq!(
        Region::attach(&scene.path(), &TABLE).unwrap().creation_id(),
        creation_id
    );
    assert_eq!(scene.names(), FILES);
}

#[test]
fn a_stale_region_to_which_somebody_is_attached_is_not_replaced() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    make_stale(&scene.path());
    let wanted = bumpless_substrate::identity::boot_id().unwrap();
    let path = scene.path();
    let error = create(&path).unwrap_err();
    assert_eq!(
        error,
        RegionError::StaleButAttached {
            path,
            found: STALE_BOOT_ID,
            wanted
        }
    );
    assert_eq!(region.path_state().unwrap(), PathState::Current);
    assert_eq!(word(&region, 1).load(Ordering::Relaxed), FILLED);
    drop(region);
    assert_eq!(scene.create().1, Born::Revived);
}

#[test]
fn sixteen_creators_racing_over_a_stale_file_end_up_in_one_region() {
    if peer::plays("creator") {
        let path = peer::argument("path");
        peer::say("ready");
        while peer::listen().is_some() {
            let (region, born) = create(path.as_ref()).unwrap();
            let inode = std::fs::metadata(&path).unwrap().ino();
            peer::say(format!("{born:?} {} {inode}", region.creation_id()));
            assert_eq!(peer::listen().as_deref(), Some("look"));
            peer::say(format!("{:?}", region.path_state().unwrap()));
            assert_eq!(peer::listen().as_deref(), Some("next"));
        }
        peer::done();
    }
    let scene = Scene::in_memory().with_region();
    let path = scene.path();
    let mut peers: Vec<Peer> = (0..16)
        .map(|_| {
            Peer::start(
                sixteen_creators_racing_over_a_stale_file_end_up_in_one_region,
                "creator",
                &[("path", path.as_os_str())],
            )
        })
        .collect();
    for peer in &mut peers {
        assert_eq!(peer.hear(), "ready");
    }
    for round in 0..20 {
        // Once everybody has closed the region of the round before.
        crate::scene::eventually("nobody is attached", || {
            make_stale(&path);
            attached_by_nobody(&path)
        });
        for peer in &mut peers {
            peer.tell("create");
        }
        let said: Vec<String> = peers.iter_mut().map(Peer::hear).collect();
        let regions: BTreeSet<&str> = said
            .iter()
            .map(|line| line.split_once(' ').unwrap().1)
            .collect();
        let revivers = said
            .iter()
            .filter(|line| line.starts_with("Revived"))
            .count();
        assert_eq!((regions.len(), revivers), (1, 1), "round {round}: {said:?}");
        for peer in &mut peers {
            peer.tell("look");
            assert_eq!(peer.hear(), "Current");
        }
        for peer in &mut peers {
            peer.tell("next");
        }
    }
    for peer in peers {
        assert!(peer.wait().success());
    }
}

/// Whether nobody holds the attach lock.
#[cfg(bumpless_portable)]
fn attached_by_nobody(path: &std::path::Path) -> bool {
    let file = std::fs::File::open(path.with_file_name("table.attached")).unwrap();
    file.try_lock().is_ok()
}

/// Whether the file's attach byte is free, as documented in the lock file's layout.
#[cfg(not(bumpless_portable))]
fn attached_by_nobody(path: &std::path::Path) -> bool {
    let bytes = std::fs::read(path).unwrap();
    let id = u64::from_ne_bytes(bytes[56..64].try_into().unwrap());
    let start = i64::try_from(((id & 0x3fff_ffff) << 32) + 2).unwrap();
    let lock = std::fs::File::open(path.with_file_name("table.lock")).unwrap();
    crate::locks::is_free(&lock, start)
}

#[test]
fn resets_and_attaches_at_once_always_leave_one_current_region() {
    let scene = Scene::in_memory().with_region();
    let path = scene.path();
    let last: Vec<Region> = std::thread::scope(|scope| {
        let resetting: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut last = None;
                    for _ in 0..50 {
                        last = Some(reset(&scene).0);
                    }
                    last.unwrap()
                })
            })
            .collect();
        for _ in 0..200 {
            let region = Region::attach(&path, &TABLE).unwrap();
            assert!(
                words(&region)
                    .iter()
                    .all(|w| w.load(Ordering::Relaxed) == FILLED)
            );
        }
        resetting
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let current = last
        .iter()
        .filter(|region| region.path_state().unwrap() == PathState::Current)
        .count();
    assert_eq!(current, 1);
    assert_eq!(scene.names(), FILES);
}

#[test]
fn a_stopped_holder_of_the_replacement_lock_is_named_after_a_bounded_wait() {
    if peer::plays("holder") {
        let path = peer::argument("path");
        let stop_inside = |_: &Region, _: &Region| {
            peer::say("inside");
            peer::listen();
        };
        let access = Access::Private;
        Region::reset(path.as_ref(), &TABLE, CAPACITY, access, fill, stop_inside).unwrap();
        peer::say("done");
        peer::done();
    }
    let scene = Scene::new().with_region();
    let path = scene.path();
    let mut holder = Peer::start(
        a_stopped_holder_of_the_replacement_lock_is_named_after_a_bounded_wait,
        "holder",
        &[("path", path.as_os_str())],
    );
    assert_eq!(holder.hear(), "inside");
    let before = std::time::Instant::now();
    let error = Region::remove(&path).unwrap_err();
    // Bounded by two seconds and what the machine is late with.
    assert!(before.elapsed().as_secs() < 60);
    let RegionError::ReplacementHeld {
        holder: named,
        waited_ms,
        ..
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(named, Some(holder.pid()));
    assert!(waited_ms >= 2000);
    // Who only attaches does not need that lock.
    Region::attach(&path, &TABLE).unwrap();
    // Its death gives the lock back.
    holder.kill();
    Region::remove(&path).unwrap();
    assert_eq!(scene.names(), [""; 0]);
}

#[test]
fn of_many_who_find_a_region_outdated_one_replaces_it_and_all_get_the_same() {
    let scene = Scene::in_memory();
    let (old, _) = scene.create();
    word(&old, 5).store(41, Ordering::Relaxed);
    let is_current = |region: &Region| word(region, 6).load(Ordering::Relaxed) == 7;
    let carry = |old: &Region, new: &Region| {
        let carried = word(old, 5).load(Ordering::Relaxed) + 1;
        word(new, 5).store(carried, Ordering::Relaxed);
        word(new, 6).store(7, Ordering::Relaxed);
    };
    let open = |capacity| {
        let path = scene.path();
        Region::create_current(
            &path,
            &TABLE,
            capacity,
            Access::Private,
            fill,
            is_current,
            carry,
        )
        .unwrap()
    };
    let ids: BTreeSet<u64> = std::thread::scope(|scope| {
        let openers: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| open(CAPACITY).creation_id()))
            .collect();
        let ids = openers.into_iter().map(|opener| opener.join().unwrap());
        ids.collect()
    });
    assert_eq!(ids.len(), 1, "one successor");
    assert!(!ids.contains(&old.creation_id()));
    let now = open(CAPACITY);
    assert_eq!(word(&now, 5).load(Ordering::Relaxed), 42, "carried once");
    let other = open(CAPACITY / 2);
    assert_eq!(
        other.capacity(),
        CAPACITY / 2,
        "another capacity is outdated too"
    );
    assert_eq!(now.path_state().unwrap(), PathState::Superseded);
    assert_eq!(scene.names(), FILES);
}
