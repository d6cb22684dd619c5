//! A member's word: who is a member in a slot, and in which epoch it has arrived.
//!
//! Contract: every change is one compare-and-swap of the whole word, which holds the generation of the
//! slot and the epoch; so nobody counts for another owner of the slot, nor in another epoch than the one
//! in which it arrived. Written by the member; by peers only when the member is proven gone, or so far
//! behind that its epoch would soon be read as one to come.
//!
//! ```text
//!   word:   63          36    35     34         0
//!         ┌───────────────┬─────────┬────────────┐      0: nobody
//!         │ generation:28 │ ARRIVED │ epoch:35   │
//!         └───────────────┴─────────┴────────────┘
//!
//!            join(e + 1)                  arrive(e)
//!   nobody ─────────────▶ joined, from e ─────────────▶ ARRIVED in e ──▶ arrive(later) ...
//!      ▲                       ▲                            │
//!      │ leave; dead           └───────── withdraw ─────────┘
//!      └──────────────────────────────────────────────────────
//! ```
//! Epochs are numbers on a circle: one that lies at most half of it behind is past, else it is to come.
//! Whoever looks at a word that is a quarter behind brings it up to date, and every word is looked at
//! before every release, so none ever gets half of the circle behind.

use bumpless_substrate::claim::GENERATION_MAX;
use bumpless_substrate::sync::{AtomicU64, Ordering};

/// How many bits an epoch has; models go round the circle in a few steps.
pub(crate) const EPOCH_BITS: u32 = if cfg!(bumpless_loom) { 3 } else { 35 };

/// A word that lies further behind than this is brought up to date.
pub(crate) const STALE_EPOCHS: i64 = 1 << (EPOCH_BITS - 2);

const EPOCH_MASK: u64 = (1 << EPOCH_BITS) - 1;
const ARRIVED: u64 = 1 << 35;
const GENERATION_SHIFT: u32 = 36;

/// The number of an epoch, on a circle of 2^35.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch with this number, of which the low 35 bits are kept.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number & EPOCH_MASK)
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }

    /// The epoch that its release begins.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::new(self.0 + 1)
    }

    /// How many releases it lies behind `now`; less than 0 when it is to come.
    #[must_use]
    pub const fn behind(self, now: Self) -> i64 {
        let unused = u64::BITS - EPOCH_BITS;
        (now.0.wrapping_sub(self.0) << unused).cast_signed() >> unused
    }

    /// The later one of two.
    #[must_use]
    pub const fn or_later(self, other: Self) -> Self {
        if self.behind(other) > 0 { other } else { self }
    }
}

/// The value of a member's word. Any bit pattern is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival(u64);

impl Arrival {
    /// No member.
    pub const NOBODY: Self = Self(0);

    /// A member that is waited for from `first` on, and has not arrived.
    #[must_use]
    pub const fn joined(generation: u32, first: Epoch) -> Self {
        Self(((generation & GENERATION_MAX) as u64) << GENERATION_SHIFT | first.0)
    }

    /// A member that has arrived in `epoch`.
    #[must_use]
    pub const fn arrived(generation: u32, epoch: Epoch) -> Self {
        Self(Self::joined(generation, epoch).0 | ARRIVED)
    }

    /// Which owner of the slot is the member; `None`: nobody is.
    #[must_use]
    pub const fn generation(self) -> Option<u32> {
        match (self.0 >> GENERATION_SHIFT) as u32 {
            0 => None,
            generation => Some(generation),
        }
    }

    /// The epoch in the word.
    #[must_use]
    pub const fn epoch(self) -> Epoch {
        Epoch::new(self.0)
    }

    /// The first epoch in which it is waited for and has not arrived.
    #[must_use]
    pub const fn first_owed(self) -> Epoch {
        if self.0 & ARRIVED == 0 {
            self.epoch()
        } else {
            self.epoch().next()
        }
    }

    /// Whether it has arrived in just this epoch.
    #[must_use]
    pub const fn has_arrived_in(self, epoch: Epoch) -> bool {
        self.0 & ARRIVED != 0 && self.epoch().0 == epoch.0
    }

    /// Whether this epoch is one in which it is waited for, and has not arrived.
    #[must_use]
    pub const fn is_owed_in(self, epoch: Epoch) -> bool {
        self.generation().is_some() && self.first_owed().behind(epoch) >= 0
    }
}

bumpless_substrate::shared_struct! {
    /// The word in shared memory. CAS only: the member; peers, for the dead and the far behind.
    pub struct ArrivalWord[size = 8, align = 8] {
        /// `generation:28 | ARRIVED:1 | epoch:35`. Read by everybody who waits.
        0 => word: AtomicU64,
    }
}

impl ArrivalWord {
    /// The word now, ordered before what is read afterwards.
    #[must_use]
    pub fn load(&self) -> Arrival {
        // Acquire pairs with the Release of `change`: what a member wrote before it arrived is visible
        // to whoever counts its arrival, and through the release to all who go on.
        Arrival(self.word.load(Ordering::Acquire))
    }

    /// The word now, for people, also on a mapping that may only be read.
    #[must_use]
    pub fn peek(&self) -> Arrival {
        // Relaxed: nothing is decided on it.
        Arrival(self.word.load(Ordering::Relaxed))
    }

    /// Changes the word if it still says `seen`.
    ///
    /// # Errors
    /// What it says instead.
    pub fn change(&self, seen: Arrival, to: Arrival) -> Result<(), Arrival> {
        // Release pairs with the Acquire of `load`. Relaxed on failure: what was found is looked at by
        // its value, or loaded again.
        self.word
            .compare_exchange(seen.0, to.0, Ordering::Release, Ordering::Relaxed)
            .map(|_| ())
            .map_err(Arrival)
    }

    /// Nobody is a member any more. Only before a revived file is published.
    pub fn clear(&self) {
        // Relaxed: published with the file.
        self.word.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    const LAST: Epoch = Epoch::new(EPOCH_MASK);

    #[test]
    fn epochs_are_compared_on_their_circle() {
        let (first, second) = (Epoch::new(0), Epoch::new(1));
        assert_eq!(LAST.next(), first);
        assert_eq!((LAST.behind(second), second.behind(LAST)), (2, -2));
        assert_eq!(LAST.or_later(first), first);
        assert_eq!(first.or_later(LAST), first);
        assert_eq!(first.or_later(first), first);
    }

    #[test]
    fn an_arrival_counts_in_its_own_epoch_alone() {
        let arrived = Arrival::arrived(7, Epoch::new(5));
        assert_eq!(arrived.generation(), Some(7));
        let counts = [4, 5, 6].map(|epoch| arrived.has_arrived_in(Epoch::new(epoch)));
        assert_eq!(counts, [false, true, false]);
        let owed = [4, 5, 6, 7].map(|epoch| arrived.is_owed_in(Epoch::new(epoch)));
        assert_eq!(owed, [false, false, true, true]);
    }

    #[test]
    fn who_joined_is_waited_for_from_its_first_epoch() {
        let joined = Arrival::joined(GENERATION_MAX, LAST);
        assert_eq!(joined.generation(), Some(GENERATION_MAX));
        assert!(!joined.is_owed_in(Epoch::new(EPOCH_MASK - 1)));
        assert!(joined.is_owed_in(LAST) && joined.is_owed_in(Epoch::new(0)));
        assert!(!joined.has_arrived_in(LAST));
        assert!(!Arrival::NOBODY.is_owed_in(Epoch::new(0)));
    }
}
