//! Two threads of one owner: a handle is `Copy`, so one of them can give the slot back under the
//! other's hands, and somebody else can own it a moment later.

use std::sync::Arc;

use bumpless_heartbeat::UnitSet;
use bumpless_heartbeat::slot::SlotError;
use bumpless_substrate::claim::Claim;
use loom::sync::Mutex;
use loom::thread;

use crate::cells::{B, C, Cells, Obstacle, Owners, first_epoch, named, unit, units};
use crate::seeing::check_seeing;

const LOW: u32 = 0;
const HIGH: u32 = 40;

/// Panics unless the owner of generation 2 has all that it registered, and nothing of anybody else.
fn check_untouched(cells: &Cells, next: Claim, in_flight: &[u32]) {
    assert_eq!(cells.slot.claimed_by(), next);
    assert_eq!(
        cells.slot.units(2),
        units(in_flight),
        "an old handle marked or completed"
    );
    cells
        .slot
        .beat(next, first_epoch(2) + 1)
        .expect("fenced by an old handle");
    cells
        .slot
        .mark(next, unit(63))
        .expect("fenced by an old handle");
    assert_eq!(named(cells.slot.observe(1)), "the next owner");
}

#[test]
fn nothing_that_an_old_handle_does_reaches_the_next_owner() {
    let wanted = [
        "marked in time",
        "fenced",
        "stale",
        "taken",
        "left to a watchdog",
    ];
    check_seeing("owner, mark against unregister", 3, &wanted, |outcomes| {
        let (cells, live) = Cells::owned(&[]);
        let other = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.slot.mark(live, unit(LOW)))
        };
        let left = cells.give_back(live).expect("one thread gives back");
        let next = cells.register(B, Owners::Unproven);
        if let Ok(next) = next {
            cells
                .slot
                .mark(next, unit(HIGH))
                .expect("the owner's own slot");
        }
        let marked = other.join().unwrap();
        outcomes.saw(match marked {
            Ok(()) => "marked in time",
            Err(SlotError::Fenced) => "fenced",
            Err(SlotError::Stale { .. }) => "stale",
            Err(other) => panic!("{other:?}"),
        });
        match next {
            Ok(next) => {
                assert!(left.is_empty() && marked.is_err(), "a marked unit was lost");
                check_untouched(&cells, next, &[HIGH]);
                outcomes.saw("taken");
            }
            Err(obstacle) => {
                assert_eq!(obstacle, Obstacle::Units(units(&[LOW])));
                assert!(marked.is_ok() && left == units(&[LOW]));
                // As the scan does it: the slot is free for the next one then.
                assert_eq!(cells.hand_back(Owners::Unproven).units, units(&[LOW]));
                cells
                    .register(B, Owners::Unproven)
                    .expect("acknowledged and empty");
                outcomes.saw("left to a watchdog");
            }
        }
    });
}

#[test]
fn an_old_handle_completes_nothing_of_the_next_owner() {
    let wanted = [
        "completed in time",
        "refused",
        "taken",
        "left to a watchdog",
    ];
    check_seeing(
        "owner, complete against unregister",
        3,
        &wanted,
        |outcomes| {
            let (cells, live) = Cells::owned(&[LOW]);
            let other = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.slot.complete(live, unit(LOW)))
            };
            let left = cells.give_back(live).expect("one thread gives back");
            assert!(left == units(&[LOW]) || left.is_empty());
            // The next owner takes the same unit number.
            let next = cells.register(B, Owners::Unproven);
            if let Ok(next) = next {
                cells
                    .slot
                    .mark(next, unit(LOW))
                    .expect("the owner's own slot");
            }
            let completed = other.join().unwrap();
            outcomes.saw(if completed.is_ok() {
                "completed in time"
            } else {
                "refused"
            });
            match next {
                Ok(next) => {
                    assert_eq!(completed, Ok(()), "reused with a unit in flight");
                    check_untouched(&cells, next, &[LOW]);
                    outcomes.saw("taken");
                }
                Err(obstacle) => {
                    assert_eq!(obstacle, Obstacle::Units(units(&[LOW])));
                    assert!(completed.is_err(), "completed and handed back");
                    outcomes.saw("left to a watchdog");
                }
            }
        },
    );
}

/// A beat checks, then stores: what lands late is no beat of the next owner.
#[test]
fn a_late_beat_is_no_beat_of_the_next_owner() {
    let wanted = ["beaten", "refused", "over the next owner's"];
    check_seeing("owner, beat against unregister", 3, &wanted, |outcomes| {
        let (cells, live) = Cells::owned(&[]);
        let other = {
            let cells = Arc::clone(&cells);
            // An epoch that would make the next owner look alive for long.
            thread::spawn(move || cells.slot.beat(live, first_epoch(2) + 50))
        };
        cells.give_back(live).expect("one thread gives back");
        let next = cells
            .register(B, Owners::Unproven)
            .expect("no unit was ever marked");
        let beaten = other.join().unwrap();
        outcomes.saw(if beaten.is_ok() { "beaten" } else { "refused" });
        match cells.slot.peek_beat().epoch_of(2) {
            Some(epoch) => assert_eq!(epoch, first_epoch(2), "an old handle beat for the next"),
            None => {
                assert!(beaten.is_ok());
                outcomes.saw("over the next owner's");
            }
        }
        check_untouched(&cells, next, &[]);
    });
}

/// As the table does it: its local lock is held over all of `unregister`, which looks at the claim
/// under it, and over all of `register`.
#[test]
fn of_two_unregisters_one_gives_back_and_the_other_hits_nobody() {
    let wanted = [
        "main gives back",
        "child gives back",
        "the next is hit by none",
    ];
    check_seeing("owner, 2 unregisters", 2, &wanted, |outcomes| {
        let (cells, live) = Cells::owned(&[]);
        let local = Arc::new(Mutex::new(()));
        let child = {
            let (cells, local) = (Arc::clone(&cells), Arc::clone(&local));
            thread::spawn(move || {
                let _held = local.lock().unwrap();
                cells.give_back(live)
            })
        };
        // Another process, without that lock.
        let stranger = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || cells.register(C, Owners::Unproven))
        };
        let main = {
            let _held = local.lock().unwrap();
            cells.give_back(live)
        };
        let again = {
            let _held = local.lock().unwrap();
            cells.register(B, Owners::Unproven)
        };
        let child = child.join().unwrap();
        let stranger = stranger.join().unwrap();
        assert!(
            main.is_ok() != child.is_ok(),
            "given back twice: {main:?}, {child:?}"
        );
        outcomes.saw(if main.is_ok() {
            "main gives back"
        } else {
            "child gives back"
        });
        match (again, stranger) {
            (Ok(next), Err(_)) | (Err(_), Ok(next)) => {
                check_untouched(&cells, next, &[]);
                outcomes.saw("the next is hit by none");
            }
            both => panic!("given back once, taken {both:?}"),
        }
    });
}

/// The owner gives back with a unit in flight, beside a watchdog that takes it for silent.
#[test]
fn a_unit_left_behind_is_handed_back_once_whoever_fences() {
    let wanted = ["reused", "not reused yet"];
    check_seeing(
        "owner, unregister against watchdog",
        3,
        &wanted,
        |outcomes| {
            let (cells, live) = Cells::owned(&[LOW, HIGH]);
            let watchdog = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || cells.slot.acknowledge(1, cells.fence_in_scans()))
            };
            let left = cells
                .give_back(live)
                .expect("a fenced owner gives back too");
            let next = cells.register(B, Owners::Unproven);
            let first = watchdog.join().unwrap();
            assert_eq!(first.units, units(&[LOW, HIGH]));
            assert!(first.notice);
            match next {
                Ok(next) => {
                    assert_eq!(cells.slot.units(1), UnitSet::EMPTY);
                    check_untouched(&cells, next, &[]);
                    outcomes.saw("reused");
                }
                Err(obstacle) => {
                    assert!(
                        matches!(obstacle, Obstacle::Units(_)),
                        "{obstacle:?}, left {left:?}"
                    );
                    cells
                        .register(B, Owners::Unproven)
                        .expect("acknowledged and empty");
                    outcomes.saw("not reused yet");
                }
            }
        },
    );
}
