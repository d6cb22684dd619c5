//! More than one watchdog over one table.

use std::time::Duration;

use bumpless_failover::{AcknowledgeError, FailoverWatchdog, Standing, Stop};
use bumpless_heartbeat::{HeartbeatTable, SlotRole};

use crate::scene::{Scene, assert_refused, die, only, register, units};

#[test]
fn of_two_watchdogs_one_ticks_and_the_other_stands_by() {
    let scene = Scene::new();
    let table = scene.table(4);
    let [primary, standby] = [(); 2].map(|()| FailoverWatchdog::with_grace(&table, 3));
    die(&table, register(&table, &[1]));
    for epoch in 1..=4 {
        let report = primary.scan();
        assert_eq!(
            (report.standing, report.new_global_epoch),
            (Standing::Primary, epoch)
        );
        assert_eq!(only(&report).units, units(&[1]));
        let report = standby.scan();
        assert_eq!(
            (report.standing, report.is_empty()),
            (Standing::Standby, true)
        );
        assert_eq!(table.global_epoch(), epoch, "a standby does not tick");
    }
}

#[test]
fn a_watchdog_that_goes_leaves_the_lease_and_its_slot() {
    let scene = Scene::new();
    let table = scene.table(4);
    let [primary, standby] = [(); 2].map(|()| FailoverWatchdog::with_grace(&table, 3));
    die(&table, register(&table, &[1]));
    let reported = only(&primary.scan());
    assert_eq!(standby.scan().standing, Standing::Standby);
    drop(primary);
    let report = standby.scan();
    assert_eq!(report.standing, Standing::Primary);
    let again = only(&report);
    assert_eq!(
        (again.units, again.generation),
        (reported.units, reported.generation)
    );
    let name = |slot: bumpless_failover::SlotRef| slot.units.iter().map(move |u| slot.unit_name(u));
    assert!(name(again).eq(name(reported)), "the same names");
    assert_eq!(again.term(), reported.term() + 1);
    let stale = standby.clear_dead_bitmap(reported);
    assert_refused!(stale, AcknowledgeError::StaleTerm { found, wanted, .. }
        if found == reported.term() && wanted == again.term());
    assert_eq!(standby.clear_dead_bitmap(again).unwrap().units, units(&[1]));
    let watchdogs = table
        .iter_live()
        .filter(|(_, seen)| seen.role == SlotRole::Watchdog);
    assert_eq!(watchdogs.count(), 1);
}

#[test]
fn a_watchdog_whose_process_died_is_replaced_at_once() {
    let scene = Scene::new();
    let table = scene.table(4);
    let [primary, standby] = [(); 2].map(|()| FailoverWatchdog::with_grace(&table, 3));
    assert_eq!(primary.scan().standing, Standing::Primary);
    assert_eq!(standby.scan().standing, Standing::Standby);
    let (slot, _) = table.iter_live().next().expect("the primary's slot");
    let word = table.cells(slot).unwrap().slot.keeper_word();
    // Relaxed: one thread.
    word.store(
        bumpless_substrate::keeper::OWNER_DIED,
        bumpless_substrate::sync::Ordering::Relaxed,
    );
    let report = standby.scan();
    assert_eq!(report.standing, Standing::Primary);
    assert_eq!(
        only(&report).slot as usize,
        slot,
        "its death is reported like anybody's"
    );
    assert_eq!(primary.scan().standing, Standing::Standby);
}

#[test]
fn a_watchdog_over_a_full_table_does_without_a_slot() {
    let scene = Scene::new();
    let table = scene.table(2);
    let owners = [register(&table, &[1]), register(&table, &[2])];
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    assert_eq!(watchdog.scan().standing, Standing::Primary);
    assert_eq!(table.iter_live().count(), 2);
    die(&table, owners[1]);
    assert_eq!(only(&watchdog.scan()).units, units(&[2]));
}

#[test]
fn a_watchdog_on_a_table_opened_to_look_only_changes_nothing() {
    let scene = Scene::new();
    let table = scene.table(2);
    register(&table, &[1]);
    let before = std::fs::read(scene.path("table")).unwrap();
    let observer = HeartbeatTable::open_read_only(scene.path("table")).unwrap();
    let watchdog = FailoverWatchdog::with_grace(&observer, 1);
    for _ in 0..5 {
        let report = watchdog.scan();
        assert_eq!(
            (report.standing, report.is_empty()),
            (Standing::Standby, true)
        );
    }
    watchdog.wait_for_change(Duration::from_millis(1));
    drop(watchdog);
    assert!(std::fs::read(scene.path("table")).unwrap() == before);
}

#[test]
fn a_watchdog_without_a_slot_gives_the_lease_back_too() {
    let scene = Scene::new();
    let table = scene.table(1);
    register(&table, &[1]);
    let primary = FailoverWatchdog::with_grace(&table, 3);
    assert_eq!(primary.scan().standing, Standing::Primary);
    drop(primary);
    let next = FailoverWatchdog::with_grace(&table, 3);
    assert_eq!(next.scan().standing, Standing::Primary);
}

#[test]
fn a_watchdog_that_was_fenced_is_registered_anew_by_its_next_scan() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    assert_eq!(watchdog.scan().standing, Standing::Primary);
    let (slot, seen) = table.iter_live().next().expect("the watchdog's slot");
    let _ = table.cells(slot).unwrap().slot.fence(seen.generation);
    assert_eq!(watchdog.scan().standing, Standing::Primary);
    let live: Vec<_> = table.iter_live().collect();
    assert!(
        matches!(live[..], [(_, seen)] if !seen.is_fenced),
        "{live:?}"
    );
}

#[test]
fn a_loop_that_is_late_each_time_finds_a_hang_all_the_same() {
    let scene = Scene::new();
    let table = scene.table(2);
    let hung = register(&table, &[9]);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let stop = Stop::new();
    let (mut scans, mut found) = (0, Vec::new());
    // No machine keeps that.
    watchdog.run_each_scan(Duration::from_nanos(1), &stop, |report| {
        scans += 1;
        found.extend(report.dead_slots.iter().map(|(slot, _)| *slot));
        if !found.is_empty() || scans == 10_000 {
            stop.request();
        }
    });
    let [found] = found[..] else {
        panic!("{found:?} in {scans} scans");
    };
    assert_eq!(
        (found.slot as usize, found.units),
        (hung.slot(), units(&[9]))
    );
}
