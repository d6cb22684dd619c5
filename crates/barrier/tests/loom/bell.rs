//! The bell: whoever sleeps when the epoch is released is woken.
//!
//! The kernel's part is a word too: it compares the bell and lets the caller sleep in one step, which
//! here is a read-modify-write, and wakes who slept before the call to wake.

use std::sync::Arc;

use bumpless_barrier::floor::{Look, Wanted};
use bumpless_barrier::gate::Gate;
use bumpless_substrate::sync::Ordering;
use loom::thread;

use crate::hall::{FIRST, Hall, living};
use crate::seeing::check_seeing;

/// Whether the kernel finds the bell as it was rung and lets the caller sleep.
pub fn kernel_finds(gate: &Gate, rung: u32) -> bool {
    // AcqRel: the kernel's lock on the word.
    gate.bell().fetch_add(0, Ordering::AcqRel) == rung
}

/// Main waits for more than ever come, so that it never releases the epoch itself.
#[test]
fn nobody_sleeps_through_a_release() {
    let in_vain = Wanted::Quorum(3);
    let wanted = ["asleep, woken", "not asleep", "past before"];
    check_seeing("barrier, bell", 3, &wanted, move |outcomes| {
        let hall = Hall::of(2);
        let seat = hall.arrive(0, in_vain);
        let child = {
            let hall = Arc::clone(&hall);
            thread::spawn(move || {
                let seat = hall.arrive(1, Wanted::All);
                match hall.floor().look(&living(2), &seat, Wanted::All) {
                    Look::Complete(stand) => hall.floor().release(stand),
                    other => panic!("both have arrived: {other:?}"),
                }
            })
        };
        let gate = hall.floor().gate();
        let rung = gate.announce();
        let is_past = hall.is_past(living(2), &seat, in_vain);
        let sleeps = !is_past && kernel_finds(gate, rung);
        let is_woken = child.join().unwrap();
        assert_eq!(hall.epoch(), FIRST + 1);
        assert!(!sleeps || is_woken, "asleep, and nobody rings");
        outcomes.saw(match (is_past, sleeps) {
            (true, _) => wanted[2],
            (false, true) => wanted[0],
            (false, false) => wanted[1],
        });
    });
}
