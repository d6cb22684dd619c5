//! The lease word: which watchdog is the primary one, and in which term.
//!
//! Contract: only the holder ticks, judges and reports. A watchdog is itself registered in the table;
//! the word names its slot and generation, so its death is seen like anybody's. Each takeover is the
//! next term: what was reported in an earlier term can no longer be acknowledged, and the new holder
//! reports it again under the same names. Terms wrap after a million takeovers.
//!
//! ```text
//!   word:  63       48 47               20 19        0
//!         ┌───────────┬───────────────────┬───────────┐
//!         │ slot:16   │ generation:28     │ term:20   │
//!         └───────────┴───────────────────┴───────────┘
//!   nobody: slot 0xffff, generation 0       a watchdog that found no slot: slot 0xffff, generation max
//!
//!   Nobody ──take──▶ Held ──give back──▶ Nobody
//!                     │ holder gone, or silent for four of its intervals
//!                     └──take (term + 1)──▶ Held by another
//! ```

use bumpless_substrate::claim::GENERATION_MAX;
use bumpless_substrate::sync::{AtomicU64, Ordering};

const TERM_BITS: u32 = 20;
const TERM_MASK: u64 = (1 << TERM_BITS) - 1;
const NO_SLOT: u32 = 0xffff;

/// The value of a lease word. Any bit pattern is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(u64);

/// Who holds a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// Nobody: it was never taken, or given back.
    Nobody,
    /// A watchdog without a slot: only its silence can be seen.
    Unregistered,
    /// The watchdog that is registered here.
    Slot {
        /// The slot's index.
        slot: u32,
        /// Which owner of the slot.
        generation: u32,
    },
}

impl Lease {
    /// The word now.
    #[must_use]
    pub fn load(word: &AtomicU64) -> Self {
        // Relaxed: the value alone decides, and nothing is published through the word.
        Self(word.load(Ordering::Relaxed))
    }

    /// The term: rises by one at each takeover.
    #[must_use]
    pub const fn term(self) -> u32 {
        (self.0 & TERM_MASK) as u32
    }

    /// Who holds it.
    #[must_use]
    pub const fn holder(self) -> Holder {
        let slot = (self.0 >> 48) as u32;
        let generation = (self.0 >> TERM_BITS) as u32 & GENERATION_MAX;
        match (slot, generation) {
            (_, 0) => Holder::Nobody,
            (NO_SLOT, GENERATION_MAX) => Holder::Unregistered,
            (slot, generation) => Holder::Slot { slot, generation },
        }
    }

    const fn new(holder: Holder, term: u32) -> Self {
        let (slot, generation) = match holder {
            Holder::Nobody => (NO_SLOT, 0),
            Holder::Unregistered => (NO_SLOT, GENERATION_MAX),
            Holder::Slot { slot, generation } => (slot & NO_SLOT, generation & GENERATION_MAX),
        };
        let term = term as u64 & TERM_MASK;
        Self((slot as u64) << 48 | (generation as u64) << TERM_BITS | term)
    }

    /// Takes the lease for `holder` in the next term, if the word still says what `self` says.
    #[must_use]
    pub fn take(self, word: &AtomicU64, holder: Holder) -> Option<Self> {
        self.exchange(word, Self::new(holder, self.term().wrapping_add(1)))
    }

    /// Gives the lease back, if the word still says what `self` says; the term stays, so that what was
    /// reported in it can still be acknowledged until somebody takes over.
    pub fn give_back(self, word: &AtomicU64) {
        // Lost only to a watchdog that took over.
        let _ = self.exchange(word, Self::new(Holder::Nobody, self.term()));
    }

    fn exchange(self, word: &AtomicU64, to: Self) -> Option<Self> {
        // Relaxed: the word is all there is. A new holder judges by the slots' own words, and what the
        // former one still does is refused by their generations, or repeats what is done already.
        word.compare_exchange(self.0, to.0, Ordering::Relaxed, Ordering::Relaxed)
            .ok()
            .map(|_| to)
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_substrate::layout::Shared;

    use super::*;

    #[test]
    fn each_takeover_is_the_next_term_and_only_one_wins() {
        let word = AtomicU64::zeroed();
        let free = Lease::load(&word);
        assert_eq!((free.holder(), free.term()), (Holder::Nobody, 0));
        let holder = Holder::Slot {
            slot: 65_534,
            generation: 7,
        };
        let held = free.take(&word, holder).unwrap();
        assert_eq!((held.holder(), held.term()), (holder, 1));
        assert_eq!(free.take(&word, Holder::Unregistered), None);
        held.give_back(&word);
        assert_eq!(
            (Lease::load(&word).holder(), Lease::load(&word).term()),
            (Holder::Nobody, 1)
        );
    }

    #[test]
    fn the_term_wraps_within_its_bits() {
        let word = AtomicU64::zeroed();
        let last = Lease::new(Holder::Unregistered, TERM_MASK as u32);
        word.store(last.0, Ordering::Relaxed);
        let next = last.take(&word, Holder::Unregistered).unwrap();
        assert_eq!((next.term(), next.holder()), (0, Holder::Unregistered));
    }
}
