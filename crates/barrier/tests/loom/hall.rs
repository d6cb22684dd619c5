//! A barrier of a few members, and what a waiter does up to its sleep.

use std::sync::Arc;

use bumpless_barrier::Presence;
use bumpless_barrier::floor::{Floor, Look, Roll, Seat, Wanted};
use bumpless_barrier::gate::Gate;
use bumpless_barrier::word::{ArrivalWord, Epoch};
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU64, Ordering};

/// The generation of every member.
pub const OWNER: u32 = 1;

/// The epoch in which models begin: the first in which the members are waited for.
pub const FIRST: u64 = 1;

/// More looks than a waiter makes before it sleeps or is past: each but the last follows a change.
const LOOKS_MAX: usize = 8;

/// Gate, words, and what each member wrote before it arrived.
#[derive(Debug)]
pub struct Hall {
    gate: Gate,
    words: [ArrivalWord; 3],
    data: [AtomicU64; 3],
}

/// The owners of the first slots, of whom the last may be dead.
#[derive(Debug, Clone, Copy)]
pub struct Owners {
    pub slots: u32,
    pub dead: u32,
}

/// Nobody is dead.
pub const fn living(slots: u32) -> Owners {
    Owners { slots, dead: 0 }
}

impl Roll for Owners {
    fn slots(&self) -> impl Iterator<Item = u32> {
        0..self.slots
    }

    fn presence(&self, slot: u32, _: u32) -> Presence {
        if slot < self.slots - self.dead {
            Presence::Live
        } else {
            Presence::Died
        }
    }
}

impl Hall {
    /// With so many members, in the first epoch in which they are waited for.
    pub fn of(members: u32) -> Arc<Self> {
        let hall = Self {
            gate: Gate::zeroed(),
            words: Shared::zeroed(),
            data: Shared::zeroed(),
        };
        assert!(hall.gate.release(hall.gate.look()));
        for slot in 0..members {
            let word = &hall.words[slot as usize];
            let joined = bumpless_barrier::word::Arrival::joined(OWNER, Epoch::new(FIRST));
            word.change(word.load(), joined).expect("nobody else yet");
        }
        Arc::new(hall)
    }

    pub fn floor(&self) -> Floor<'_> {
        Floor::new(&self.gate, &self.words)
    }

    pub fn epoch(&self) -> u64 {
        self.gate.look().epoch().number()
    }

    pub fn arrive(&self, slot: u32, wanted: Wanted) -> Seat {
        self.floor()
            .arrive(slot, OWNER, wanted)
            .expect("a member's own word")
    }

    /// Looks, and releases what is complete, as a waiter does; whether its epoch is past then.
    pub fn is_past(&self, owners: Owners, seat: &Seat, wanted: Wanted) -> bool {
        for _ in 0..LOOKS_MAX {
            match self.floor().look(&owners, seat, wanted) {
                Look::Past => return true,
                Look::Complete(stand) => drop(self.floor().release(stand)),
                Look::NotYet => return false,
                Look::Damaged => panic!("an epoch that never was"),
            }
        }
        panic!("complete without end");
    }

    /// Arrives for all and looks.
    pub fn pass(&self, owners: Owners, slot: u32) -> bool {
        let seat = self.arrive(slot, Wanted::All);
        self.is_past(owners, &seat, Wanted::All)
    }

    /// What a member writes before it arrives.
    pub fn write(&self, slot: u32) {
        // Relaxed: the barrier is what orders it.
        self.data[slot as usize].store(1, Ordering::Relaxed);
    }

    /// Panics unless what a member wrote is visible.
    pub fn check_written(&self, slot: u32) {
        // Relaxed: as above.
        let found = self.data[slot as usize].load(Ordering::Relaxed);
        assert_eq!(found, 1, "slot {slot} has arrived, and its data has not");
    }
}
