//! What a watchdog's box tells: each piece of news once, however often the report repeats it.

use bumpless_failover::{FailoverWatchdog, OnSilence, Stop};
use bumpless_heartbeat::{HeartbeatTable, Label, Profile};
use bumpless_sidecar::{AdaptiveInstance, Event, EventKind, Scanner, WatchdogOp};
use bumpless_substrate::unusual::fork_and_run;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::scene::{Events, Scene, die, register};

#[test]
fn a_silent_owner_is_told_late_then_silent_fenced_and_handed_back_once_and_died_later() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(4);
    let profile = Profile {
        label: Label::new("resizer").expect("short"),
        ..Profile::default()
    };
    let late = table
        .register_as(std::process::id(), profile)
        .expect("a slot");
    table.mark_in_flight(late, 5_u8).expect("mine");
    table.mark_in_flight(late, 99_u8).expect("mine");
    let watchdog = events.of(FailoverWatchdog::with_grace(&table, 3));

    let mut told: Vec<(u32, Event)> = Vec::new();
    for scan in 1..=20 {
        let _ = watchdog.scan();
        told.extend(events.take().into_iter().map(|event| (scan, event)));
    }
    let names: Vec<_> = told
        .iter()
        .map(|(scan, event)| (*scan, event.kind.name()))
        .collect();
    // The fifth; a later one, when the machine stops that in the middle.
    let silent = names.get(2).map_or(0, |(scan, _)| *scan);
    assert!(silent >= 5, "{names:?}");
    let wanted = [
        (1, "lease_taken"),
        (3, "missed"),
        (silent, "silent"),
        (silent, "fenced"),
        (silent, "handed_back"),
    ];
    assert_eq!(names, wanted);
    for (_, event) in &told[1..] {
        assert_eq!(
            (event.slot, event.generation),
            (late.slot() as u32, late.generation())
        );
        assert_eq!(
            (event.label.to_string(), event.table_id),
            ("resizer".into(), table.creation_id())
        );
        assert!(event.time_ns > 0);
    }
    assert_eq!((told[1].1.value, told[1].1.detail), (2, 3));
    assert_eq!(
        (told[2].1.value, told[2].1.detail),
        (u64::from(silent) - 1, 3)
    );
    let units = told[4].1.units();
    assert_eq!(format!("{units:?}"), "{5, 99}");

    let report = watchdog.scan();
    let taken = watchdog
        .clear_dead_bitmap(report.dead_slots[0].0)
        .expect("mine to take");
    assert_eq!(taken.units.len(), 2);
    let told = events.take();
    assert_eq!(
        (told.len(), told[0].kind.name(), told[0].units()),
        (1, "acknowledged", taken.units)
    );
    assert!(watchdog.clear_dead_bitmap(report.dead_slots[0].0).is_err());

    die(&table, late);
    for _ in 0..3 {
        let _ = watchdog.scan();
    }
    assert_eq!(events.take_names(), ["died"]);
}

#[test]
fn an_owner_that_catches_up_is_told_late_again_the_next_time_only() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(4);
    let worker = register(&table);
    let watchdog = events.of(FailoverWatchdog::with_grace(&table, 4));
    let _ = watchdog.scan();
    events.take();
    for _ in 0..2 {
        for _ in 0..3 {
            let _ = watchdog.scan();
        }
        assert_eq!(events.take_names(), ["missed"]);
        table.beat(worker).expect("within its grace");
        let _ = watchdog.scan();
        assert_eq!(events.take_names(), [""; 0]);
    }
}

#[test]
fn of_two_watchdogs_each_tells_its_own_leases_with_slot_and_term() {
    let (scene, first_events, second_events) = (Scene::new(), Events::default(), Events::default());
    let table = scene.table(4);
    let second_table = HeartbeatTable::attach(scene.path("table")).expect("there");
    let first = first_events.of(FailoverWatchdog::with_grace(&table, 3));
    let second = second_events.of(FailoverWatchdog::with_grace(&second_table, 3));
    let leases = |events: &Events| {
        let of = |event: Event| {
            assert!(event.generation > 0 && event.table_id == table.creation_id());
            (event.kind.name(), event.value, event.slot)
        };
        events.take().into_iter().map(of).collect::<Vec<_>>()
    };
    let _ = first.scan();
    let _ = second.scan();
    assert_eq!(leases(&first_events), [("lease_taken", 1, 0)]);
    assert_eq!(leases(&second_events), []);
    // The first stands still for more than four intervals, and then comes back.
    for _ in 0..6 {
        let _ = second.scan();
    }
    assert_eq!(leases(&second_events)[0], ("lease_taken", 2, 1));
    let _ = first.scan();
    assert_eq!(leases(&first_events), [("lease_lost", 1, 0)]);
    // Between two scans of its own it loses one lease and finds the next one free.
    drop(first);
    let _ = second.scan();
    let third = first_events.of(FailoverWatchdog::with_grace(&table, 3));
    let mut taken = Vec::new();
    while taken.is_empty() {
        let _ = third.scan();
        taken = leases(&first_events);
    }
    assert_eq!(taken, [("lease_taken", 3, 0)]);
    drop(third);
    second_events.take();
    let _ = second.scan();
    assert_eq!(
        leases(&second_events),
        [("lease_lost", 2, 1), ("lease_taken", 4, 1)]
    );
}

#[test]
fn a_fork_childs_copy_of_a_watchdog_tells_nothing() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(4);
    let watchdog = events.of(FailoverWatchdog::with_grace(&table, 3));
    let _ = watchdog.scan();
    assert_eq!(events.take_names(), ["lease_taken"]);
    let child = fork_and_run(|| {
        let _ = watchdog.scan();
        events.take().len() as i32
    });
    assert_eq!(child.expect("a child").wait().expect("reaped"), Some(0));
}

#[test]
fn a_death_whose_slot_is_in_use_again_is_not_told_again_by_who_was_a_standby_in_between() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(4);
    // An idle owner dies, and its slot is taken by the next one before anybody acknowledges that.
    let dead = register(&table);
    let cells = table.cells(dead.slot()).expect("a slot");
    die(&table, dead);
    table.record_death(cells, cells.slot.claimed_by());
    table
        .unregister(dead)
        .expect("this process lives, and gives it back");
    assert_eq!(register(&table).slot(), dead.slot());
    let watchdog = events.of(FailoverWatchdog::with_grace(&table, 1 << 40));
    let _ = watchdog.scan();
    assert_eq!(events.take_names(), ["lease_taken", "died", "fenced"]);
    let other_table = HeartbeatTable::attach(scene.path("table")).expect("there");
    let other = FailoverWatchdog::with_grace(&other_table, 1 << 40);
    while other.lease().is_none() {
        let _ = other.scan();
    }
    let _ = watchdog.scan();
    drop(other);
    let _ = watchdog.scan();
    assert_eq!(events.take_names(), ["lease_lost", "lease_taken"]);
}

#[test]
fn what_is_only_suspected_and_what_was_replaced_is_told_once_too() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(4);
    let (_late, strange) = (register(&table), register(&table));
    let claim = table
        .cells(strange.slot())
        .expect("a slot")
        .slot
        .peek_claim();
    let file = std::fs::File::options()
        .write(true)
        .open(scene.path("table"))
        .expect("there");
    let at = 384 + 64 * strange.slot() as u64;
    file.write_all_at(&(claim.bits() | 0xf).to_ne_bytes(), at)
        .expect("writable");
    let watchdog = FailoverWatchdog::with_grace(&table, 3).on_silence(OnSilence::ReportOnly);
    let watchdog = events.of(watchdog);
    let _ = watchdog.scan();
    let successor = HeartbeatTable::reset(scene.path("table"), 4).expect("a new table");
    // The path is not looked at by every scan.
    let mut told = Vec::new();
    for _ in 0..1_000_000 {
        let _ = watchdog.scan();
        told.extend(events.take());
        if told
            .iter()
            .any(|event: &Event| event.kind == EventKind::Superseded)
        {
            break;
        }
    }
    for _ in 0..9 {
        let _ = watchdog.scan();
    }
    told.extend(events.take());
    let superseded = told
        .iter()
        .find(|event| event.kind == EventKind::Superseded);
    assert_eq!(
        superseded.map(|event| (event.table_id, event.value)),
        Some((table.creation_id(), successor.creation_id()))
    );
    let names: Vec<_> = told.iter().map(|event| event.kind.name()).collect();
    let count = |wanted: &str| names.iter().filter(|name| **name == wanted).count();
    assert_eq!(count("superseded"), 1);
    assert_eq!((count("silent"), count("quarantined")), (1, 1));
    assert_eq!((count("fenced"), count("handed_back")), (0, 0));
}

#[test]
fn the_loop_is_observed_scan_by_scan_and_tells_its_news() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(4);
    let late = register(&table);
    table.mark_in_flight(late, 7_u8).expect("mine");
    let watchdog = events.of(FailoverWatchdog::with_grace(&table, 3));
    let mut scanner = Scanner::new();
    let id = scanner.register(&watchdog);
    let (stop, mut reports) = (Stop::new(), 0);
    // After a gap of two periods, as a busy machine makes, nobody's silence is taken for a hang.
    watchdog.run(Duration::from_millis(20), &stop, |report| {
        reports += 1;
        for (slot, _) in &report.dead_slots {
            watchdog.clear_dead_bitmap(*slot).expect("mine to take");
            stop.request();
        }
    });
    scanner.scan(1);
    let stats = scanner.stats(id).expect("registered");
    assert!(stats.op(WatchdogOp::Scan).count > reports);
    assert_eq!(stats.op(WatchdogOp::Acknowledge).count, reports);
    assert_eq!(watchdog.header().tag(), 0);
    let names = events.take_names();
    assert_eq!(
        (names[0], names[names.len() - 1]),
        ("lease_taken", "acknowledged")
    );
    assert!(names.contains(&"handed_back"), "{names:?}");
}
