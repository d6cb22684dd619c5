//! Claims: one leader in each term, who lives and stands.

use std::sync::Arc;

use bumpless_election::candidacy::{stand, withdraw};
use bumpless_election::claiming::Refusal;
use bumpless_election::seat::Candidate;
use bumpless_substrate::sync::{die_before_change, is_rmw_pass};
use loom::thread;

use crate::cells::C;
use crate::seeing::{DIED, check_each_death, check_seeing};
use crate::world::{HIGH, LOW, World};

#[test]
fn of_two_who_find_the_seat_empty_one_leads_and_both_know_which() {
    check_seeing(
        "claims, 2 claimers",
        2,
        &["the lowest", "the first"],
        |outcomes| {
            let world = World::after(3);
            let other = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.claim(HIGH))
            };
            let mine = world.claim(LOW).expect("it lives");
            let other = other.join().unwrap().expect("it lives");
            assert_eq!(mine, other, "two leaders");
            assert_eq!(mine.0.term(), 4, "one hand-over");
            let is_lowest = mine.0.holder() == Some(LOW);
            outcomes.saw(if is_lowest { "the lowest" } else { "the first" });
        },
    );
}

#[test]
fn who_is_fenced_while_it_claims_is_refused_or_replaced() {
    let wanted = ["refused", "led until then"];
    check_seeing("claims, fenced claimer", 3, &wanted, |outcomes| {
        let world = World::after(0);
        let claimer = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.claim(LOW))
        };
        world.fence(LOW);
        match claimer.join().unwrap() {
            Ok((reign, _)) => {
                assert_eq!(reign.holder(), Some(LOW));
                outcomes.saw("led until then");
            }
            Err(refusal) => {
                assert_eq!(refusal, Refusal::NotLiving);
                outcomes.saw("refused");
            }
        }
        let before = world.line.look().term();
        let (reign, _) = world.claim(HIGH).expect("it lives");
        assert_eq!(reign.holder(), Some(HIGH), "a fenced leader stays");
        assert_eq!(reign.term(), before + 1);
        world.fence(HIGH);
        assert_eq!(world.claim(LOW), Err(Refusal::NotLiving), "by nobody");
    });
}

#[test]
fn the_candidacy_of_a_former_owner_seats_nobody() {
    let wanted = ["the former owner, in time", "the caller"];
    check_seeing("claims, changing owner", 2, &wanted, move |outcomes| {
        let world = World::after(0);
        world.candidacies[0].swap(1, bumpless_substrate::sync::Ordering::AcqRel);
        let claimer = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.claim(HIGH))
        };
        let next = world.change_owner(0, C);
        let (reign, _) = claimer.join().unwrap().expect("it lives");
        let former = reign.holder() == Some(LOW);
        outcomes.saw(if former { wanted[0] } else { wanted[1] });
        let (reign, _) = world.claim(HIGH).expect("it lives");
        assert_eq!(
            reign.holder(),
            Some(HIGH),
            "nobody of generation 1 is there"
        );
        assert!((1 + u64::from(former)..=2).contains(&reign.term()));
        assert_ne!(next, LOW);
    });
}

#[test]
fn who_withdraws_while_it_is_appointed_is_replaced_by_the_next_who_looks() {
    let wanted = ["appointed and gone", "passed over"];
    check_seeing("claims, withdrawing", 3, &wanted, move |outcomes| {
        let world = World::after(3);
        stand(&world.candidacies[0], LOW.generation).expect("nobody's");
        let claimer = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.claim(HIGH).map(|(reign, _)| reign))
        };
        // As `step_down`, between whose two parts everybody else may do anything.
        withdraw(&world.candidacies[0], LOW.generation);
        let left = world.line.look();
        if left.holder() == Some(LOW) {
            world.line.vacate(left);
        }
        let first = claimer.join().unwrap().expect("it lives");
        let (reign, _) = world.claim(HIGH).expect("it lives");
        assert_eq!(reign.holder(), Some(HIGH), "a leader that does not stand");
        outcomes.saw(match first.holder() {
            Some(LOW) => wanted[0],
            _ => wanted[1],
        });
        assert!((4..=5).contains(&reign.term()));
    });
}

/// The second pass adds one, which is two in both.
fn switches() -> usize {
    if is_rmw_pass() { 1 } else { 2 }
}

#[test]
fn wherever_a_claimer_dies_somebody_else_leads_in_a_term_of_its_own() {
    let wanted = [DIED, "it lived", "it had led", "it had not led"];
    check_each_death(
        "claims, dying claimer",
        switches(),
        &wanted,
        |outcomes, change| {
            // Before the end of half a lap, so that half laps are one of the changes.
            let world = World::led_by(HIGH, 2);
            world.die(HIGH.slot);
            let heir = Candidate {
                generation: 2,
                ..HIGH
            };
            let dying = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let claimed = die_before_change(change, || world.claim(LOW));
                    world.die(LOW.slot);
                    claimed
                })
            };
            // The dead leader's slot is recycled meanwhile.
            let recycled = world.recycle(HIGH.slot, C);
            assert_eq!(recycled, heir);
            let first = world.claim(heir).expect("it lives").0;
            match dying.join().unwrap() {
                None => outcomes.saw(DIED),
                Some(claimed) => {
                    let reign = claimed.expect("it lived").0;
                    assert!(
                        reign.term() != first.term() || reign == first,
                        "two leaders"
                    );
                    outcomes.saw("it lived");
                }
            }
            let (reign, _) = world.claim(heir).expect("it lives");
            assert_eq!(reign.holder(), Some(heir), "the dead lead");
            outcomes.saw(match reign.term() {
                3 => "it had not led",
                4 => "it had led",
                other => panic!("term {other}"),
            });
        },
    );
}
