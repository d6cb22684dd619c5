//! What a scan finds, and when.

use bumpless_failover::{FailoverWatchdog, OnSilence, Verdict};
use bumpless_heartbeat::{HeartbeatError, HeartbeatTable};
use bumpless_substrate::claim::Claim;
use bumpless_substrate::proof::{Proof, ProofSource};
use std::os::unix::fs::FileExt;

use crate::scene::{
    Scene, assert_refused, die, only, register, register_with_grace, scan_until_reported, units,
};

#[test]
fn each_scan_of_the_primary_ticks_by_exactly_one() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::new(&table);
    for epoch in 1..=10 {
        assert_eq!(watchdog.scan().new_global_epoch, epoch);
        assert_eq!(table.global_epoch(), epoch);
    }
}

#[test]
fn a_lag_equal_to_the_grace_is_alive_and_one_more_is_silent() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let late = register(&table, &[5]);
    assert!(watchdog.scan().is_empty(), "the first sight is a beat");
    for lag_epochs in 1..=3 {
        let report = watchdog.scan();
        assert_eq!(report.largest_lag_epochs, lag_epochs);
        assert!(report.is_empty(), "{report:?}");
    }
    table.mark_in_flight(late, 6_u8).unwrap();
    let slot = scan_until_reported(&watchdog);
    let text = slot.to_string();
    // A scan that the machine stops in the middle fences nobody: the next one does.
    let Verdict::Silent {
        lag_epochs: 4..,
        grace_epochs: 3,
    } = slot.verdict
    else {
        panic!("{text}");
    };
    assert!(text.ends_with(" epochs > grace 3"), "{text}");
    // Without a pidfd nobody can be seen to live.
    let life = if cfg!(bumpless_portable) {
        Proof::Unknown
    } else {
        Proof::Alive
    };
    assert_eq!((slot.units, slot.evidence.proof), (units(&[5, 6]), life));
    assert_refused!(table.beat(late), HeartbeatError::Fenced { .. });
}

/// More than one scan can ask after within the time in which it fences.
#[test]
fn of_thousands_that_are_silent_and_live_every_one_is_handed_back() {
    const ATTACHED: usize = 8;
    const OWNERS: usize = ATTACHED * 2_048;
    let scene = Scene::new();
    let table = scene.table(OWNERS + 1);
    let attached: Vec<_> = (0..ATTACHED)
        .map(|_| HeartbeatTable::attach(scene.path("table")).expect("the table"))
        .collect();
    for table in &attached {
        // As many as go through one.
        for _ in 0..2_048 {
            register(table, &[5]);
        }
    }
    let watchdog = FailoverWatchdog::with_grace(&table, 1);
    let begun = std::time::Instant::now();
    let mut handed_back = 0;
    while handed_back < OWNERS {
        for (slot, _) in watchdog.scan().dead_slots {
            let acknowledged = watchdog.clear_dead_bitmap(slot).unwrap();
            assert_eq!(acknowledged.units, units(&[5]), "{slot}");
            handed_back += 1;
        }
        assert!(begun.elapsed().as_secs() < 60, "{handed_back}");
    }
    // And nobody a second time.
    assert!(watchdog.scan().is_empty());
}

#[test]
fn an_owner_that_beats_within_the_grace_is_never_late() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 2);
    let owner = register(&table, &[1]);
    for scan in 0..60 {
        if scan % 2 == 0 {
            table.beat(owner).unwrap();
        }
        let report = watchdog.scan();
        assert!(
            report.is_empty() && report.suspects.is_empty(),
            "{report:?}"
        );
    }
    table.clear_in_flight(owner, 1_u8).unwrap();
}

#[test]
fn a_slot_with_a_grace_of_its_own_is_judged_by_that() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 2);
    let patient = register_with_grace(&table, 20, &[1]);
    let hasty = register_with_grace(&table, 1, &[2]);
    let slot = scan_until_reported(&watchdog);
    assert_eq!(slot.slot as usize, hasty.slot());
    let Verdict::Silent {
        grace_epochs: 1, ..
    } = slot.verdict
    else {
        panic!("{slot}");
    };
    watchdog.clear_dead_bitmap(slot).unwrap();
    table.set_grace(patient, 3).unwrap();
    let slot = scan_until_reported(&watchdog);
    assert_eq!(slot.slot as usize, patient.slot());
    assert!(
        matches!(
            slot.verdict,
            Verdict::Silent {
                grace_epochs: 3,
                ..
            }
        ),
        "{slot}"
    );
}

#[test]
fn a_grace_of_0_counts_as_1() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 0);
    register(&table, &[]);
    assert!(watchdog.scan().is_empty() && watchdog.scan().is_empty());
    let slot = scan_until_reported(&watchdog);
    assert!(
        matches!(
            slot.verdict,
            Verdict::Silent {
                grace_epochs: 1,
                ..
            }
        ),
        "{slot}"
    );
}

#[test]
fn report_only_says_who_is_late_and_takes_nothing() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 1).on_silence(OnSilence::ReportOnly);
    let late = register(&table, &[5]);
    let suspects: Vec<_> = (0..4).map(|_| watchdog.scan()).collect();
    assert!(
        suspects.iter().all(|report| report.is_empty()),
        "{suspects:?}"
    );
    let [slot] = suspects[3].suspects[..] else {
        panic!("{suspects:?}");
    };
    assert_eq!(
        slot.to_string().split(": ").last(),
        Some("lag 3 epochs > grace 1")
    );
    table.beat(late).unwrap();
    table.clear_in_flight(late, 5_u8).unwrap();
    assert!(watchdog.scan().suspects.is_empty());
    // A death is no silence.
    table.mark_in_flight(late, 6_u8).unwrap();
    die(&table, late);
    let slot = only(&watchdog.scan());
    assert_eq!((slot.verdict, slot.units), (Verdict::Died, units(&[6])));
}

#[test]
fn a_marked_owner_is_dead_in_the_very_next_scan() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 1_000);
    let owner = register(&table, &[0, 127]);
    table.beat(owner).unwrap();
    assert!(watchdog.scan().is_empty());
    die(&table, owner);
    let slot = only(&watchdog.scan());
    assert_eq!(
        (slot.verdict, slot.units),
        (Verdict::Died, units(&[0, 127]))
    );
    assert_eq!(slot.evidence.source, ProofSource::Certificate);
    assert_eq!(slot.deaths, 1);
}

#[test]
fn died_may_follow_silent_without_a_second_hand_back() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 1);
    let owner = register(&table, &[3]);
    let silent = scan_until_reported(&watchdog);
    assert_eq!(
        watchdog.clear_dead_bitmap(silent).unwrap().units,
        units(&[3])
    );
    assert!(watchdog.scan().is_empty());
    die(&table, owner);
    let died = only(&watchdog.scan());
    assert_eq!(
        (died.verdict, died.generation),
        (Verdict::Died, silent.generation)
    );
    assert!(died.units.is_empty());
    let taken = watchdog.clear_dead_bitmap(died).unwrap();
    assert_eq!((taken.units, taken.deaths), (units(&[]), 1));
    assert!(watchdog.scan().is_empty());
}

#[test]
fn units_of_one_who_left_are_handed_back_and_an_empty_leaving_is_no_news() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let [idle, busy] = [register(&table, &[]), register(&table, &[9])];
    table.unregister(idle).unwrap();
    table.unregister(busy).unwrap();
    let slot = only(&watchdog.scan());
    assert_eq!(slot.slot as usize, busy.slot());
    assert_eq!((slot.verdict, slot.units), (Verdict::Released, units(&[9])));
    watchdog.clear_dead_bitmap(slot).unwrap();
    assert!(watchdog.scan().is_empty());
}

#[test]
fn a_claim_in_an_unknown_state_is_reported_and_left_alone() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 1);
    let owner = register(&table, &[9]);
    let claim = table.cells(owner.slot()).unwrap().slot.peek_claim();
    let unknown = Claim::from_bits(claim.bits() | 0xf);
    let file = std::fs::File::options()
        .write(true)
        .open(scene.path("table"))
        .unwrap();
    let at = 384 + 64 * owner.slot() as u64;
    file.write_all_at(&unknown.bits().to_ne_bytes(), at)
        .unwrap();
    for _ in 0..5 {
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
        assert_eq!(report.suspects[0].verdict, Verdict::Quarantined);
    }
    let slot = table.cells(owner.slot()).unwrap().slot;
    assert_eq!(slot.peek_claim(), unknown);
    assert_eq!(slot.units(claim.generation()), units(&[9]));
}

#[test]
fn a_report_that_is_used_again_forgets_the_last_scan() {
    let scene = Scene::new();
    let table = scene.table(4);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let owner = register(&table, &[9]);
    die(&table, owner);
    let mut report = watchdog.scan();
    watchdog.clear_dead_bitmap(only(&report)).unwrap();
    watchdog.scan_into(&mut report);
    assert!(
        report.is_empty() && report.suspects.is_empty(),
        "{report:?}"
    );
    assert_eq!(report.new_global_epoch, 2);
}
