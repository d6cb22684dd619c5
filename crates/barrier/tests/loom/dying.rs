//! A member that dies before any of its changes: the others go on once its death is known.

use std::sync::Arc;

use bumpless_barrier::floor::Wanted;
use bumpless_substrate::sync::die_before_change;
use loom::thread;

use crate::hall::{FIRST, Hall, OWNER, Owners, living};
use crate::seeing::{DIED, check_each_death};

const SECOND_IS_DEAD: Owners = Owners { slots: 2, dead: 1 };

/// What the member in slot 1 does when it dies.
fn check_going_on(name: &str, operation: fn(&Hall)) {
    let wanted = [DIED, "goes on at once", "goes on after the death"];
    check_each_death(name, 2, &wanted, move |outcomes, changes| {
        let hall = Hall::of(2);
        let child = {
            let hall = Arc::clone(&hall);
            thread::spawn(move || die_before_change(changes, || operation(&hall)).is_none())
        };
        let seat = hall.arrive(0, Wanted::All);
        let at_once = hall.is_past(living(2), &seat, Wanted::All);
        if child.join().unwrap() {
            outcomes.saw(DIED);
        }
        assert!(hall.is_past(SECOND_IS_DEAD, &seat, Wanted::All), "stuck");
        assert_eq!(hall.epoch(), FIRST + 1);
        for _ in 0..3 {
            assert!(hall.pass(SECOND_IS_DEAD, 0), "held up by the dead");
        }
        let floor = hall.floor();
        assert_eq!(floor.members(&SECOND_IS_DEAD).count(), 1, "not forgotten");
        outcomes.saw(wanted[if at_once { 1 } else { 2 }]);
    });
}

#[test]
fn who_dies_arriving_or_releasing_holds_nobody_up() {
    check_going_on("barrier, death of an arriver", |hall| {
        hall.pass(living(2), 1);
    });
}

#[test]
fn who_dies_taking_back_or_leaving_holds_nobody_up() {
    check_going_on("barrier, death of a leaver", |hall| {
        let seat = hall.arrive(1, Wanted::All);
        let _either = hall.floor().withdraw(&seat);
        let _wakes = hall.floor().leave(1, OWNER);
    });
}

#[test]
fn the_arrival_of_a_dead_member_is_none_of_a_quorum() {
    let wanted = [DIED, "arrived, then died"];
    let both = Wanted::Quorum(2);
    check_each_death(
        "barrier, quorum of the dead",
        2,
        &wanted,
        move |outcomes, changes| {
            let hall = Hall::of(2);
            let child = {
                let hall = Arc::clone(&hall);
                thread::spawn(move || die_before_change(changes, || hall.arrive(1, both)).is_none())
            };
            let seat = hall.arrive(0, both);
            outcomes.saw(if child.join().unwrap() {
                DIED
            } else {
                wanted[1]
            });
            assert!(
                !hall.is_past(SECOND_IS_DEAD, &seat, both),
                "released by the dead"
            );
        },
    );
}

#[test]
fn who_dies_joining_holds_nobody_up() {
    let wanted = [DIED];
    check_each_death(
        "barrier, death of a joiner",
        2,
        &wanted,
        |outcomes, changes| {
            let hall = Hall::of(1);
            let child = {
                let hall = Arc::clone(&hall);
                thread::spawn(move || {
                    die_before_change(changes, || hall.floor().join(1, OWNER)).is_none()
                })
            };
            assert!(hall.pass(living(2), 0), "held up by one who joins");
            if child.join().unwrap() {
                outcomes.saw(DIED);
            }
            for _ in 0..4 {
                assert!(hall.pass(SECOND_IS_DEAD, 0), "held up by the dead");
            }
        },
    );
}
