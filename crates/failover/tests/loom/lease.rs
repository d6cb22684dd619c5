//! The lease: one holder, and each takeover is the next term.

use std::sync::Arc;

use bumpless_failover::lease::{Holder, Lease};
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::AtomicU64;
use loom::thread;

use crate::seeing::check_seeing;

const MINE: Holder = Holder::Slot {
    slot: 1,
    generation: 1,
};
const THEIRS: Holder = Holder::Slot {
    slot: 2,
    generation: 1,
};

#[test]
fn of_two_standbys_one_takes_over_in_each_term() {
    check_seeing(
        "lease, 2 standbys",
        3,
        &["one takes", "one after the other"],
        |outcomes| {
            let word = Arc::new(AtomicU64::zeroed());
            let child = {
                let word = Arc::clone(&word);
                thread::spawn(move || Lease::load(&word).take(&word, THEIRS))
            };
            let main = Lease::load(&word).take(&word, MINE);
            let child = child.join().unwrap();
            let now = Lease::load(&word);
            match (main, child) {
                (Some(taken), None) | (None, Some(taken)) => {
                    assert_eq!((now, taken.term()), (taken, 1));
                    outcomes.saw("one takes");
                }
                (Some(main), Some(child)) => {
                    assert_eq!(main.term() + child.term(), 3, "one term, two holders");
                    assert_eq!(now.term(), 2);
                    outcomes.saw("one after the other");
                }
                (None, None) => panic!("nobody takes over"),
            }
        },
    );
}

#[test]
fn a_holder_that_gives_back_too_late_takes_nothing_away() {
    check_seeing(
        "lease, given back",
        3,
        &["given back", "taken over"],
        |outcomes| {
            let word = Arc::new(AtomicU64::zeroed());
            let held = Lease::load(&word).take(&word, MINE).expect("nobody's");
            let standby = {
                let word = Arc::clone(&word);
                thread::spawn(move || Lease::load(&word).take(&word, THEIRS))
            };
            held.give_back(&word);
            let taken = standby.join().unwrap();
            let now = Lease::load(&word);
            match taken {
                Some(taken) => {
                    assert_eq!(
                        (now, now.term(), now.holder()),
                        (taken, 2, THEIRS),
                        "taken away"
                    );
                    outcomes.saw("taken over");
                }
                None => {
                    assert_eq!((now.holder(), now.term()), (Holder::Nobody, 1));
                    outcomes.saw("given back");
                }
            }
        },
    );
}
