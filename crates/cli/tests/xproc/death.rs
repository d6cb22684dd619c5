//! Owners that end: killed with and without units, stopped by a debugger, not reaped, one after another.

use bumpless_failover::{AcknowledgeError, FailoverWatchdog, SlotRef, Verdict};
use bumpless_heartbeat::{Unit, UnitSet};

use crate::child::Child;
use crate::scene::Scene;

const GRACE_EPOCHS: u64 = 3;

/// These units.
pub fn units(numbers: &[u32]) -> UnitSet {
    let units = numbers.iter().map(|number| Unit::try_from(*number));
    units.map(|unit| unit.expect("a unit")).collect()
}

/// What the next scan reports, if it is one slot.
#[track_caller]
pub fn the_one_report(watchdog: &FailoverWatchdog<'_>) -> SlotRef {
    let report = watchdog.scan();
    match report.dead_slots[..] {
        [(slot, _)] => slot,
        _ => panic!(
            "not one report: {report:?}\n{}",
            crate::scene::table_state()
        ),
    }
}

/// 1.
pub fn killed_worker_is_reported_dead_and_its_units_once(scene: &Scene) {
    let table = scene.table(64);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let mut bystander = scene.worker();
    for round in 0..20 {
        let mut victim = scene.worker();
        victim.done("mark 0 63 127");
        for _ in 0..5 {
            victim.done("beat");
            bystander.done("beat");
            assert!(watchdog.scan().is_empty());
        }
        victim.kill();
        bystander.done("beat");
        // The second scan at the latest: the first may still find no lag.
        let first = watchdog.scan();
        bystander.done("beat");
        let slot = the_one_report(&watchdog);
        assert!(
            first.is_empty() || first.dead_slots[0].0 == slot,
            "{first:?}"
        );
        assert_eq!((slot.pid, slot.verdict), (victim.pid(), Verdict::Died));
        assert_eq!(slot.units, units(&[0, 63, 127]));
        let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
        assert_eq!(
            (taken.units, taken.deaths),
            (slot.units, 1),
            "round {round}"
        );
        bystander.done("beat");
        assert!(watchdog.scan().is_empty(), "round {round}: acknowledged");
        let again = watchdog.clear_dead_bitmap(slot);
        assert!(matches!(
            again,
            Err(AcknowledgeError::AlreadyAcknowledged { .. })
        ));
    }
    let filled = scene.member().done("fill");
    assert!(
        filled.starts_with("63 "),
        "all but the bystander's: {filled}"
    );
}

/// 2.
pub fn idle_deaths_never_fill_the_table(scene: &Scene) {
    const SLOTS: u32 = 8;
    const ROUNDS: u32 = 125;
    let table = scene.table(SLOTS as usize);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let workers: Vec<Child> = (0..SLOTS).map(|_| scene.worker()).collect();
        workers.iter().for_each(Child::kill);
        // Every third round nobody looks: the deaths are found by those who register next.
        if round % 3 == 1 && round + 1 < ROUNDS {
            continue;
        }
        let _ = watchdog.scan();
        let report = watchdog.scan();
        assert_eq!(report.dead_slots.len(), SLOTS as usize, "round {round}");
        for (slot, _) in report.dead_slots {
            assert_eq!(slot.verdict, Verdict::Died);
            let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
            acknowledged += taken.deaths;
        }
        assert!(watchdog.scan().is_empty());
    }
    assert_eq!(acknowledged, SLOTS * ROUNDS);
}

/// 12.
pub fn stop_within_the_grace_is_nothing(scene: &Scene) {
    let table = scene.table(64);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let mut worker = scene.worker();
    worker.done("mark 5");
    assert!(watchdog.scan().is_empty());
    for _ in 0..10 {
        worker.done("beat");
        worker.stop();
        for lag_epochs in 1..=GRACE_EPOCHS {
            let report = watchdog.scan();
            assert_eq!(report.largest_lag_epochs, lag_epochs);
            assert!(
                report.is_empty() && report.suspects.is_empty(),
                "{report:?}"
            );
        }
        worker.resume();
        worker.done("beat");
    }
    worker.done("complete 5");
    worker.done("unregister");
}

/// 15.
pub fn zombie_is_dead(scene: &Scene) {
    let table = scene.table(64);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let mut worker = scene.worker();
    worker.done("mark 7");
    assert!(watchdog.scan().is_empty());
    worker.kill();
    assert_eq!(worker.state_letter(), 'Z');
    let slot = the_one_report(&watchdog);
    assert_eq!((slot.verdict, slot.units), (Verdict::Died, units(&[7])));
    assert_eq!(worker.state_letter(), 'Z', "nobody reaped it meanwhile");
}

/// 44.
pub fn deaths_found_by_recyclers_are_reported(scene: &Scene) {
    let table = scene.table(1);
    for _ in 0..2 {
        // Each takes the only slot from the one before.
        let dead = scene.worker();
        dead.kill();
    }
    let mut heir = scene.worker();
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let slot = the_one_report(&watchdog);
    assert_eq!((slot.verdict, slot.deaths), (Verdict::Died, 2));
    assert!(slot.units.is_empty());
    let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
    assert_eq!(taken.deaths, 2);
    let again = watchdog.clear_dead_bitmap(slot);
    assert!(matches!(
        again,
        Err(AcknowledgeError::AlreadyAcknowledged { .. })
    ));
    heir.done("beat");
    assert!(watchdog.scan().is_empty());
    heir.done("mark 1");
    heir.done("complete 1");
}
