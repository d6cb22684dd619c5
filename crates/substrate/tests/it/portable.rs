//! The portable tier: no robust list, no pidfd, no slot locks; whole-file locks beside the region.

use std::sync::Arc;

use bumpless_substrate::keeper::{Keeper, KeeperError};
use bumpless_substrate::locks::LockState;
use bumpless_substrate::region::{Born, Region, RegionError};

use crate::peer::{self, Peer};
use crate::scene::{CAPACITY, Scene, TABLE, eventually, make_stale, overwrite};

#[test]
fn slots_have_no_locks_and_say_so() {
    let scene = Scene::new();
    let (ours, _) = scene.create();
    let (theirs, _) = scene.create();
    for locks in [ours.locks().unwrap(), theirs.locks().unwrap()] {
        assert!(locks.try_lock(0).unwrap());
        assert_eq!(locks.probe(0).unwrap(), LockState::Unknown);
        locks.unlock(0).unwrap();
        assert_eq!(locks.probe(0).unwrap(), LockState::Unknown);
        let (path, slot) = (locks.path().to_path_buf(), CAPACITY);
        assert_eq!(
            locks.probe(slot).unwrap_err(),
            RegionError::NoSuchSlot {
                path,
                slot,
                capacity: CAPACITY
            }
        );
    }
}

#[test]
fn there_is_no_keeper_and_it_says_so() {
    let scene = Scene::new();
    let region = Arc::new(scene.create().0);
    let error = Keeper::start(&region).unwrap_err();
    assert!(matches!(error, KeeperError::Denied(_)), "{error}");
}

#[test]
fn a_region_of_the_other_tier_is_refused() {
    let scene = Scene::new().with_region();
    overwrite(&scene.path(), 0, b"BUMPLESS");
    let error = Region::attach(&scene.path(), &TABLE).unwrap_err();
    assert!(matches!(error, RegionError::Magic { .. }), "{error}");
}

#[test]
fn a_missing_neighbour_of_the_lock_file_is_told() {
    let scene = Scene::new().with_region();
    let attached = scene.folder().join("table.attached");
    std::fs::remove_file(&attached).unwrap();
    let error = Region::attach(&scene.path(), &TABLE).unwrap_err();
    assert_eq!(error, RegionError::LockFileMissing { path: attached });
    // Also when a `remove` was killed between the two.
    std::fs::remove_file(scene.path()).unwrap();
    Region::remove(&scene.path()).unwrap();
    assert_eq!(scene.names(), [""; 0]);
}

#[test]
fn a_stale_region_is_revived_once_everybody_attached_is_gone_also_by_a_kill() {
    if peer::plays("attached") {
        let region = Region::attach(peer::argument("path").as_ref(), &TABLE).unwrap();
        peer::say("attached");
        peer::listen();
        drop(region);
        peer::done();
    }
    let scene = Scene::new().with_region();
    let path = scene.path();
    let mut attached = Peer::start(
        a_stale_region_is_revived_once_everybody_attached_is_gone_also_by_a_kill,
        "attached",
        &[("path", path.as_os_str())],
    );
    assert_eq!(attached.hear(), "attached");
    make_stale(&path);
    let error = crate::scene::create(&path).unwrap_err();
    assert!(
        matches!(error, RegionError::StaleButAttached { .. }),
        "{error}"
    );
    attached.child.kill().unwrap();
    eventually("the kernel has dropped the lock", || {
        crate::scene::create(&path).is_ok_and(|(_, born)| born == Born::Revived)
    });
}

#[test]
fn a_fork_child_that_closes_the_region_leaves_its_parent_attached() {
    if peer::plays("parent") {
        let region = Region::attach(peer::argument("path").as_ref(), &TABLE).unwrap();
        // SAFETY: the child runs this test's own code alone, and ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(region);
            // SAFETY: ends the child without running anything of the harness.
            unsafe { libc::_exit(0) };
        }
        let child = rustix::process::Pid::from_raw(child).unwrap();
        rustix::process::waitpid(Some(child), rustix::process::WaitOptions::empty()).unwrap();
        peer::say("closed in the child");
        peer::listen();
        peer::done();
    }
    let scene = Scene::new().with_region();
    let path = scene.path();
    let mut parent = Peer::start(
        a_fork_child_that_closes_the_region_leaves_its_parent_attached,
        "parent",
        &[("path", path.as_os_str())],
    );
    assert_eq!(parent.hear(), "closed in the child");
    make_stale(&path);
    let error = crate::scene::create(&path).unwrap_err();
    assert!(
        matches!(error, RegionError::StaleButAttached { .. }),
        "{error}"
    );
}
