//! Silence: who beats is not fenced, who is late is, and a half fence is finished.

use std::sync::Arc;

use bumpless_failover::judge::Finding;
use bumpless_failover::lease::{Holder, Lease};
use bumpless_failover::{OnSilence, Verdict};
use bumpless_heartbeat::slot::SlotError;
use bumpless_heartbeat::{Observed, UnitSet};
use bumpless_substrate::proof::Proof;
use bumpless_substrate::sync::{Ordering, die_before_change};
use loom::thread;

use crate::cells::{B, Owners, first_epoch, unit, units};
use crate::seeing::{DIED, check_each_death, check_seeing};
use crate::world::{World, scan};

const LOW: u32 = 0;
const HIGH: u32 = 40;

/// The grace of generation 1 is one epoch: at this one its owner is late.
const LATE: u64 = first_epoch(1) + 2;

fn check_silent(finding: &Finding) {
    assert_eq!(
        finding.verdict,
        Verdict::Silent {
            lag_epochs: 2,
            grace_epochs: 1
        }
    );
    assert_eq!(
        (finding.evidence.proof, finding.last_seen_epoch),
        (Proof::Unknown, LATE - 2)
    );
    assert!(finding.is_fenced);
}

/// Fenced only if late: a beat that was done before the watchdog's last look saves its owner.
#[test]
fn an_owner_that_has_beaten_is_not_fenced() {
    let wanted = ["beat seen", "beat seen at the last look", "fenced"];
    check_seeing("judge, beating owner", 3, &wanted, |outcomes| {
        let (world, live) = World::owned(&[HIGH]);
        let mut first = world.watchdog();
        let (lag_epochs, finding) = first.judge(&scan(LATE - 1));
        assert!(
            lag_epochs == 1 && finding.is_none(),
            "a lag of its grace is alive"
        );
        let watchdog = thread::spawn(move || {
            let judged = first.judge(&scan(LATE));
            (judged, first)
        });
        let beaten = world.cells.slot.beat(live, LATE);
        // Release pairs with the Acquire in `examine`.
        world.beaten.store(LATE, Ordering::Release);
        let ((lag_epochs, finding), watchdog) = watchdog.join().unwrap();
        match finding {
            None if lag_epochs == 0 => outcomes.saw("beat seen"),
            None => outcomes.saw("beat seen at the last look"),
            Some(finding) => {
                assert!(
                    !watchdog.beat_in_time.get(),
                    "fenced although it had beaten"
                );
                check_silent(&finding);
                assert_eq!(finding.units, units(&[HIGH]));
                let slot = &world.cells.slot;
                assert_eq!(slot.complete(live, unit(HIGH)), Err(SlotError::Fenced));
                outcomes.saw("fenced");
            }
        }
        if beaten.is_err() {
            assert!(finding.is_some(), "refused although nobody fenced it");
        }
        assert_eq!(watchdog.recorded.get(), 0, "late is not gone");
    });
}

/// Late is not gone: nobody knows whether the owner lives, so its death is not recorded and its slot
/// is not reused; when it wakes up, it finds itself fenced, and nobody else's slot under its hands.
#[test]
fn a_late_owner_is_fenced_and_keeps_its_slot() {
    let wanted = ["woken before", "woken after", "slot kept"];
    check_seeing("judge, late owner", 3, &wanted, |outcomes| {
        let (world, live) = World::owned(&[LOW]);
        let mut watchdog = world.watchdog();
        let watchdog = thread::spawn(move || {
            let (_, finding) = watchdog.judge(&scan(LATE));
            let finding = finding.expect("nobody beats");
            (finding, watchdog)
        });
        let slot = &world.cells.slot;
        let marked = slot.mark(live, unit(HIGH));
        let (finding, watchdog) = watchdog.join().unwrap();
        check_silent(&finding);
        assert_eq!(
            world.cells.verdict.deaths().waiting(),
            0,
            "recorded dead on no proof"
        );
        assert_eq!(watchdog.recorded.get(), 0);
        let expected = if marked.is_ok() {
            units(&[LOW, HIGH])
        } else {
            units(&[LOW])
        };
        assert_eq!(finding.units, expected);
        slot.acknowledge(1, finding.units);
        // As a registrant does it: whose death is on record may be recycled, nobody else.
        let dead = world.cells.verdict.deaths().generation();
        let next = world.cells.register(B, Owners::GoneUpTo(dead));
        assert!(next.is_err(), "the slot of a late owner was given away");
        slot.set_role(bumpless_heartbeat::SlotRole::Other(11));
        assert_eq!(slot.beat(live, LATE), Err(SlotError::Fenced));
        assert_eq!(slot.mark(live, unit(1)), Err(SlotError::Fenced));
        let Observed::Consistent(snapshot) = slot.observe(1) else {
            panic!("at rest")
        };
        assert_eq!((snapshot.generation, snapshot.is_fenced), (1, true));
        outcomes.saw("slot kept");
        assert_eq!(world.cells.give_back(live), Ok(UnitSet::EMPTY));
        world
            .cells
            .register(B, Owners::Unproven)
            .expect("given back and empty");
        outcomes.saw(if marked.is_ok() {
            "woken before"
        } else {
            "woken after"
        });
    });
}

/// The owner works while the watchdog fences: the fence that loses is proof of life.
#[test]
fn a_fence_that_loses_is_judged_anew() {
    check_seeing("judge, fence lost", 4, &["lost", "fenced"], |outcomes| {
        let (world, live) = World::owned(&[]);
        let mut watchdog = world.watchdog();
        let watchdog = thread::spawn(move || {
            let (lag_epochs, finding) = watchdog.judge(&scan(LATE));
            assert_eq!(lag_epochs, 2);
            (finding, watchdog)
        });
        let slot = &world.cells.slot;
        let marked = slot.mark(live, unit(LOW));
        let completed = slot.complete(live, unit(LOW));
        let (finding, mut watchdog) = watchdog.join().unwrap();
        if let Some(finding) = finding {
            check_silent(&finding);
            outcomes.saw("fenced");
        } else {
            assert_eq!(
                (marked, completed),
                (Ok(()), Ok(())),
                "fenced and not reported"
            );
            outcomes.saw("lost");
            let (_, finding) = watchdog.judge(&scan(LATE));
            assert_eq!(finding.expect("still late").units, UnitSet::EMPTY);
        }
    });
}

/// A watchdog dies inside its judgement; the owner beats as long as it can; the next watchdog, which
/// has never seen the slot, finishes a half fence and leaves a whole owner alone.
#[test]
fn a_half_fence_is_finished_by_the_next_watchdog() {
    let wanted = [DIED, "finished", "never begun", "completed", "handed back"];
    check_each_death("judge, watchdog dies", 3, &wanted, |outcomes, changes| {
        let (world, live) = World::owned(&[LOW, HIGH]);
        let (mut first, mut second) = (world.watchdog(), world.watchdog());
        let owner = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.cells.slot.complete(live, unit(HIGH)))
        };
        if die_before_change(changes, || first.judge(&scan(LATE))).is_none() {
            outcomes.saw(DIED);
        }
        let completed = owner.join().unwrap();
        let slot = &world.cells.slot;
        let Observed::Consistent(snapshot) = slot.observe(1) else {
            panic!("at rest")
        };
        let mut finding = None;
        for epoch in LATE..LATE + 3 {
            let beaten = slot.beat(live, epoch);
            assert_eq!(
                beaten.is_err(),
                snapshot.is_fenced,
                "beats on behind a half fence"
            );
            finding = finding.or(second.judge(&scan(epoch)).1);
        }
        let in_flight = if completed.is_ok() {
            units(&[LOW])
        } else {
            units(&[LOW, HIGH])
        };
        match finding {
            Some(finding) => {
                assert!(snapshot.is_fenced, "fenced although it beats");
                assert_eq!(finding.units, in_flight, "lost by a half fence");
                for number in [LOW, HIGH] {
                    assert_eq!(slot.complete(live, unit(number)), Err(SlotError::Fenced));
                }
                assert_eq!(slot.acknowledge(1, finding.units).units, in_flight);
                outcomes.saw("finished");
                outcomes.saw(if completed.is_ok() {
                    "completed"
                } else {
                    "handed back"
                });
            }
            None => {
                assert!(!snapshot.is_fenced, "a half fence was not finished");
                slot.complete(live, unit(LOW)).expect("its own");
                outcomes.saw("never begun");
            }
        }
    });
}

#[test]
fn a_watchdog_that_only_reports_touches_nothing() {
    check_seeing(
        "judge, report only",
        3,
        &["late", "beat seen"],
        |outcomes| {
            let (world, live) = World::owned(&[LOW]);
            let mut watchdog = world.watchdog();
            let watchdog = thread::spawn(move || {
                let scan = bumpless_failover::judge::Scan {
                    on_silence: OnSilence::ReportOnly,
                    ..scan(LATE)
                };
                watchdog.judge(&scan).1
            });
            world
                .cells
                .slot
                .beat(live, LATE)
                .expect("fenced by who only reports");
            world
                .cells
                .slot
                .complete(live, unit(LOW))
                .expect("fenced by who only reports");
            match watchdog.join().unwrap() {
                Some(finding) => {
                    assert!(!finding.is_fenced && finding.units.is_empty());
                    outcomes.saw("late");
                }
                None => outcomes.saw("beat seen"),
            }
        },
    );
}

/// A watchdog that lost its lease before its last look fences nobody.
#[test]
fn a_watchdog_without_the_lease_fences_nobody() {
    let wanted = ["fenced in time", "lost before", "lost in between"];
    check_seeing("judge, lease lost", 3, &wanted, |outcomes| {
        let (world, _live) = World::owned(&[LOW]);
        let mut old = world.watchdog();
        let old = thread::spawn(move || {
            let (_, finding) = old.judge(&scan(LATE));
            (finding, old.lost_in_time.get())
        });
        let held = Lease::load(&world.lease);
        let holder = Holder::Slot {
            slot: 3,
            generation: 1,
        };
        held.take(&world.lease, holder)
            .expect("nobody else takes it");
        let (finding, lost) = old.join().unwrap();
        match (finding, lost) {
            (Some(_), lost) => {
                assert!(!lost, "fenced without the lease");
                outcomes.saw("fenced in time");
            }
            (None, true) => outcomes.saw("lost before"),
            (None, false) => outcomes.saw("lost in between"),
        }
    });
}

/// The owner gives back and somebody else takes the slot, under the eyes of a watchdog for which the
/// first owner is late.
#[test]
fn a_late_judgement_hits_nobody_but_the_owner_it_saw() {
    let wanted = ["fenced in time", "nobody there", "the next owner seen"];
    check_seeing("judge, turnover", 2, &wanted, |outcomes| {
        let (world, live) = World::owned(&[]);
        let mut watchdog = world.watchdog();
        let watchdog = thread::spawn(move || watchdog.judge(&scan(first_epoch(2))));
        assert_eq!(world.cells.give_back(live), Ok(UnitSet::EMPTY));
        let next = world
            .cells
            .register(B, Owners::Unproven)
            .expect("given back and empty");
        let slot = &world.cells.slot;
        slot.mark(next, unit(HIGH))
            .expect("fenced for its predecessor");
        let (lag_epochs, finding) = watchdog.join().unwrap();
        slot.beat(next, first_epoch(2) + 1)
            .expect("fenced for its predecessor");
        slot.complete(next, unit(HIGH))
            .expect("fenced for its predecessor");
        match finding {
            Some(finding) => {
                assert_eq!((finding.claim, finding.units), (live, UnitSet::EMPTY));
                outcomes.saw("fenced in time");
            }
            None if lag_epochs > 0 => outcomes.saw("nobody there"),
            None => outcomes.saw("the next owner seen"),
        }
    });
}
