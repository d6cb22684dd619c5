//! What a slot says of its owner: once gone, gone; and never what is another owner's.

use std::sync::Arc;

use bumpless_barrier::Presence;
use bumpless_barrier::presence::presence;
use bumpless_heartbeat::UnitSet;
use bumpless_heartbeat::slot::{Claimable, FenceOutcome};
use bumpless_substrate::sync::Ordering;
use loom::thread;

use crate::cells::{B, Cells};
use crate::seeing::check_seeing;

/// Keeper words as the kernel leaves them, and as an owner arms them.
const DIED: u32 = 0xc000_0000;
const ARMED: u32 = 0x8000_0123;

#[test]
fn a_fenced_owner_is_never_live_again() {
    let wanted = ["live, then fenced", "fenced"];
    check_seeing("presence, fence", 3, &wanted, move |outcomes| {
        let (cells, live) = Cells::owned(&[]);
        let waiter = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || [(); 2].map(|()| presence(&cells.slot, live.generation())))
        };
        let fenced = FenceOutcome::Fenced(UnitSet::EMPTY);
        assert_eq!(cells.slot.fence(1), fenced);
        assert_eq!(presence(&cells.slot, live.generation()), Presence::Fenced);
        let looks = waiter.join().unwrap();
        assert!(looks != [Presence::Fenced, Presence::Live]);
        outcomes.saw(wanted[usize::from(looks[0] == Presence::Fenced)]);
    });
}

/// The first owner is marked; the next one takes the slot and arms a certificate of its own.
#[test]
fn the_mark_of_a_former_owner_is_none_of_the_next_ones() {
    let wanted = ["died", "left", "the next one lives"];
    check_seeing("presence, turnover", 3, &wanted, move |outcomes| {
        let (cells, live) = Cells::owned(&[]);
        // Relaxed: nobody else is there yet.
        cells.slot.keeper_word().store(DIED, Ordering::Relaxed);
        let heir = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || {
                let seen = cells.slot.claimed_by();
                assert_eq!(cells.slot.recycle(seen), Claimable::Yes);
                // Relaxed: published with the claim.
                let arm = |cells: &Cells| cells.slot.keeper_word().store(ARMED, Ordering::Relaxed);
                cells.take_arming(seen, B, Claimable::Yes, arm)
            })
        };
        let former = presence(&cells.slot, live.generation());
        let next = presence(&cells.slot, live.generation() + 1);
        assert!(matches!(next, Presence::Live | Presence::Left), "{next:?}");
        heir.join().unwrap().expect("the slot of the dead");
        if next == Presence::Live {
            outcomes.saw(wanted[2]);
        }
        // While the heir writes, nothing may say yet that the former one is gone.
        match former {
            Presence::Died => outcomes.saw(wanted[0]),
            Presence::Left => outcomes.saw(wanted[1]),
            Presence::Live | Presence::Fenced => {}
        }
        assert_eq!(presence(&cells.slot, live.generation()), Presence::Left);
    });
}
