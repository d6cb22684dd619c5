//! What an attached process or an observer sees and can reach.

use bumpless_substrate::region::{PathState, Region, RegionError};
use bumpless_substrate::sync::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::peer;
use crate::scene::{CAPACITY, FILLED, Scene, TABLE, make_stale, overwrite, word, words};

#[test]
fn views_are_checked_for_range_and_alignment() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    assert_eq!(region.region_len(), 4160);
    region.at::<AtomicU64>(4152).unwrap();
    for offset in [4153, 4160, 4161, u64::MAX - 3, u64::MAX] {
        let error = region.at::<AtomicU64>(offset).unwrap_err();
        assert!(matches!(
            error,
            RegionError::OutOfRange {
                len: 8,
                region_len: 4160,
                ..
            }
        ));
    }
    for offset in [65, 68, 4151] {
        let error = region.at::<AtomicU64>(offset).unwrap_err();
        let path = scene.path();
        assert_eq!(
            error,
            RegionError::Misaligned {
                path,
                offset,
                align: 8
            }
        );
    }
    assert_eq!(region.slice::<AtomicU32>(64, 1024).unwrap().len(), 1024);
    assert_eq!(region.slice::<AtomicU16>(4160, 0).unwrap().len(), 0);
    for (offset, count) in [(64, 1025), (68, 1024), (0, u32::MAX), (u64::MAX, 1)] {
        let error = region.slice::<AtomicU32>(offset, count).unwrap_err();
        assert!(matches!(error, RegionError::OutOfRange { .. }), "{error}");
    }
    assert!(matches!(
        region.flush(64, 4097),
        Err(RegionError::OutOfRange { .. })
    ));
    region.flush(64, 4096).unwrap();
    region.flush_async(100, 3).unwrap();
}

#[test]
fn an_observer_sees_everything_and_leaves_no_trace() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    let observer = Region::observe(&scene.path(), &TABLE).unwrap();
    assert!(observer.is_read_only());
    assert!(observer.locks().is_none());
    assert_eq!(observer.creation_id(), region.creation_id());
    word(&region, 7).store(77, Ordering::Relaxed);
    assert_eq!(word(&observer, 7).load(Ordering::Relaxed), 77);
    assert_eq!(word(&observer, 8).load(Ordering::Relaxed), FILLED);
    assert_eq!(observer.path_state().unwrap(), PathState::Current);

    drop(region);
    make_stale(&scene.path());
    let (_, born) = scene.create();
    assert_eq!(
        born,
        bumpless_substrate::region::Born::Revived,
        "observers do not count as attached"
    );
    assert_eq!(observer.path_state().unwrap(), PathState::Superseded);
    assert_eq!(
        word(&observer, 7).load(Ordering::Relaxed),
        77,
        "the old mapping stays"
    );
}

#[test]
fn a_store_through_an_observer_is_a_fault_and_changes_nothing() {
    if peer::plays("writer") {
        let observer = Region::observe(peer::argument("path").as_ref(), &TABLE).unwrap();
        peer::say("mapped");
        word(&observer, 0).store(1, Ordering::Relaxed);
        peer::done();
    }
    let scene = Scene::new();
    let (region, _) = scene.create();
    let path = scene.path();
    let mut writer = peer::Peer::start(
        a_store_through_an_observer_is_a_fault_and_changes_nothing,
        "writer",
        &[("path", path.as_os_str())],
    );
    assert_eq!(writer.hear(), "mapped");
    let status = writer.wait();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(libc::SIGSEGV)
    );
    assert_eq!(word(&region, 0).load(Ordering::Relaxed), FILLED);
}

#[test]
fn what_a_peer_scribbles_over_the_preamble_changes_nothing_for_those_attached() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    overwrite(&scene.path(), 0, &[0xff; 64]);
    assert_eq!((region.capacity(), region.region_len()), (CAPACITY, 4160));
    assert!(
        words(&region)
            .iter()
            .all(|w| w.load(Ordering::Relaxed) == FILLED)
    );
    assert!(region.at::<AtomicU64>(4160).is_err());
    assert!(region.locks().unwrap().try_lock(CAPACITY - 1).unwrap());
    assert!(matches!(
        Region::attach(&scene.path(), &TABLE),
        Err(RegionError::Magic { .. })
    ));
}
