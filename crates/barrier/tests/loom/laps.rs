//! Round the circle of epochs, which models have of eight: a word that stays behind never seems ahead.

use std::sync::Arc;

use bumpless_barrier::floor::Wanted;
use loom::thread;

use crate::hall::{Hall, living};
use crate::seeing::check_seeing;

/// More than a whole circle, and then where what lies behind would seem to be ahead.
const EPOCHS: usize = 13;

#[test]
fn who_stays_behind_a_whole_circle_is_still_waited_for() {
    check_seeing("barrier, a lap behind", 1, &["waited for"], |outcomes| {
        let hall = Hall::of(2);
        let alone = Wanted::Quorum(1);
        for _ in 0..EPOCHS {
            let seat = hall.arrive(0, alone);
            assert!(hall.is_past(living(2), &seat, alone));
        }
        assert!(!hall.pass(living(2), 0), "released without it");
        assert!(hall.pass(living(2), 1));
        outcomes.saw("waited for");
    });
}

#[test]
fn an_arrival_beside_its_word_being_brought_up_to_date_counts_or_is_past() {
    let wanted = ["past", "counts"];
    check_seeing(
        "barrier, arrival beside a lap",
        2,
        &wanted,
        move |outcomes| {
            let hall = Hall::of(2);
            let alone = Wanted::Quorum(1);
            let go_on = |hall: &Hall| {
                let seat = hall.arrive(0, alone);
                assert!(hall.is_past(living(2), &seat, alone));
            };
            // The next look finds the other one's word more than a quarter behind.
            (0..3).for_each(|_| go_on(&hall));
            let child = {
                let hall = Arc::clone(&hall);
                thread::spawn(move || hall.arrive(1, Wanted::All))
            };
            go_on(&hall);
            let seat = child.join().unwrap();
            let was_past = hall.is_past(living(2), &seat, Wanted::All);
            assert!(
                hall.pass(living(2), 0) != was_past,
                "counted twice, or never"
            );
            outcomes.saw(wanted[usize::from(!was_past)]);
        },
    );
}
