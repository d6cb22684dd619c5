//! A table of two slots with their candidacies, and a seat.

use std::sync::Arc;

use bumpless_election::candidacy::{Life, life};
use bumpless_election::claiming::{Electorate, Refusal, claim};
use bumpless_election::seat::{Candidate, LeaderLine, Reign};
use bumpless_heartbeat::slot::FenceOutcome;
use bumpless_substrate::claim::Claim;
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU32, Ordering};

use crate::cells::{A, B, Cells, Owners};

/// `FUTEX_OWNER_DIED`, of `linux/futex.h`.
const OWNER_DIED: u32 = 0x4000_0000;

/// The owner of slot 0, with the lower pid.
pub const LOW: Candidate = Candidate {
    slot: 0,
    generation: 1,
};
/// The owner of slot 1.
pub const HIGH: Candidate = Candidate {
    slot: 1,
    generation: 1,
};

#[derive(Debug)]
pub struct World {
    pub line: LeaderLine,
    slots: [(Arc<Cells>, Claim); 2],
    pub candidacies: [AtomicU32; 2],
}

impl World {
    /// Both slots are owned, nobody stands, and the last term was this one.
    pub fn after(term: u64) -> Arc<Self> {
        let line = LeaderLine::zeroed();
        line.begin(0, term);
        let slots = [A, B].map(|pid| {
            let cells = Cells::free();
            let live = cells.register(pid, Owners::Unproven).expect("a free slot");
            (cells, live)
        });
        let candidacies = Shared::zeroed();
        Arc::new(Self {
            line,
            slots,
            candidacies,
        })
    }

    /// As [`after`](Self::after), and `holder` leads in the term.
    pub fn led_by(holder: Candidate, term: u64) -> Arc<Self> {
        let world = Self::after(term - 1);
        let (reign, _) = world.claim(holder).expect("nobody leads");
        assert_eq!((reign.holder(), reign.term()), (Some(holder), term));
        world
    }

    pub fn claim(&self, me: Candidate) -> Result<(Reign, u32), Refusal> {
        claim(&self.line, self, me, false)
    }

    fn cells(&self, slot: u32) -> &Cells {
        &self.slots[slot as usize].0
    }

    /// What the kernel does when the owner of a slot ends.
    pub fn die(&self, slot: u32) {
        // AcqRel: the owner's stores before the mark; pairs with the acquire fence behind its load.
        let keeper = self.cells(slot).slot.keeper_word();
        keeper.swap(OWNER_DIED, Ordering::AcqRel);
    }

    /// What a watchdog does when the owner of a slot is late.
    pub fn fence(&self, who: Candidate) {
        let fenced = self.cells(who.slot).slot.fence(who.generation);
        assert!(matches!(fenced, FenceOutcome::Fenced(_)), "{fenced:?}");
    }

    /// Somebody takes over the slot of an owner that is proven gone.
    pub fn recycle(&self, slot: u32, pid: u32) -> Candidate {
        let owners = Owners::GoneUpTo(1);
        let next = self.cells(slot).register(pid, owners).expect("it is gone");
        Candidate {
            slot,
            generation: next.generation(),
        }
    }

    /// The owner of a slot gives it back, and the next one registers.
    pub fn change_owner(&self, slot: u32, pid: u32) -> Candidate {
        let (cells, live) = &self.slots[slot as usize];
        cells.give_back(*live).expect("the owner's own slot");
        let next = cells.register(pid, Owners::Unproven).expect("a free slot");
        Candidate {
            slot,
            generation: next.generation(),
        }
    }
}

impl Electorate for World {
    fn slots(&self) -> impl Iterator<Item = u32> {
        0..2
    }

    fn candidacy(&self, slot: u32) -> Option<&AtomicU32> {
        self.candidacies.get(slot as usize)
    }

    /// Nobody has a certificate until it is dead, and nothing else proves a death.
    fn living(&self, who: Candidate) -> Option<u32> {
        match life(&self.cells(who.slot).slot, who.generation) {
            Life::Lives { pid } | Life::Unproven { pid } => Some(pid),
            Life::Gone => None,
        }
    }
}
