//! An arrival that is taken back beside a release: one of the two.

use std::sync::Arc;

use bumpless_barrier::floor::Wanted;
use loom::thread;

use crate::hall::{FIRST, Hall, OWNER, living};
use crate::seeing::check_seeing;

#[test]
fn an_arrival_is_taken_back_or_its_epoch_was_released() {
    let wanted = ["taken back", "released first"];
    for quorum in [Wanted::All, Wanted::Quorum(2)] {
        check_seeing("barrier, withdraw", 3, &wanted, move |outcomes| {
            let hall = Hall::of(2);
            let seat = hall.arrive(0, Wanted::All);
            let child = {
                let hall = Arc::clone(&hall);
                thread::spawn(move || {
                    let seat = hall.arrive(1, quorum);
                    hall.is_past(living(2), &seat, quorum)
                })
            };
            let is_taken_back = hall.floor().withdraw(&seat);
            let went_on = child.join().unwrap();
            assert!(is_taken_back != went_on, "both were told so, or neither");
            assert_eq!(hall.epoch(), FIRST + u64::from(went_on));
            if is_taken_back {
                assert!(hall.pass(living(2), 0), "both are there now");
            }
            outcomes.saw(wanted[usize::from(went_on)]);
        });
    }
}

/// The one who leaves was the only one missing: whoever waits is told, or sees it before it sleeps.
#[test]
fn who_leaves_lets_the_others_go_on() {
    let wanted = ["seen at once", "rung for"];
    check_seeing("barrier, leave", 3, &wanted, move |outcomes| {
        let hall = Hall::of(2);
        let child = {
            let hall = Arc::clone(&hall);
            thread::spawn(move || hall.floor().leave(1, OWNER))
        };
        let seat = hall.arrive(0, Wanted::All);
        let is_past = |hall: &Hall| hall.is_past(living(2), &seat, Wanted::All);
        let gate = hall.floor().gate();
        let went_on = is_past(&hall) || {
            let rung = gate.announce();
            let went_on = is_past(&hall);
            if !went_on {
                // The kernel looks at the word, and lets it sleep.
                let sleeps = crate::bell::kernel_finds(gate, rung);
                let is_woken = child.join().unwrap();
                assert!(is_woken || !sleeps, "asleep, and nobody rings");
                assert!(is_past(&hall));
                outcomes.saw(wanted[1]);
                return;
            }
            went_on
        };
        child.join().unwrap();
        assert!(went_on);
        outcomes.saw(wanted[0]);
    });
}
