//! Exactly what a report showed, exactly once.

use bumpless_failover::{AcknowledgeError, FailoverWatchdog, Verdict};
use bumpless_heartbeat::{HeartbeatTable, Unit};

use crate::scene::{Scene, assert_refused, die, only, register, scan_until_reported, units};

fn unit(number: u8) -> Unit {
    Unit::try_from(number).unwrap()
}

#[test]
fn a_report_repeats_until_it_is_acknowledged_and_then_no_more() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let owner = register(&table, &[1, 40]);
    die(&table, owner);
    let first = only(&watchdog.scan());
    for _ in 0..5 {
        assert_eq!(only(&watchdog.scan()), first);
    }
    let names: Vec<String> = first
        .units
        .iter()
        .map(|u| first.unit_name(u).to_string())
        .collect();
    let table_id = format!("{:016x}", table.creation_id());
    assert_eq!(
        names,
        [format!("{table_id}/0/1/1"), format!("{table_id}/0/1/40")]
    );
    let taken = watchdog.clear_dead_bitmap(first).unwrap();
    assert_eq!((taken.units, taken.deaths), (units(&[1, 40]), 1));
    for _ in 0..5 {
        assert!(watchdog.scan().is_empty());
    }
    let again = watchdog.clear_dead_bitmap(first);
    assert_refused!(again, AcknowledgeError::AlreadyAcknowledged { .. });
}

#[test]
fn units_are_acknowledged_one_by_one_and_the_rest_is_reported_again() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let owner = register(&table, &[1, 40, 100]);
    die(&table, owner);
    let slot = only(&watchdog.scan());
    let taken = watchdog.acknowledge_unit(slot, unit(40)).unwrap();
    assert_eq!((taken.units, taken.deaths), (units(&[40]), 1));
    let again = watchdog.acknowledge_unit(slot, unit(40));
    assert_refused!(again, AcknowledgeError::AlreadyAcknowledged { .. });
    assert_eq!(only(&watchdog.scan()).units, units(&[1, 100]));
    let taken = watchdog.clear_dead_bitmap(slot).unwrap();
    assert_eq!((taken.units, taken.deaths), (units(&[1, 100]), 0));
    assert!(watchdog.scan().is_empty());
}

#[test]
fn of_several_deaths_those_that_nobody_acknowledged_are_told_in_order_and_as_late_as_they_are() {
    let scene = Scene::new();
    let table = scene.table(8);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let owners: Vec<_> = (0..4).map(|number| register(&table, &[number])).collect();
    for owner in &owners {
        die(&table, *owner);
    }
    let told = |scans: u64| {
        let report = watchdog.scan();
        assert_eq!(report.largest_lag_epochs, scans);
        let slots = report.dead_slots.iter().map(|(slot, _)| *slot);
        slots.collect::<Vec<_>>()
    };
    let first = told(0);
    assert_eq!(first.len(), 4);
    assert_eq!(told(1), first);
    watchdog.clear_dead_bitmap(first[1]).unwrap();
    assert_eq!(told(2), [first[0], first[2], first[3]]);
    assert_eq!(told(3), [first[0], first[2], first[3]]);
    if cfg!(bumpless_portable) {
        // Without locks an owner that is marked and lives keeps its slot.
        return;
    }
    // The slot's next owner is not its last one.
    table.unregister(owners[1]).unwrap();
    let next = register(&table, &[9]);
    assert_eq!(next.slot(), owners[1].slot());
    die(&table, next);
    let last = told(4);
    assert_eq!([last[0], last[2], last[3]], [first[0], first[2], first[3]]);
    assert_eq!(last[1].units, units(&[9]));
}

#[test]
fn a_unit_that_was_not_in_the_report_is_not_taken() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let owner = register(&table, &[1]);
    die(&table, owner);
    let slot = only(&watchdog.scan());
    let wanted = unit(2);
    let result = watchdog.acknowledge_unit(slot, wanted);
    assert_refused!(result, AcknowledgeError::NotReported { unit, .. } if unit == wanted);
    assert_eq!(only(&watchdog.scan()), slot);
}

#[test]
fn a_stale_report_does_not_touch_the_next_owner() {
    let scene = Scene::new();
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let _ = watchdog.scan();
    let first = register(&table, &[5]);
    table.unregister(first).unwrap();
    let old = only(&watchdog.scan());
    watchdog.clear_dead_bitmap(old).unwrap();
    let next = register(&table, &[5]);
    assert_eq!(
        (next.slot(), next.generation()),
        (first.slot(), first.generation() + 1)
    );
    let whole = watchdog.clear_dead_bitmap(old);
    assert_refused!(whole, AcknowledgeError::AlreadyAcknowledged { .. });
    let one = watchdog.acknowledge_unit(old, unit(5));
    assert_refused!(one, AcknowledgeError::AlreadyAcknowledged { .. });
    table.beat(next).unwrap();
    table.clear_in_flight(next, 5_u8).unwrap();
}

#[test]
fn a_silence_without_units_is_told_until_it_is_acknowledged() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 1);
    register(&table, &[]);
    let slot = scan_until_reported(&watchdog);
    assert!(slot.units.is_empty());
    assert_eq!(only(&watchdog.scan()).generation, slot.generation);
    let taken = watchdog.clear_dead_bitmap(slot).unwrap();
    assert!(taken.silence && taken.units.is_empty() && taken.deaths == 0);
    assert!(watchdog.scan().is_empty());
}

#[test]
fn deaths_that_recyclers_recorded_are_reported_and_acknowledged_once() {
    let scene = Scene::new();
    let table = scene.table(1);
    // What a registrant does that finds the slot's owner gone, twice.
    for _ in 0..2 {
        let owner = register(&table, &[]);
        let cells = table.cells(0).unwrap();
        table.record_death(cells, cells.slot.peek_claim());
        table.record_death(cells, cells.slot.peek_claim());
        table.unregister(owner).unwrap();
    }
    let heir = register(&table, &[4]);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let slot = only(&watchdog.scan());
    assert_eq!(
        (slot.verdict, slot.deaths, slot.generation),
        (Verdict::Died, 2, 2)
    );
    assert_eq!(watchdog.clear_dead_bitmap(slot).unwrap().deaths, 2);
    let again = watchdog.clear_dead_bitmap(slot);
    assert_refused!(again, AcknowledgeError::AlreadyAcknowledged { .. });
    table.beat(heir).unwrap();
    assert!(watchdog.scan().is_empty());
    table.clear_in_flight(heir, 4_u8).unwrap();
}

#[test]
fn a_death_recorded_since_its_slot_was_judged_waits_for_the_scan_that_knows_its_units() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let owner = register(&table, &[7]);
    assert!(watchdog.scan().is_empty());
    // The judgement finds an owner that beat; the recycler is half way.
    table.beat(owner).unwrap();
    let cells = table.cells(owner.slot()).unwrap();
    table.record_death(cells, cells.slot.peek_claim());
    assert!(watchdog.scan().is_empty());
    die(&table, owner);
    let slot = only(&watchdog.scan());
    assert_eq!((slot.units, slot.deaths), (units(&[7]), 1));
    watchdog.clear_dead_bitmap(slot).unwrap();
}

#[test]
fn a_report_of_another_table_is_refused() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    die(&table, register(&table, &[1]));
    let slot = only(&watchdog.scan());
    let other = HeartbeatTable::create(scene.path("other"), 4).unwrap();
    let others = FailoverWatchdog::new(&other);
    let result = others.clear_dead_bitmap(slot);
    assert_refused!(result, AcknowledgeError::OtherTable { found, wanted, .. }
        if found == table.creation_id() && wanted == other.creation_id());
    let observer = HeartbeatTable::open_read_only(scene.path("table")).unwrap();
    let looking = FailoverWatchdog::new(&observer);
    let result = looking.clear_dead_bitmap(slot);
    assert_refused!(result, AcknowledgeError::ReadOnly { .. });
    watchdog.clear_dead_bitmap(slot).unwrap();
}

#[test]
fn two_that_acknowledge_the_same_report_share_it_without_doubling() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    for round in 0..300 {
        let owner = register(&table, &[0, 33, 66, 99, 127]);
        die(&table, owner);
        let slot = only(&watchdog.scan());
        let [first, second] = std::thread::scope(|scope| {
            let acknowledge = || watchdog.clear_dead_bitmap(slot).unwrap_or_default();
            [scope.spawn(acknowledge), scope.spawn(acknowledge)].map(|t| t.join().unwrap())
        });
        let both = first.units.bits() & second.units.bits();
        assert_eq!(both, 0, "round {round}: twice");
        assert_eq!(first.units.bits() | second.units.bits(), slot.units.bits());
        assert_eq!(first.deaths + second.deaths, 1);
        assert!(watchdog.scan().is_empty());
        table.unregister(owner).unwrap();
    }
}
