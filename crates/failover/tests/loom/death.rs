//! Death: recorded once, handed back once, and never told of somebody who gave back.

use std::sync::Arc;

use bumpless_failover::Verdict;
use bumpless_heartbeat::UnitSet;
use bumpless_substrate::claim::Claim;
use bumpless_substrate::proof::Proof;
use bumpless_substrate::sync::die_before_change;
use loom::thread;

use crate::cells::{A, B, Cells, Obstacle, Owners, first_epoch, unit, units};
use crate::seeing::{DIED, check_each_death, check_seeing};
use crate::world::{Watchdog, World, scan};

const LOW: u32 = 0;
const HIGH: u32 = 40;

/// Within the grace: only a proof of death counts.
const SOON: u64 = first_epoch(1) + 1;

/// A scan and the acknowledgement of all that it found; the units taken.
fn reclaim(world: &World, watchdog: &mut Watchdog, epoch: u64) -> UnitSet {
    let (_, finding) = watchdog.judge(&scan(epoch));
    let Some(finding) = finding else {
        return UnitSet::EMPTY;
    };
    let generation = finding.claim.generation();
    world
        .cells
        .slot
        .acknowledge(generation, finding.units)
        .units
}

#[test]
fn two_watchdogs_tell_a_death_once_and_hand_back_once() {
    let wanted = ["main takes", "child takes", "main records", "child records"];
    check_seeing("judge, 2 watchdogs", 3, &wanted, |outcomes| {
        let (world, _dead) = World::owned(&[LOW, HIGH]);
        let (mut first, mut second) = (world.watchdog(), world.watchdog());
        world.bury(1);
        let child = {
            let world = Arc::clone(&world);
            thread::spawn(move || (reclaim(&world, &mut second, SOON), second.recorded.get()))
        };
        let main = reclaim(&world, &mut first, SOON);
        let (child, recorded) = child.join().unwrap();
        assert_eq!(main.bits() & child.bits(), 0, "acknowledged twice");
        assert_eq!(
            main.bits() | child.bits(),
            units(&[LOW, HIGH]).bits(),
            "lost"
        );
        assert_eq!(
            first.recorded.get() + recorded,
            1,
            "recorded by both, or by none"
        );
        assert_eq!(
            world.cells.verdict.deaths().waiting(),
            1,
            "one death, told once"
        );
        if child.is_empty() {
            outcomes.saw("main takes");
        } else if main.is_empty() {
            outcomes.saw("child takes");
        }
        outcomes.saw(if recorded == 0 {
            "main records"
        } else {
            "child records"
        });
    });
}

/// The registrant wants the slot of the dead one, and lives: it holds the byte lock from before it
/// looks, so that the watchdog never takes it for dead.
#[test]
fn a_watchdog_beside_a_recycler_hands_back_what_the_recycler_left() {
    let wanted = [
        "recycled at once",
        "units left",
        "lock held",
        "watchdog records",
        "recycler records",
    ];
    check_seeing("judge, recycler", 3, &wanted, |outcomes| {
        let (world, _dead) = World::owned(&[HIGH]);
        let mut watchdog = world.watchdog();
        world.bury(1);
        let watchdog = {
            let world = Arc::clone(&world);
            thread::spawn(move || (reclaim(&world, &mut watchdog, SOON), watchdog))
        };
        world.set_lock(true);
        let next = world.cells.register(B, Owners::GoneUpTo(1));
        if next.is_err() {
            world.set_lock(false);
        }
        let (mut taken, mut watchdog) = watchdog.join().unwrap();
        if taken.is_empty() {
            // It found the lock held: the next scan finds it free.
            assert!(
                next.is_err(),
                "lost: recycled before anybody handed it back"
            );
            taken = reclaim(&world, &mut watchdog, SOON);
            outcomes.saw("lock held");
        }
        assert_eq!(taken, units(&[HIGH]), "lost, or taken from somebody else");
        let recorded = watchdog.recorded.get();
        let deaths = world.cells.verdict.deaths();
        assert_eq!(
            (deaths.generation(), deaths.waiting()),
            (1, 1),
            "one death, told once"
        );
        outcomes.saw(if recorded == 0 {
            "recycler records"
        } else {
            "watchdog records"
        });
        let next = match next {
            Ok(next) => {
                outcomes.saw("recycled at once");
                next
            }
            Err(obstacle) => {
                assert_eq!(obstacle, Obstacle::Units(units(&[HIGH])));
                outcomes.saw("units left");
                world
                    .cells
                    .register(B, Owners::GoneUpTo(1))
                    .expect("acknowledged and empty")
            }
        };
        world
            .cells
            .slot
            .mark(next, unit(LOW))
            .expect("fenced with its predecessor");
    });
}

/// A process registers, works, and gives everything back in order while a watchdog looks: whatever it
/// sees in between, nobody has died.
#[test]
fn who_gives_back_in_order_is_never_told_dead() {
    let wanted = ["nothing", "released"];
    check_seeing("judge, orderly owner", 3, &wanted, |outcomes| {
        let cells = Cells::free();
        let world = World::around(cells, 0);
        let mut watchdog = world.watchdog();
        let child = thread::spawn(move || {
            let (_, finding) = watchdog.judge(&scan(first_epoch(1)));
            (finding, watchdog.recorded.get())
        });
        world.set_lock(true);
        let live = world.cells.register(A, Owners::Unproven).expect("free");
        world
            .cells
            .slot
            .mark(live, unit(LOW))
            .expect("the owner's own slot");
        let left = world.cells.give_back(live).expect("the owner's own slot");
        assert_eq!(left, units(&[LOW]));
        world.set_lock(false);
        let (finding, recorded) = child.join().unwrap();
        assert_eq!(
            (recorded, world.cells.verdict.deaths().waiting()),
            (0, 0),
            "told dead"
        );
        match finding {
            None => outcomes.saw("nothing"),
            Some(finding) => {
                assert_eq!((finding.verdict, finding.units), (Verdict::Released, left));
                outcomes.saw("released");
            }
        }
    });
}

/// As above, of an owner that was LIVE before: lock free and certificate disarmed say "gone" for a
/// moment to who looked at the claim too early.
#[test]
fn who_gives_back_under_the_eyes_of_a_watchdog_is_never_told_dead() {
    check_giving_back("judge, owner gives back", SOON, &["nothing", "released"]);
}

/// As above, and the watchdog takes the owner for silent.
#[test]
fn who_gives_back_late_is_never_told_dead() {
    let wanted = ["nothing", "released", "silent"];
    check_giving_back("judge, late owner gives back", SOON + 1, &wanted);
}

fn check_giving_back(name: &str, epoch: u64, wanted: &[&str]) {
    check_seeing(name, 3, wanted, move |outcomes| {
        let (world, live) = World::owned(&[HIGH]);
        let mut watchdog = world.watchdog();
        let child = thread::spawn(move || {
            let (_, finding) = watchdog.judge(&scan(epoch));
            (finding, watchdog.recorded.get())
        });
        let left = world.cells.give_back(live).expect("the owner's own slot");
        world.set_lock(false);
        let (finding, recorded) = child.join().unwrap();
        let deaths = world.cells.verdict.deaths().waiting();
        assert_eq!((recorded, deaths), (0, 0), "told dead");
        assert_eq!(left, units(&[HIGH]));
        match finding {
            None => outcomes.saw("nothing"),
            Some(finding) => {
                assert_eq!(finding.units, left);
                assert_ne!(finding.verdict, Verdict::Died, "told dead");
                let released = finding.verdict == Verdict::Released;
                outcomes.saw(if released { "released" } else { "silent" });
            }
        }
    });
}

/// Units of a slot given back are handed back before the next registrant gets the slot.
#[test]
fn units_left_behind_are_handed_back_before_the_slot_is_reused() {
    let wanted = ["reused at once", "units left", "owned"];
    check_seeing("judge, released", 3, &wanted, |outcomes| {
        let (world, live) = World::owned(&[LOW, HIGH]);
        let mut watchdog = world.watchdog();
        let registrant = {
            let world = Arc::clone(&world);
            thread::spawn(move || world.cells.register(B, Owners::Unproven))
        };
        let watchdog = {
            let world = Arc::clone(&world);
            thread::spawn(move || (reclaim(&world, &mut watchdog, SOON), watchdog))
        };
        world.cells.give_back(live).expect("the owner's own slot");
        let (mut taken, mut watchdog) = watchdog.join().unwrap();
        let next = registrant.join().unwrap();
        if taken.is_empty() {
            assert!(
                next.is_err(),
                "lost: reused before anybody handed them back"
            );
            taken = reclaim(&world, &mut watchdog, SOON);
        }
        assert_eq!(taken, units(&[LOW, HIGH]));
        match next {
            Ok(next) => {
                assert_eq!(world.cells.slot.units(1), UnitSet::EMPTY);
                world
                    .cells
                    .slot
                    .mark(next, unit(LOW))
                    .expect("fenced with its predecessor");
                outcomes.saw("reused at once");
            }
            Err(Obstacle::Units(_)) => outcomes.saw("units left"),
            Err(Obstacle::Owned(by)) => {
                assert_eq!(by, live);
                outcomes.saw("owned");
            }
            Err(other) => panic!("{other:?}"),
        }
    });
}

/// The claimer dies anywhere before LIVE: nobody waits for it, its death is told once, and a watchdog
/// that finds it CLAIMING fences nothing that a recycler would need.
#[test]
fn a_dead_claimer_is_told_dead_once_and_its_slot_is_taken() {
    let wanted = [
        DIED,
        "told by the watchdog",
        "told by the recycler",
        "nobody died",
    ];
    check_each_death("judge, claimer dies", 2, &wanted, |outcomes, changes| {
        let world = World::around(Cells::free(), 1);
        let mut watchdog = world.watchdog();
        let died = die_before_change(changes, || world.cells.register(A, Owners::Unproven));
        if died.is_none() {
            outcomes.saw(DIED);
        }
        let dead = world.cells.slot.claimed_by();
        world.bury(dead.generation());
        let child = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                (
                    reclaim(&world, &mut watchdog, SOON),
                    watchdog.recorded.get(),
                )
            })
        };
        let gone = Owners::GoneUpTo(dead.generation());
        world.set_lock(true);
        let next = world.cells.register(B, gone).expect("empty, and nobody's");
        let (taken, recorded) = child.join().unwrap();
        assert_eq!(taken, UnitSet::EMPTY);
        let deaths = u32::from(dead != Claim::FREE);
        assert_eq!(
            world.cells.verdict.deaths().waiting(),
            deaths,
            "one death, told once"
        );
        world
            .cells
            .slot
            .mark(next, unit(LOW))
            .expect("fenced with its predecessor");
        outcomes.saw(match (deaths, recorded) {
            (0, _) => "nobody died",
            (_, 0) => "told by the recycler",
            _ => "told by the watchdog",
        });
    });
}

/// The owner is late and then gone: Died after Silent, without a second hand-back.
#[test]
fn died_may_follow_silent_without_a_second_hand_back() {
    check_seeing(
        "judge, silent then dead",
        3,
        &["silent", "died"],
        |outcomes| {
            let (world, _live) = World::owned(&[HIGH]);
            let mut watchdog = world.watchdog();
            let late = SOON + 1;
            let child = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let (_, finding) = watchdog.judge(&scan(late));
                    let finding = finding.expect("late, or dead");
                    (
                        finding,
                        world.cells.slot.acknowledge(1, finding.units),
                        watchdog,
                    )
                })
            };
            world.bury(1);
            let (finding, taken, mut watchdog) = child.join().unwrap();
            assert_eq!(taken.units, units(&[HIGH]));
            let (_, again) = watchdog.judge(&scan(late + 1));
            let again = again.expect("dead, and its slot not reused");
            assert_eq!(
                (again.verdict, again.evidence.proof),
                (Verdict::Died, Proof::Gone)
            );
            assert!(
                again.units.is_empty() && again.is_acknowledged,
                "handed back twice"
            );
            assert_eq!(
                (
                    watchdog.recorded.get(),
                    world.cells.verdict.deaths().waiting()
                ),
                (1, 1)
            );
            outcomes.saw(if finding.verdict == Verdict::Died {
                "died"
            } else {
                "silent"
            });
        },
    );
}
