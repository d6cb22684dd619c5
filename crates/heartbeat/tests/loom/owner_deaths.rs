//! An owner dies before any one of the changes that an operation makes; an observer looks on, and
//! registrants and a watchdog find the slot.
//!
//! For each point of death: the observer ends and names an owner; one registrant wins at most; units
//! that were in flight are handed back once; the death is recorded once; the slot is in use again in
//! the end. Each model goes on to the point at which the operation came to its end: there the owner
//! dies idle. Observer and rivals are two models each: all at once would be too many executions.

use std::sync::Arc;

use bumpless_heartbeat::{Observed, SlotRole, UnitSet};
use bumpless_substrate::claim::{Claim, ClaimState};
use bumpless_substrate::sync::die_before_change;
use loom::thread;

use crate::cells::{A, B, C, Cells, Obstacle, Owners, first_epoch, named, unit, units};
use crate::seeing::{DIED, Outcomes, check_each_death};

const LOW: u32 = 0;
const HIGH: u32 = 40;

/// An operation in which its owner dies.
#[derive(Clone, Copy)]
struct Operation {
    name: &'static str,
    /// The slot before it, and its owner's handle if it has one.
    before: fn() -> (Arc<Cells>, Claim),
    run: fn(&Cells, Claim),
    /// What an observer sees from before the operation until the slot is in use again.
    observed: &'static [&'static str],
    /// What becomes of the slot between a watchdog and two registrants.
    ends: &'static [&'static str],
}

const RECYCLED: &str = "recycled at once";
const LEFT: &str = "left to the watchdog";

fn check_owner_dies(operation: Operation) {
    let name = operation.name;
    let wanted = [&[DIED], operation.observed].concat();
    check_each_death(
        &format!("death in {name}, observer"),
        1,
        &wanted,
        move |outcomes, changes| {
            let (cells, live) = (operation.before)();
            let observer = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.slot.observe(1))
            };
            let dead = die(outcomes, &cells, changes, || (operation.run)(&cells, live));
            let in_flight = cells.slot.units(dead.generation());
            let gone = Owners::GoneUpTo(dead.generation());
            assert_eq!(cells.hand_back(gone).units, in_flight);
            cells
                .register(B, gone)
                .expect("acknowledged, and nobody else wants it");
            outcomes.saw(named(observer.join().unwrap()));
            check_in_use_again(&cells, dead);
        },
    );

    let wanted = [&[DIED], operation.ends].concat();
    check_each_death(
        &format!("death in {name}, rivals"),
        2,
        &wanted,
        move |outcomes, changes| {
            let (cells, live) = (operation.before)();
            let dead = die(outcomes, &cells, changes, || (operation.run)(&cells, live));
            let in_flight = cells.slot.units(dead.generation());
            let gone = Owners::GoneUpTo(dead.generation());
            let other = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || (cells.hand_back(gone), cells.register(C, gone)))
            };
            let main = cells.register(B, gone);
            let (handed_back, other) = other.join().unwrap();
            assert_eq!(
                handed_back.units, in_flight,
                "lost, or taken from somebody else"
            );
            assert!(main.is_err() || other.is_err(), "two winners");
            if main.is_err() && other.is_err() {
                cells
                    .register(B, gone)
                    .expect("acknowledged, and nobody else wants it");
            }
            match main {
                Ok(_) => outcomes.saw(RECYCLED),
                Err(Obstacle::Units(left)) => {
                    assert!(!left.is_empty() && left.bits() & !in_flight.bits() == 0);
                    outcomes.saw(LEFT);
                }
                // Beaten by the other one, or by its own look at a slot that was changing.
                Err(Obstacle::Owned(_) | Obstacle::Lost(_) | Obstacle::Damaged) => {}
            }
            check_in_use_again(&cells, dead);
        },
    );
}

/// Runs the operation to its death, or to its end; the claim that is left.
fn die(outcomes: &Outcomes, cells: &Cells, changes: u32, operation: impl FnOnce()) -> Claim {
    if die_before_change(changes, operation).is_none() {
        outcomes.saw(DIED);
    }
    let dead = cells.slot.claimed_by();
    check_last_look(cells, dead);
    dead
}

fn check_in_use_again(cells: &Cells, dead: Claim) {
    let next = cells.slot.claimed_by();
    assert_eq!(
        (next.is_live(), next.generation()),
        (true, dead.generation() + 1)
    );
    assert_eq!(
        cells.slot.units(next.generation()),
        UnitSet::EMPTY,
        "inherited units"
    );
    cells
        .slot
        .beat(next, first_epoch(next.generation()))
        .expect("fenced with its predecessor");
    cells
        .slot
        .mark(next, unit(HIGH))
        .expect("fenced with its predecessor");
    let was_owned = matches!(dead.state(), Some(ClaimState::Claiming | ClaimState::Live));
    assert_eq!(
        cells.verdict.deaths().waiting(),
        u32::from(was_owned),
        "deaths"
    );
}

/// With everybody else at rest: an observer says whose the slot is.
fn check_last_look(cells: &Cells, dead: Claim) {
    match (cells.slot.observe(2), dead.state()) {
        (Observed::Vacant, Some(ClaimState::Free | ClaimState::Released)) => {}
        (Observed::InTransition { pid }, Some(ClaimState::Claiming | ClaimState::Live)) => {
            assert_eq!(pid, dead.pid(), "another owner is named");
        }
        (Observed::Consistent(snapshot), Some(ClaimState::Live)) => {
            assert_eq!(snapshot.generation, dead.generation());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn dying_in_register_leaves_a_slot_for_the_next() {
    check_owner_dies(Operation {
        name: "register",
        before: || (Cells::free(), Claim::FREE),
        run: |cells, _| {
            cells.register(A, Owners::Unproven).expect("free");
        },
        observed: &[
            "vacant",
            "in transition",
            "the first owner",
            "the next owner",
        ],
        ends: &[RECYCLED],
    });
}

#[test]
fn dying_in_register_of_a_slot_given_back_leaves_it_for_the_next() {
    check_owner_dies(Operation {
        name: "register again",
        before: || (Cells::released(), Claim::FREE),
        run: |cells, _| {
            cells
                .register(B, Owners::Unproven)
                .expect("given back and empty");
        },
        observed: &["vacant", "in transition", "the next owner"],
        ends: &[RECYCLED],
    });
}

#[test]
fn dying_in_beat_leaves_a_slot_for_the_next() {
    check_owner_dies(Operation {
        name: "beat",
        before: || Cells::owned(&[]),
        run: |cells, live| {
            cells
                .slot
                .beat(live, first_epoch(1) + 1)
                .expect("the owner's own slot");
        },
        observed: &["the first owner", "in transition", "the next owner"],
        ends: &[RECYCLED],
    });
}

#[test]
fn dying_in_mark_hands_back_what_was_marked() {
    check_owner_dies(Operation {
        name: "mark",
        before: || Cells::owned(&[LOW]),
        run: |cells, live| {
            cells
                .slot
                .mark(live, unit(HIGH))
                .expect("the owner's own slot");
            assert_eq!(cells.slot.units(1), units(&[LOW, HIGH]));
        },
        observed: &["the first owner", "in transition", "the next owner"],
        ends: &[LEFT, RECYCLED],
    });
}

#[test]
fn dying_in_complete_hands_back_what_was_not_committed() {
    check_owner_dies(Operation {
        name: "complete",
        before: || Cells::owned(&[HIGH]),
        run: |cells, live| {
            cells
                .slot
                .complete(live, unit(HIGH))
                .expect("the owner's own slot");
            assert_eq!(cells.slot.units(1), UnitSet::EMPTY);
        },
        observed: &["the first owner", "in transition", "the next owner"],
        ends: &[LEFT, RECYCLED],
    });
}

/// The owner dies inside the sequence lock, and leaves it odd.
#[test]
fn dying_in_a_change_of_role_leaves_a_slot_for_the_next() {
    check_owner_dies(Operation {
        name: "set_role",
        before: || Cells::owned(&[]),
        // The role that it has: an observer finds it whole before and after.
        run: |cells, _| cells.slot.set_role(SlotRole::Other(11)),
        observed: &["the first owner", "in transition", "the next owner"],
        ends: &[RECYCLED],
    });
}

#[test]
fn dying_in_unregister_hands_back_what_was_in_flight() {
    check_owner_dies(Operation {
        name: "unregister",
        before: || Cells::owned(&[HIGH]),
        run: |cells, live| {
            assert_eq!(cells.give_back(live), Ok(units(&[HIGH])));
        },
        observed: &[
            "the first owner",
            "vacant",
            "in transition",
            "the next owner",
        ],
        ends: &[LEFT, RECYCLED],
    });
}
