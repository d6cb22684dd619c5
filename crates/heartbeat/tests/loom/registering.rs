//! Registering: one owner, and who sees it LIVE sees all of it.

use std::sync::Arc;

use bumpless_heartbeat::slot::Claimable;
use bumpless_heartbeat::{Certificate, Observed, SlotRole};
use bumpless_substrate::claim::ClaimState;
use loom::thread;

use crate::cells::{A, B, C, Cells, Obstacle, Owners, check_one_owner, first_epoch, named, unit};
use crate::seeing::check_seeing;

/// Both also use the slot at once, so that a loser's writing would hit a winner's unit.
#[test]
fn of_two_registrants_one_owns_the_slot_alone() {
    check_seeing(
        "register, 2 registrants",
        3,
        &["main wins", "child wins"],
        |outcomes| {
            let cells = Cells::free();
            let register = |cells: &Cells, pid| {
                let live = cells.register(pid, Owners::Unproven)?;
                cells
                    .slot
                    .mark(live, unit(0))
                    .expect("the owner's own slot");
                Ok(live)
            };
            let child = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || register(&cells, B))
            };
            let main = register(&cells, A);
            let child = child.join().unwrap();
            let (live, beaten) = match (main, child) {
                (Ok(live), Err(beaten)) => {
                    outcomes.saw("main wins");
                    (live, beaten)
                }
                (Err(beaten), Ok(live)) => {
                    outcomes.saw("child wins");
                    (live, beaten)
                }
                both => panic!("not exactly one owner: {both:?}"),
            };
            let (Obstacle::Owned(by) | Obstacle::Lost(by)) = beaten else {
                panic!("{beaten:?}")
            };
            assert_eq!((by.pid(), by.generation()), (live.pid(), 1));
            assert_eq!(cells.slot.claimed_by(), live);
            cells
                .slot
                .complete(live, unit(0))
                .expect("the loser wrote into the winner's slot");
        },
    );
}

#[test]
fn of_two_registrants_of_a_slot_given_back_one_owns_it_alone() {
    check_seeing(
        "register, 2 after release",
        3,
        &["main wins", "child wins"],
        |outcomes| {
            let cells = Cells::released();
            let child = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.register(B, Owners::Unproven))
            };
            let main = cells.register(C, Owners::Unproven);
            let child = child.join().unwrap();
            let winners = [main, child].into_iter().flatten().count();
            assert_eq!(winners, 1, "{main:?}, {child:?}");
            outcomes.saw(if main.is_ok() {
                "main wins"
            } else {
                "child wins"
            });
            let live = cells.slot.claimed_by();
            assert_eq!((live.generation(), live.is_live()), (2, true));
            let Observed::Consistent(_) = cells.slot.observe(1) else {
                panic!("no rest")
            };
        },
    );
}

#[test]
fn an_observer_beside_a_registrant_sees_nobody_somebody_or_all() {
    let wanted = ["vacant", "in transition", "the first owner"];
    check_seeing("register, observer", 3, &wanted, |outcomes| {
        let cells = Cells::free();
        let observer = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.slot.observe(1))
        };
        cells.register(A, Owners::Unproven).unwrap();
        outcomes.saw(named(observer.join().unwrap()));
    });
}

/// As the scan looks: claim, beat, fence and role, one word each, no sequence lock.
#[test]
fn who_sees_live_on_the_claim_word_alone_sees_that_owners_words() {
    check_seeing(
        "register, single words",
        3,
        &["free", "claiming", "live"],
        |outcomes| {
            let cells = Cells::free();
            let watchdog = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || {
                    let slot = &cells.slot;
                    let claim = slot.claimed_by();
                    let words = (slot.peek_beat(), slot.peek_decision(1), slot.units(1));
                    (
                        claim,
                        words,
                        slot.peek_role(),
                        slot.grace_epochs(),
                        slot.certificate(),
                    )
                })
            };
            let live = cells.register(A, Owners::Unproven).unwrap();
            let (claim, (beat, decision, units), role, grace_epochs, certificate) =
                watchdog.join().unwrap();
            match claim.state() {
                Some(ClaimState::Live) => {
                    assert_eq!(claim, live);
                    assert_eq!(
                        beat.epoch_of(1),
                        Some(first_epoch(1)),
                        "LIVE before its beat"
                    );
                    assert!(
                        decision.is_some_and(|work| !work.is_fenced()),
                        "LIVE before its words"
                    );
                    assert_eq!((role, grace_epochs), (SlotRole::Other(11), 1));
                    assert_eq!(certificate, Certificate::None);
                    assert!(units.is_empty());
                    outcomes.saw("live");
                }
                Some(ClaimState::Claiming) => outcomes.saw("claiming"),
                _ => outcomes.saw("free"),
            }
        },
    );
}

#[test]
fn the_cold_line_is_of_one_owner_or_not_readable() {
    check_seeing(
        "register, cold line",
        2,
        &["zero", "written", "unreadable"],
        |outcomes| {
            let cells = Cells::free();
            let reader = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.slot.identity(&cells.identity, 1))
            };
            cells.register(A, Owners::Unproven).unwrap();
            match reader.join().unwrap() {
                None => outcomes.saw("unreadable"),
                Some(identity) => {
                    check_one_owner(&identity);
                    outcomes.saw(if identity.generation == 0 {
                        "zero"
                    } else {
                        "written"
                    });
                }
            }
        },
    );
}

/// A claim that was decided on an old look fails, whatever happened to the slot since.
#[test]
fn a_registrant_with_an_old_look_gets_nothing() {
    check_seeing(
        "register, old look",
        3,
        &["in time", "too late"],
        |outcomes| {
            let cells = Cells::released();
            let slow = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || {
                    let seen = cells.slot.claimed_by();
                    let claimable = cells.slot.claimable(seen);
                    (seen.generation() == 1 && claimable == Claimable::Yes)
                        .then(|| cells.take(seen, B, claimable))
                })
            };
            let mine = cells.register(C, Owners::Unproven);
            if let Ok(live) = mine {
                cells
                    .slot
                    .mark(live, unit(5))
                    .expect("the owner's own slot");
            }
            let slow = slow.join().unwrap();
            let owner = cells.slot.claimed_by();
            match slow {
                Some(Ok(live)) => {
                    assert!(mine.is_err() && owner == live);
                    outcomes.saw("in time");
                }
                Some(Err(_)) | None => {
                    assert_eq!(mine, Ok(owner));
                    assert!(cells.slot.units(2).contains(unit(5)), "a loser wrote");
                    outcomes.saw("too late");
                }
            }
        },
    );
}
