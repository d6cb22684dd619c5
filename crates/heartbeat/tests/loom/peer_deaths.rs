//! A watchdog or a recycler dies before any one of its changes, with others beside it; whoever comes
//! next finishes.

use std::sync::Arc;

use bumpless_heartbeat::slot::SlotError;
use bumpless_heartbeat::{Observed, UnitSet};
use bumpless_substrate::sync::die_before_change;
use loom::thread;

use crate::cells::{B, C, Cells, Obstacle, Owners, first_epoch, named, unit, units};
use crate::seeing::{DIED, check_each_death};

const LOW: u32 = 0;
const HIGH: u32 = 40;

/// A late owner works on while a watchdog dies inside its fence.
#[test]
fn dying_in_fence_leaves_a_slot_that_the_next_scan_finishes() {
    let wanted = [
        DIED,
        "half fenced",
        "completed",
        "handed back",
        "the first owner",
    ];
    check_each_death("death in fence", 2, &wanted, |outcomes, changes| {
        let (cells, live) = Cells::owned(&[LOW, HIGH]);
        let owner = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.slot.complete(live, unit(HIGH)))
        };
        let observer = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.slot.observe(1))
        };
        let fence = die_before_change(changes, || cells.slot.fence(1));
        let completed = owner.join().unwrap();
        outcomes.saw(named(observer.join().unwrap()));
        let Observed::Consistent(snapshot) = cells.slot.observe(1) else {
            panic!("at rest")
        };
        let beaten = cells.slot.beat(live, first_epoch(1) + 1);
        if fence.is_none() {
            outcomes.saw(DIED);
            if snapshot.is_fenced {
                outcomes.saw("half fenced");
            }
        }
        // Whatever is fenced, word 0 is: the owner stops, is late, and the next scan finishes.
        let refused = beaten == Err(SlotError::Fenced);
        assert_eq!(
            refused, snapshot.is_fenced,
            "half fenced, and beats on: {snapshot:?}"
        );

        let left = cells.fence_in_scans();
        let expected = if completed.is_ok() {
            units(&[LOW])
        } else {
            units(&[LOW, HIGH])
        };
        assert_eq!(
            left, expected,
            "lost by a half fence, or completed and handed back"
        );
        let taken = cells.slot.acknowledge(1, left);
        assert_eq!((taken.units, taken.notice), (left, true));
        assert_eq!(cells.give_back(live), Ok(UnitSet::EMPTY));
        cells
            .register(B, Owners::Unproven)
            .expect("acknowledged and empty");
        outcomes.saw(if completed.is_ok() {
            "completed"
        } else {
            "handed back"
        });
    });
}

/// A report that somebody died over is heard of again for as long as a unit of it is left.
#[test]
fn dying_in_acknowledge_leaves_the_rest_and_the_notice() {
    let wanted = [
        DIED,
        "all left",
        "some left",
        "none left",
        "the first owner",
    ];
    check_each_death("death in acknowledge", 2, &wanted, |outcomes, changes| {
        let (cells, live) = Cells::owned(&[LOW, HIGH]);
        let all = cells.fence_in_scans();
        let observer = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.slot.observe(1))
        };
        if die_before_change(changes, || cells.slot.acknowledge(1, all)).is_none() {
            outcomes.saw(DIED);
        }
        outcomes.saw(named(observer.join().unwrap()));
        let left = cells.slot.units(1);
        let decision = cells.slot.peek_decision(1).expect("generation 1");
        assert!(
            left.is_empty() || !decision.is_acked(),
            "acknowledged with units left"
        );
        let taken = cells.slot.acknowledge(1, all);
        assert_eq!((taken.units, taken.notice), (left, !decision.is_acked()));
        assert_eq!(cells.give_back(live), Ok(UnitSet::EMPTY));
        cells
            .register(B, Owners::Unproven)
            .expect("acknowledged and empty");
        outcomes.saw(match left.len() {
            0 => "none left",
            1 => "some left",
            _ => "all left",
        });
    });
}

/// The owner is gone; a watchdog dies anywhere in its round over the slot, and another one and a
/// registrant find what it left.
#[test]
fn dying_in_a_watchdogs_round_loses_nothing() {
    let wanted = [
        DIED,
        "taken by the dead one",
        "taken by the next",
        "reused at once",
    ];
    check_each_death("death in hand-back", 2, &wanted, |outcomes, changes| {
        let (cells, _gone) = Cells::owned(&[HIGH]);
        let gone = Owners::GoneUpTo(1);
        let registrant = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.register(B, gone))
        };
        let first = die_before_change(changes, || cells.hand_back(gone));
        if first.is_none() {
            outcomes.saw(DIED);
        }
        let second = cells.hand_back(gone);
        let next = registrant.join().unwrap();
        let first = first.unwrap_or_default();
        let taken = first.units.bits() | second.units.bits();
        assert_eq!(
            first.units.bits() & second.units.bits(),
            0,
            "acknowledged twice"
        );
        assert_eq!(
            cells.slot.units(1),
            UnitSet::EMPTY,
            "nobody acknowledged it"
        );
        assert!(taken == 0 || taken == units(&[HIGH]).bits());
        outcomes.saw(if second.units.is_empty() {
            "taken by the dead one"
        } else {
            "taken by the next"
        });
        if let Err(obstacle) = next {
            assert_eq!(obstacle, Obstacle::Units(units(&[HIGH])));
            cells.register(B, gone).expect("acknowledged and empty");
        } else {
            outcomes.saw("reused at once");
        }
        assert_eq!(cells.verdict.deaths().waiting(), 1, "one death, told once");
        let next = cells.slot.claimed_by();
        cells
            .slot
            .mark(next, unit(LOW))
            .expect("fenced with its predecessor");
    });
}

/// The recycler of generation 1 dies anywhere between its first fence and LIVE; an observer looks on,
/// and the next recycler finds the slot of either generation.
#[test]
fn dying_in_recycle_leaves_a_slot_that_an_observer_can_name() {
    let wanted = [
        DIED,
        "the first owner",
        "in transition",
        "the next owner",
        "not taken",
        "taken",
    ];
    check_each_death(
        "death in recycle, observer",
        1,
        &wanted,
        |outcomes, changes| {
            let (cells, _gone) = Cells::owned(&[]);
            let observer = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.slot.observe(1))
            };
            if die_before_change(changes, || cells.register(B, Owners::GoneUpTo(1))).is_none() {
                outcomes.saw(DIED);
            }
            outcomes.saw(named(observer.join().unwrap()));
            let dead = cells.slot.claimed_by();
            cells
                .register(C, Owners::GoneUpTo(dead.generation()))
                .expect("empty, and nobody's");
            outcomes.saw(if dead.generation() == 1 {
                "not taken"
            } else {
                "taken"
            });
            check_recycled_by(&cells, C, dead.generation());
        },
    );
}

/// As above, with a watchdog beside the next recycler.
#[test]
fn dying_in_recycle_leaves_a_slot_that_can_be_recycled() {
    let wanted = [
        DIED,
        "not taken",
        "taken",
        "watchdog first",
        "recycler first",
    ];
    check_each_death(
        "death in recycle, rivals",
        2,
        &wanted,
        |outcomes, changes| {
            let (cells, _gone) = Cells::owned(&[]);
            if die_before_change(changes, || cells.register(B, Owners::GoneUpTo(1))).is_none() {
                outcomes.saw(DIED);
            }
            let dead = cells.slot.claimed_by();
            let gone = Owners::GoneUpTo(dead.generation());
            let watchdog = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.hand_back(gone))
            };
            cells.register(C, gone).expect("empty, and nobody's");
            let watchdog = watchdog.join().unwrap();
            assert_eq!(watchdog.units, UnitSet::EMPTY);
            outcomes.saw(if dead.generation() == 1 {
                "not taken"
            } else {
                "taken"
            });
            outcomes.saw(if watchdog.recorded {
                "watchdog first"
            } else {
                "recycler first"
            });
            check_recycled_by(&cells, C, dead.generation());
        },
    );
}

/// Panics unless the slot is the next owner's, clean, and each death before it is told once.
fn check_recycled_by(cells: &Cells, pid: u32, dead: u32) {
    let next = cells.slot.claimed_by();
    assert_eq!(
        (next.is_live(), next.pid(), next.generation()),
        (true, pid, dead + 1)
    );
    let deaths = cells.verdict.deaths();
    assert_eq!((deaths.generation(), deaths.waiting()), (dead, dead));
    cells
        .slot
        .mark(next, unit(LOW))
        .expect("fenced with its predecessor");
}
