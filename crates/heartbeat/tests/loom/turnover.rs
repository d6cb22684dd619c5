//! Turnover: owner A gives back, owner B takes over, and somebody looks on.

use std::sync::Arc;

use bumpless_substrate::claim::Claim;
use loom::thread;

use crate::cells::{A, B, Cells, Owners, check_one_owner, first_epoch, named};
use crate::seeing::check_seeing;

/// What A and B do: a last beat, giving back, and B's registration.
fn turn_over(cells: &Cells, live: Claim) -> Claim {
    cells.slot.beat(live, first_epoch(1) + 1).unwrap();
    assert!(cells.give_back(live).unwrap().is_empty());
    let next = cells
        .register(B, Owners::Unproven)
        .expect("given back and empty");
    assert_eq!((next.pid(), next.generation()), (B, 2));
    next
}

#[test]
fn an_observer_never_sees_a_mix_of_two_owners() {
    let wanted = [
        "the first owner",
        "vacant",
        "in transition",
        "the next owner",
    ];
    check_seeing("turnover, observer", 1, &wanted, |outcomes| {
        let (cells, live) = Cells::owned(&[]);
        let observer = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.slot.observe(1))
        };
        turn_over(&cells, live);
        outcomes.saw(named(observer.join().unwrap()));
    });
}

#[test]
fn the_cold_line_is_never_a_mix_of_two_owners() {
    check_seeing(
        "turnover, cold line",
        2,
        &["A", "B", "unreadable"],
        |outcomes| {
            let (cells, live) = Cells::owned(&[]);
            let reader = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.slot.identity(&cells.identity, 1))
            };
            turn_over(&cells, live);
            match reader.join().unwrap() {
                None => outcomes.saw("unreadable"),
                Some(identity) => {
                    check_one_owner(&identity);
                    outcomes.saw(if identity.generation == 1 { "A" } else { "B" });
                }
            }
        },
    );
}

/// As the scan decides: words first, then the second look at the claim.
#[test]
fn words_belong_to_the_claim_that_is_still_there_behind_them() {
    let wanted = ["A", "B", "not live", "changed"];
    check_seeing("turnover, single words", 2, &wanted, |outcomes| {
        let (cells, live) = Cells::owned(&[]);
        let watchdog = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || {
                let slot = &cells.slot;
                let claim = slot.claimed_by();
                let generation = claim.generation();
                let beat = slot.peek_beat().epoch_of(generation);
                let decision = slot.peek_decision(generation);
                let grace_epochs = slot.grace_epochs();
                (
                    claim,
                    beat,
                    decision,
                    grace_epochs,
                    slot.still_claimed_as(claim),
                )
            })
        };
        turn_over(&cells, live);
        let (claim, beat, decision, grace_epochs, unchanged) = watchdog.join().unwrap();
        if !claim.is_live() {
            outcomes.saw("not live");
        } else if unchanged {
            let generation = claim.generation();
            let beat = beat.expect("another owner's beat");
            assert!(beat - first_epoch(generation) <= 1, "another owner's beat");
            assert!(decision.is_some(), "another owner's words");
            assert_eq!(u32::from(grace_epochs), generation, "another owner's grace");
            outcomes.saw(if claim.pid() == A { "A" } else { "B" });
        } else {
            outcomes.saw("changed");
        }
    });
}

/// The next registrant comes while the owner is giving back: it waits or gets a clean slot.
#[test]
fn the_next_registrant_finds_the_slot_owned_or_clean() {
    check_seeing(
        "turnover, registrant beside",
        3,
        &["owned", "taken"],
        |outcomes| {
            let (cells, live) = Cells::owned(&[]);
            let next = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.register(B, Owners::Unproven))
            };
            assert!(cells.give_back(live).unwrap().is_empty());
            match next.join().unwrap() {
                Ok(next) => {
                    cells
                        .slot
                        .beat(next, first_epoch(2) + 1)
                        .expect("fenced by its predecessor");
                    assert_eq!(named(cells.slot.observe(1)), "the next owner");
                    let decision = cells.slot.peek_decision(2).expect("its own words");
                    assert_eq!(decision.bits() >> 60, 0, "fenced by its predecessor");
                    outcomes.saw("taken");
                }
                Err(obstacle) => {
                    assert_eq!(obstacle, crate::cells::Obstacle::Owned(live));
                    outcomes.saw("owned");
                }
            }
        },
    );
}

/// Beats beside an observer: each is seen whole, none goes back.
#[test]
fn beats_are_seen_in_order() {
    let wanted = ["no beat yet", "one beat", "two beats"];
    check_seeing("beat, observer", 3, &wanted, move |outcomes| {
        let (cells, live) = Cells::owned(&[]);
        let observer = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || {
                let look = || cells.slot.peek_beat().epoch_of(1).expect("one owner");
                (look(), look(), cells.slot.observe(1))
            })
        };
        for number in 1..=2 {
            cells.slot.beat(live, first_epoch(1) + number).unwrap();
        }
        let (first, second, observed) = observer.join().unwrap();
        assert!(first <= second, "a beat was taken back");
        assert_eq!(
            named(observed),
            "the first owner",
            "a beat moves the sequence lock"
        );
        outcomes.saw(wanted[(second - first_epoch(1)) as usize]);
    });
}
