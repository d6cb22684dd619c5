//! Recycling: the slot of an owner that is proven gone, between registrants and watchdogs.

use std::sync::Arc;

use bumpless_heartbeat::UnitSet;
use bumpless_heartbeat::slot::FenceOutcome;
use bumpless_substrate::claim::Claim;
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU64, Ordering};
use loom::thread;

use crate::cells::{A, B, C, Cells, HandedBack, Obstacle, Owners, first_epoch, named, unit, units};
use crate::seeing::check_seeing;

const LOW: u32 = 0;
const HIGH: u32 = 40;

/// Panics unless the slot is the winner's, clean, and the death of generation 1 is told once.
fn check_recycled(cells: &Cells) {
    let next = cells.slot.claimed_by();
    assert_eq!((next.is_live(), next.generation()), (true, 2));
    assert_eq!(cells.slot.units(2), UnitSet::EMPTY);
    cells
        .slot
        .beat(next, first_epoch(2) + 1)
        .expect("fenced with its predecessor");
    cells
        .slot
        .mark(next, unit(HIGH))
        .expect("fenced with its predecessor");
    let deaths = cells.verdict.deaths();
    assert_eq!(deaths.waiting(), 1, "one death, told once: {deaths:?}");
    assert_eq!(cells.verdict.deaths().generation(), 1);
}

#[test]
fn of_two_recyclers_one_wins_and_the_death_is_recorded_once() {
    check_seeing(
        "recycle, 2 recyclers",
        2,
        &["main wins", "child wins"],
        |outcomes| {
            let (cells, _gone) = Cells::owned(&[]);
            let child = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.register(B, Owners::GoneUpTo(1)))
            };
            let main = cells.register(C, Owners::GoneUpTo(1));
            let child = child.join().unwrap();
            assert!(
                main.is_ok() != child.is_ok(),
                "not one winner: {main:?}, {child:?}"
            );
            check_recycled(&cells);
            outcomes.saw(if main.is_ok() {
                "main wins"
            } else {
                "child wins"
            });
        },
    );
}

/// The watchdog fences, records, hands back and acknowledges; the recycler fences, records, and takes
/// the slot only if nothing is left in it.
#[test]
fn a_recycler_leaves_units_to_the_watchdog_and_takes_an_empty_slot() {
    let wanted = [
        "units left",
        "recycled",
        "watchdog records",
        "recycler records",
    ];
    check_seeing("recycle, against watchdog", 3, &wanted, |outcomes| {
        let (cells, gone) = Cells::owned(&[HIGH]);
        let handed_back = Arc::new(AtomicU64::zeroed());
        let watchdog = {
            let (cells, handed_back) = (Arc::clone(&cells), Arc::clone(&handed_back));
            thread::spawn(move || {
                let slot = &cells.slot;
                let FenceOutcome::Fenced(found) = slot.fence(1) else {
                    return HandedBack::default();
                };
                let recorded = cells.verdict.record_death(gone);
                // Relaxed: what the acknowledgement publishes.
                handed_back.store(found.len().into(), Ordering::Relaxed);
                let taken = slot.acknowledge(1, found);
                HandedBack {
                    units: taken.units,
                    notice: taken.notice,
                    recorded,
                }
            })
        };
        let seen = cells.slot.claimed_by();
        let recorded = cells.verdict.record_death(seen);
        let next = cells.take(seen, B, cells.slot.recycle(seen));
        // Relaxed: as above.
        let done = handed_back.load(Ordering::Relaxed);
        let watchdog = watchdog.join().unwrap();
        assert_eq!(
            watchdog.units,
            units(&[HIGH]),
            "lost: recycled before it was handed back"
        );
        assert!(
            recorded != watchdog.recorded,
            "a death is recorded by exactly one"
        );
        outcomes.saw(if recorded {
            "recycler records"
        } else {
            "watchdog records"
        });
        match next {
            Ok(_) => {
                assert_eq!(done, 1, "reused before the hand-back was done");
                outcomes.saw("recycled");
            }
            Err(obstacle) => {
                assert_eq!(obstacle, Obstacle::Units(units(&[HIGH])));
                cells
                    .register(B, Owners::GoneUpTo(1))
                    .expect("acknowledged and empty");
                outcomes.saw("units left");
            }
        }
        check_recycled(&cells);
    });
}

/// The watchdog found the owner gone, and is slow: the slot is in use again when it acts.
#[test]
fn a_slow_watchdog_hits_nobody_but_the_dead() {
    check_seeing(
        "recycle, slow watchdog",
        2,
        &["in time", "too late"],
        |outcomes| {
            let (cells, gone) = Cells::owned(&[]);
            let watchdog = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || {
                    let outcome = cells.slot.fence(1);
                    let recorded = cells.verdict.record_death(gone);
                    (
                        outcome,
                        recorded,
                        cells.slot.acknowledge(1, units(&[LOW, HIGH])),
                    )
                })
            };
            let recorded = cells.verdict.record_death(gone);
            let next = cells
                .take(gone, B, cells.slot.recycle(gone))
                .expect("gone and empty");
            cells
                .slot
                .mark(next, unit(LOW))
                .expect("fenced by a slow watchdog");
            let (outcome, also_recorded, taken) = watchdog.join().unwrap();
            assert_eq!(taken.units, UnitSet::EMPTY, "took a unit of the next owner");
            assert!(
                recorded != also_recorded,
                "a death is recorded by exactly one"
            );
            cells
                .slot
                .complete(next, unit(LOW))
                .expect("taken by a slow watchdog");
            check_recycled(&cells);
            let late = outcome == FenceOutcome::Moved;
            outcomes.saw(if late { "too late" } else { "in time" });
        },
    );
}

/// The claimer of generation 2 died before it had written all its words; two recyclers, one reader.
#[test]
fn a_dead_claimer_is_recycled_by_one() {
    let wanted = ["main wins", "child wins", "in transition", "the next owner"];
    check_seeing("recycle, dead claimer", 1, &wanted, |outcomes| {
        let cells = Cells::free();
        let dead = cells.slot.claim(Claim::FREE, A);
        let dead = dead.unwrap();
        let child = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.register(B, Owners::GoneUpTo(1)))
        };
        let observer = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.slot.observe(1))
        };
        let main = cells.register(C, Owners::GoneUpTo(1));
        let child = child.join().unwrap();
        outcomes.saw(named(observer.join().unwrap()));
        assert!(
            main.is_ok() != child.is_ok(),
            "not one winner: {main:?}, {child:?}"
        );
        assert_eq!(cells.verdict.last_dead(), dead);
        check_recycled(&cells);
        outcomes.saw(if main.is_ok() {
            "main wins"
        } else {
            "child wins"
        });
    });
}
