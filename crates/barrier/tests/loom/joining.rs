//! A member that joins beside those who wait: waited for from the next epoch, and then for certain.

use std::sync::Arc;

use loom::thread;

use crate::hall::{FIRST, Hall, OWNER, living};
use crate::seeing::check_seeing;

#[test]
fn who_joins_is_waited_for_from_the_epoch_that_it_is_told() {
    let wanted = ["from the next epoch", "from a later one"];
    check_seeing("barrier, join", 3, &wanted, move |outcomes| {
        let hall = Hall::of(1);
        let child = {
            let hall = Arc::clone(&hall);
            thread::spawn(move || hall.floor().join(1, OWNER).unwrap().number())
        };
        assert!(hall.pass(living(2), 0), "held up by one who joins");
        let went_on = hall.pass(living(2), 0);
        let first = child.join().unwrap();
        assert!(first > FIRST);
        assert!(hall.epoch() <= first, "released without it");
        assert_eq!(went_on, first > FIRST + 1);
        let is_next = first == FIRST + 1;
        outcomes.saw(wanted[usize::from(!is_next)]);
        if went_on {
            // And now it is waited for.
            assert!(!hall.pass(living(2), 0) || hall.epoch() == first);
        }
    });
}
