//! Members that arrive at once: somebody releases, once, and nobody before all are there.

use std::sync::Arc;

use bumpless_barrier::floor::Wanted;
use loom::thread;

use crate::hall::{FIRST, Hall, living};
use crate::seeing::check_seeing;

#[test]
fn of_two_that_arrive_at_once_one_releases_both() {
    let wanted = ["main goes on", "child goes on", "both go on"];
    check_seeing("barrier, 2 arrive", 3, &wanted, |outcomes| {
        let hall = Hall::of(2);
        let arrive = |hall: &Hall, own: u32, other: u32| {
            hall.write(own);
            let is_past = hall.pass(living(2), own);
            if is_past {
                hall.check_written(other);
            }
            is_past
        };
        let child = {
            let hall = Arc::clone(&hall);
            thread::spawn(move || arrive(&hall, 1, 0))
        };
        let main = arrive(&hall, 0, 1);
        let child = child.join().unwrap();
        assert_eq!(hall.epoch(), FIRST + 1, "both have arrived");
        outcomes.saw(match (main, child) {
            (true, true) => "both go on",
            (true, false) => "main goes on",
            (false, true) => "child goes on",
            (false, false) => panic!("released by nobody"),
        });
    });
}

#[test]
fn of_three_none_goes_on_before_the_last_has_arrived() {
    let wanted = ["a child releases", "main releases"];
    check_seeing("barrier, 3 arrive", 2, &wanted, |outcomes| {
        let hall = Hall::of(3);
        let arrive = |hall: &Hall, own: u32| {
            hall.write(own);
            let is_past = hall.pass(living(3), own);
            if is_past {
                (0..3).for_each(|slot| hall.check_written(slot));
            }
            is_past
        };
        let children = [1, 2].map(|own| {
            let hall = Arc::clone(&hall);
            thread::spawn(move || arrive(&hall, own))
        });
        let main = arrive(&hall, 0);
        let released = children.map(|child| child.join().unwrap());
        assert_eq!(hall.epoch(), FIRST + 1);
        assert!(main || released != [false; 2], "released by nobody");
        outcomes.saw(if main {
            "main releases"
        } else {
            "a child releases"
        });
    });
}

/// Main goes on without the child by a quorum of one, and then waits for it.
#[test]
fn a_late_arrival_counts_in_the_epoch_that_it_names_and_in_no_later_one() {
    let wanted = ["in time", "for the next epoch", "too late for both"];
    check_seeing("barrier, late arrival", 3, &wanted, move |outcomes| {
        let hall = Hall::of(2);
        let child = {
            let hall = Arc::clone(&hall);
            thread::spawn(move || hall.arrive(1, Wanted::All))
        };
        let alone = Wanted::Quorum(1);
        let seat = hall.arrive(0, alone);
        assert!(hall.is_past(living(2), &seat, alone));
        let went_on = hall.pass(living(2), 0);
        let named = child.join().unwrap().target().number();
        if went_on {
            assert_eq!(named, FIRST + 1, "counted in another epoch");
        }
        outcomes.saw(match (named == FIRST, went_on) {
            (true, _) => wanted[0],
            (false, true) => wanted[1],
            (false, false) => wanted[2],
        });
    });
}
