//! Shared atomics and futexes between processes.

use std::sync::Arc;
use std::time::Duration;

use bumpless_substrate::futex::{Woken, wait, wake};
use bumpless_substrate::region::{PREAMBLE_LEN, Region, RegionError};
use bumpless_substrate::shared_atomic::{SharedAtomicBool, SharedAtomicU32, SharedAtomicU64};
use bumpless_substrate::sync::{AtomicU32, Ordering};

use crate::peer::{self, Peer};
use crate::scene::{FILLED, Scene, TABLE, eventually};

const ORDERINGS: [Ordering; 5] = [
    Ordering::Relaxed,
    Ordering::Acquire,
    Ordering::Release,
    Ordering::AcqRel,
    Ordering::SeqCst,
];

#[test]
fn create_keeps_the_value_of_a_file_that_exists_and_reset_does_not() {
    let scene = Scene::new();
    let path = scene.path();
    assert!(matches!(
        SharedAtomicU64::open(&path),
        Err(RegionError::NotFound { .. })
    ));
    let first = SharedAtomicU64::create(&path, 5).unwrap();
    first.store(6, Ordering::Release);
    let second = SharedAtomicU64::create(&path, 7).unwrap();
    assert_eq!(second.load(Ordering::Acquire), 6);
    assert_eq!(
        SharedAtomicU64::open(&path)
            .unwrap()
            .load(Ordering::Acquire),
        6
    );
    second.flush().unwrap();
    second.flush_async().unwrap();
    let third = SharedAtomicU64::reset(&path, 8).unwrap();
    assert_eq!(third.load(Ordering::Acquire), 8);
    first.store(9, Ordering::Release);
    assert_eq!(third.load(Ordering::Acquire), 8, "the old one is cut off");
}

#[test]
fn another_type_of_value_is_refused_with_both_kinds() {
    let scene = Scene::new();
    let path = scene.path();
    SharedAtomicU32::create(&path, 5).unwrap();
    let wanted = RegionError::Kind {
        path: path.clone(),
        found: *b"AU32",
        wanted: *b"AU64",
    };
    assert_eq!(SharedAtomicU64::open(&path).unwrap_err(), wanted);
    assert_eq!(SharedAtomicU64::create(&path, 0).unwrap_err(), wanted);
    let text = SharedAtomicBool::open(&path).unwrap_err().to_string();
    assert!(
        text.contains("\"AU32\"") && text.contains("\"BOOL\""),
        "{text}"
    );
    assert_eq!(
        SharedAtomicU32::open(&path)
            .unwrap()
            .load(Ordering::Relaxed),
        5
    );
}

#[test]
fn integers_do_what_the_standard_ones_do_under_every_ordering() {
    let scene = Scene::new();
    let shared = SharedAtomicU32::create(&scene.path(), 0).unwrap();
    for order in ORDERINGS {
        shared.store(u32::MAX, order);
        assert_eq!(shared.fetch_add(3, order), u32::MAX);
        assert_eq!(shared.fetch_sub(4, order), 2);
        assert_eq!(shared.fetch_and(0xff, order), u32::MAX - 1);
        assert_eq!(shared.fetch_or(0x101, order), 0xfe);
        assert_eq!(shared.fetch_xor(0xf0, order), 0x1ff);
        assert_eq!(shared.swap(7, order), 0x10f);
        for failure in ORDERINGS {
            assert_eq!(shared.compare_exchange(6, 1, order, failure), Err(7));
            assert_eq!(shared.compare_exchange(7, 8, order, failure), Ok(7));
            assert_eq!(shared.compare_exchange_weak(7, 9, order, failure), Err(8));
            eventually("a weak exchange succeeds", || {
                shared.compare_exchange_weak(8, 7, order, failure) == Ok(8)
            });
        }
        assert_eq!(shared.load(order), 7);
    }
}

#[test]
fn a_bool_does_what_the_standard_one_does_for_every_pair_of_values() {
    let scene = Scene::new();
    let shared = SharedAtomicBool::create(&scene.path(), true).unwrap();
    assert!(shared.load(Ordering::Relaxed));
    for (before, value) in [(false, false), (false, true), (true, false), (true, true)] {
        type Operation = fn(&SharedAtomicBool, bool, Ordering) -> bool;
        let operations: [(Operation, bool); 5] = [
            (SharedAtomicBool::fetch_and, before & value),
            (SharedAtomicBool::fetch_or, before | value),
            (SharedAtomicBool::fetch_xor, before ^ value),
            (SharedAtomicBool::fetch_nand, !(before & value)),
            (SharedAtomicBool::swap, value),
        ];
        for order in ORDERINGS {
            for (operation, after) in operations {
                shared.store(before, order);
                assert_eq!(operation(&shared, value, order), before);
                assert_eq!(shared.load(order), after);
            }
            shared.store(before, order);
            let found = shared.compare_exchange(value, !before, order, order);
            assert_eq!(
                found,
                if before == value {
                    Ok(before)
                } else {
                    Err(before)
                }
            );
            assert_eq!(shared.load(order), before ^ (before == value));
        }
    }
}

#[test]
fn a_number_that_is_no_bool_is_a_true_and_stays_harmless() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    let region = Arc::new(region);
    let word: &AtomicU32 = region.at(PREAMBLE_LEN).unwrap();
    let shared = SharedAtomicBool::in_region(Arc::clone(&region), PREAMBLE_LEN).unwrap();
    for foreign in [2, 3, u32::MAX] {
        let (order, set) = (Ordering::SeqCst, || word.store(foreign, Ordering::SeqCst));
        set();
        assert!(shared.load(order));
        assert!(shared.fetch_and(true, order) && shared.fetch_or(false, order));
        assert!(shared.fetch_xor(true, order));
        assert!(!shared.load(order), "{foreign} is toggled to false");
        set();
        assert_eq!(
            shared.compare_exchange(false, true, order, order),
            Err(true)
        );
        assert_eq!(shared.compare_exchange(true, false, order, order), Ok(true));
        assert!(!shared.load(order));
        set();
        assert!(shared.swap(true, order));
        assert_eq!(word.load(order), 1);
    }
}

#[test]
fn a_place_in_a_region_is_checked_and_kept_mapped() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    let region = Arc::new(region);
    let shared = SharedAtomicU64::in_region(Arc::clone(&region), PREAMBLE_LEN + 8).unwrap();
    let error = SharedAtomicU64::in_region(Arc::clone(&region), 4160).unwrap_err();
    assert!(matches!(error, RegionError::OutOfRange { .. }), "{error}");
    let error = SharedAtomicU64::in_region(Arc::clone(&region), PREAMBLE_LEN + 4).unwrap_err();
    assert!(matches!(error, RegionError::Misaligned { .. }), "{error}");
    let observer = Arc::new(Region::observe(&scene.path(), &TABLE).unwrap());
    let error = SharedAtomicU64::in_region(observer, PREAMBLE_LEN).unwrap_err();
    assert!(matches!(error, RegionError::ReadOnly { .. }), "{error}");

    drop(region);
    Region::remove(&scene.path()).unwrap();
    assert_eq!(shared.clone().fetch_add(1, Ordering::AcqRel), FILLED);
    shared.flush().unwrap();
}

#[test]
fn no_addition_of_several_processes_is_lost() {
    const EACH: u64 = 20_000;
    if peer::plays("adder") {
        let shared = SharedAtomicU64::open(peer::argument("path").as_ref()).unwrap();
        peer::say("ready");
        peer::listen();
        for _ in 0..EACH {
            shared.fetch_add(1, Ordering::AcqRel);
        }
        peer::done();
    }
    let scene = Scene::new();
    let path = scene.path();
    let shared = SharedAtomicU64::create(&path, 0).unwrap();
    let mut adders: Vec<Peer> = (0..4)
        .map(|_| {
            let arguments = [("path", path.as_os_str())];
            Peer::start(
                no_addition_of_several_processes_is_lost,
                "adder",
                &arguments,
            )
        })
        .collect();
    for adder in &mut adders {
        assert_eq!(adder.hear(), "ready");
    }
    adders.iter_mut().for_each(Peer::hang_up);
    for adder in adders {
        assert!(adder.wait().success());
    }
    assert_eq!(shared.load(Ordering::Acquire), 4 * EACH);
}

#[test]
fn a_sleeper_in_another_process_is_woken_also_one_that_only_reads() {
    if peer::plays("sleeper") {
        let region = Region::observe(peer::argument("path").as_ref(), &TABLE).unwrap();
        let word: &AtomicU32 = region.at(PREAMBLE_LEN).unwrap();
        peer::say("sleeps");
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        let mut woken = Woken::Changed;
        while word.load(Ordering::Relaxed) == 0 && std::time::Instant::now() < deadline {
            woken = wait(word, 0, Some(Duration::from_secs(60)));
        }
        peer::say(format!("{woken:?}"));
        peer::done();
    }
    let scene = Scene::new();
    let access = bumpless_substrate::region::Access::Private;
    let (region, _) = Region::create(&scene.path(), &TABLE, 64, access, |_| ()).unwrap();
    let word: &AtomicU32 = region.at(PREAMBLE_LEN).unwrap();
    let path = scene.path();
    let mut sleeper = Peer::start(
        a_sleeper_in_another_process_is_woken_also_one_that_only_reads,
        "sleeper",
        &[("path", path.as_os_str())],
    );
    assert_eq!(sleeper.hear(), "sleeps");
    // A wake that finds nobody is no wake: it sleeps by now, or soon.
    eventually("one sleeper is woken", || wake(word, 1) == 1);
    word.store(1, Ordering::Release);
    wake(word, u32::MAX);
    let said = sleeper.hear();
    assert!(["Woken", "Changed"].contains(&said.as_str()), "{said}");
}

#[test]
fn a_wait_ends_by_its_timeout_and_does_not_begin_on_another_value() {
    let word = AtomicU32::new(1);
    assert_eq!(
        wait(&word, 1, Some(Duration::from_millis(5))),
        Woken::TimedOut
    );
    assert_eq!(wait(&word, 1, Some(Duration::ZERO)), Woken::TimedOut);
    assert_eq!(wait(&word, 2, Some(Duration::MAX)), Woken::Changed);
    assert_eq!(wake(&word, u32::MAX), 0);
}
