//! Owners that end: large ones, killed with and without units, stopped by a debugger, not reaped, one after another.

use std::time::Duration;

use bumpless_failover::{AcknowledgeError, FailoverWatchdog, ReclaimReport, SlotRef, Verdict};
use bumpless_heartbeat::{Certificate, Unit, UnitSet};
use bumpless_substrate::clock::monotonic_ns;

use crate::child::Child;
use crate::pace::Paced;
use crate::roles::number;
use crate::scene::{Scene, table_state};

const GRACE_EPOCHS: u64 = 3;

/// More scans than any report needs, also when some of them are disturbed: one that the machine stops
/// in the middle fences nobody for silence.
const SCANS_MAX: u64 = 50;

/// These units.
pub fn units(numbers: &[u32]) -> UnitSet {
    let units = numbers.iter().map(|number| Unit::try_from(*number));
    units.map(|unit| unit.expect("a unit")).collect()
}

/// Scans until the owner with this pid is reported; what was reported of it, and in which scan.
#[track_caller]
pub fn scan_until_reported(watchdog: &FailoverWatchdog<'_>, pid: u32) -> (SlotRef, u64) {
    let mut report = ReclaimReport::default();
    for scan in 1..=SCANS_MAX {
        watchdog.scan_into(&mut report);
        if let Some((slot, _)) = report.dead_slots.iter().find(|(slot, _)| slot.pid == pid) {
            return (*slot, scan);
        }
    }
    panic!("pid {pid} is not reported: {report:?}\n{}", table_state());
}

/// Asserts that all of a report was acknowledged before.
#[track_caller]
pub fn assert_acknowledged(watchdog: &FailoverWatchdog<'_>, slot: SlotRef) {
    let again = watchdog.clear_dead_bitmap(slot);
    let is_refused = matches!(again, Err(AcknowledgeError::AlreadyAcknowledged { .. }));
    assert!(is_refused, "{slot}: {again:?}");
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
        let (slot, scans) = scan_until_reported(&watchdog, victim.pid());
        assert!(scans <= 2, "round {round}: only in scan {scans}");
        assert_eq!(slot.verdict, Verdict::Died);
        assert_eq!(slot.units, units(&[0, 63, 127]));
        let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
        assert_eq!(
            (taken.units, taken.deaths),
            (slot.units, 1),
            "round {round}"
        );
        bystander.done("beat");
        assert!(watchdog.scan().is_empty(), "round {round}: acknowledged");
        assert_acknowledged(&watchdog, slot);
    }
    let filled = scene.member().done("fill");
    assert!(
        filled.starts_with("62 "),
        "all but the bystander's and the watchdog's: {filled}"
    );
}

/// 2.
pub fn idle_deaths_never_fill_the_table(scene: &Scene) {
    // The watchdog has the eighth slot.
    const WORKERS: u32 = 7;
    const ROUNDS: u32 = 143;
    let table = scene.table(8);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    assert!(watchdog.scan().is_empty());
    let mut acknowledged = 0;
    for round in 0..ROUNDS {
        let workers: Vec<Child> = (0..WORKERS).map(|_| scene.worker()).collect();
        workers.iter().for_each(Child::kill);
        // Every third round nobody looks: the deaths are found by those who register next.
        if round % 3 == 1 && round + 1 < ROUNDS {
            continue;
        }
        let report = watchdog.scan();
        assert_eq!(report.dead_slots.len(), WORKERS as usize, "round {round}");
        for (slot, _) in report.dead_slots {
            assert_eq!(slot.verdict, Verdict::Died);
            let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
            acknowledged += taken.deaths;
        }
        assert!(watchdog.scan().is_empty());
    }
    assert_eq!(acknowledged, WORKERS * ROUNDS);
}

/// 3.
pub fn death_of_a_large_worker_is_seen_at_once(scene: &Scene) {
    const DEATHS: usize = 5;
    const AT_ONCE: Duration = Duration::from_millis(10);
    let table = scene.table(64);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let _ = watchdog.scan();
    let mut seen = Paced::new();
    let mut ended_after: Vec<Duration> = (0..DEATHS)
        .map(|_| {
            let mut victim = scene.member();
            victim.done("touch 1024");
            let slot_and_generation = victim.done("register");
            let slot = slot_and_generation.split(' ').next().map_or(0, number);
            victim.done("mark 5");
            let cells = table.cells(slot).expect("a slot");
            let (killed_ns, seen_ns, ended_ns) = std::thread::scope(|scope| {
                let watcher = scope.spawn(|| {
                    while cells.slot.certificate() != Certificate::Died {
                        watchdog.wait_for_change(Duration::from_secs(1));
                    }
                    monotonic_ns()
                });
                let killed_ns = monotonic_ns();
                victim.kill();
                let ended_ns = monotonic_ns();
                (killed_ns, watcher.join().expect("a moment"), ended_ns)
            });
            let (slot, _) = scan_until_reported(&watchdog, victim.pid());
            assert_eq!((slot.verdict, slot.units), (Verdict::Died, units(&[5])));
            let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
            assert_eq!(taken.units, slot.units);
            assert_acknowledged(&watchdog, slot);
            let [seen_after, ended_after] = [seen_ns, ended_ns]
                .map(|at_ns| Duration::from_nanos(at_ns.saturating_sub(killed_ns)));
            seen.push(seen_after);
            ended_after
        })
        .collect();
    ended_after.sort_unstable();
    let ended_after = ended_after[DEATHS / 2];
    // On a machine that is busy or slow all of it takes longer, and the giving back of the memory most.
    let [p50, longest] = seen.assert_at_once((ended_after / 4).max(AT_ONCE));
    scene.note(&format!(
        "p50 {p50:.1?}, at most {longest:.1?}, ended after {ended_after:.1?}"
    ));
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
    let (slot, _) = scan_until_reported(&watchdog, worker.pid());
    assert_eq!((slot.verdict, slot.units), (Verdict::Died, units(&[7])));
    assert_eq!(worker.state_letter(), 'Z', "nobody reaped it meanwhile");
}

/// 44.
pub fn deaths_found_by_recyclers_are_reported(scene: &Scene) {
    let table = scene.table(1);
    // Each takes the only slot from the one before.
    let [first, second] = [(); 2].map(|()| {
        let worker = scene.worker();
        worker.kill();
        worker.pid()
    });
    let mut heir = scene.worker();
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let (slot, scans) = scan_until_reported(&watchdog, second);
    assert_ne!(first, second);
    assert_eq!((slot.verdict, slot.deaths, scans), (Verdict::Died, 2, 1));
    assert!(slot.units.is_empty());
    let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
    assert_eq!(taken.deaths, 2);
    assert_acknowledged(&watchdog, slot);
    heir.done("beat");
    assert!(watchdog.scan().is_empty());
    heir.done("mark 1");
    heir.done("complete 1");
}
