//! The barrier's own line: the epoch, and the bell on which those who wait sleep.
//!
//! ```text
//!   stand:  63          35 34         0      bell:   31                    1      0
//!         ┌───────────────┬────────────┐           ┌─────────────────────────┬────────┐
//!         │ changes:29    │ epoch:35   │           │ rises with each release │ WAITED │
//!         └───────────────┴────────────┘           └─────────────────────────┴────────┘
//! ```
//! Contract: an epoch is released by one compare-and-swap of the whole word, from what it said before
//! the releaser looked at the members. Whoever takes an arrival back, joins or leaves counts a change
//! there afterwards, so a release that was decided on what was true before fails; and whoever finds the
//! epoch gone when it counts its change knows that the release came first.
//!
//! Of two members that arrive at once, each writes its own word and reads the other's. Each therefore
//! touches this word in between with a read-modify-write: these have one order, and the later of the two
//! sees what the earlier one wrote before. No access is sequentially consistent.

use bumpless_substrate::sync::{AtomicU32, AtomicU64, Ordering};

use crate::word::{EPOCH_BITS, Epoch};

const ONE_CHANGE: u64 = 1 << EPOCH_BITS;

/// Bit 0 of the bell: somebody sleeps on it, or is about to.
const WAITED_ON: u32 = 1;

bumpless_substrate::shared_struct! {
    /// Line 1 of the region.
    pub struct Gate[size = 64, align = 64] {
        /// `changes:29 | epoch:35`. CAS: releasers; added to: who joins, leaves or gives up. Read by all.
        0 => stand: AtomicU64,
        /// Futex. Added to: releasers, who leaves; bit 0 set by who is about to sleep, and cleared by
        /// who wakes. Read by the kernel.
        8 => bell: AtomicU32,
        /// Zero.
        12 => spare_bell: AtomicU32,
        /// Zero.
        16 => spare: [AtomicU64; 6],
    }
}

/// What the gate's word says: the epoch, and how many changes there were. Any bit pattern is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stand(u64);

impl Stand {
    /// The epoch that has not been released.
    #[must_use]
    pub const fn epoch(self) -> Epoch {
        Epoch::new(self.0)
    }

    const fn released(self) -> Self {
        Self(self.0 & !(ONE_CHANGE - 1) | self.epoch().next().number())
    }
}

impl Gate {
    /// The word now, ordered before what is read afterwards.
    #[must_use]
    pub fn look(&self) -> Stand {
        // Acquire pairs with the Release of the three below: all that members wrote before they arrived
        // in the epochs before this one, and the words of all who joined or arrived up to now.
        Stand(self.stand.load(Ordering::Acquire))
    }

    /// The word now, for people, also on a mapping that may only be read.
    #[must_use]
    pub fn peek(&self) -> Stand {
        // Relaxed: nothing is decided on it.
        Stand(self.stand.load(Ordering::Relaxed))
    }

    /// To be called between one's own arrival and the look at the others.
    pub fn confirm(&self) -> Stand {
        // AcqRel pairs with itself in another member: of two that arrive at once the later one sees the
        // earlier one's word.
        Stand(self.stand.fetch_add(0, Ordering::AcqRel))
    }

    /// Makes every release fail that was decided on what was true before. What the word says then.
    pub fn count_change(&self) -> Stand {
        // AcqRel pairs with the CAS of `release`, which reads this or fails, and with `look`: who looks
        // at the members of an epoch that was not released before this sees the caller's word.
        Stand(self.stand.fetch_add(ONE_CHANGE, Ordering::AcqRel))
    }

    /// Releases the epoch, if the word still says `seen`.
    #[must_use]
    pub fn release(&self, seen: Stand) -> bool {
        // AcqRel pairs with `look` of those who go on, and carries on what earlier changes published.
        // Relaxed on failure: the caller looks anew.
        let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
        self.stand
            .compare_exchange(seen.0, seen.released().0, success, failure)
            .is_ok()
    }

    /// Asks to be woken at the next ring; what the bell then says. Sleep on that value only after another
    /// look at the epoch.
    #[must_use]
    pub fn announce(&self) -> u32 {
        // Acquire pairs with the Release of `ring`: who finds the bell rung finds the epoch released.
        self.bell.fetch_or(WAITED_ON, Ordering::Acquire) | WAITED_ON
    }

    /// Tells those who sleep, after the release or the leave; whether anybody is to be woken.
    #[must_use]
    pub fn ring(&self) -> bool {
        // Release pairs with the Acquire of `announce`.
        let before = self.bell.fetch_add(2, Ordering::Release);
        if before & WAITED_ON == 0 {
            return false;
        }
        // Relaxed: who sets it again in between finds the word changed, or is woken with the others.
        self.bell.fetch_and(!WAITED_ON, Ordering::Relaxed);
        true
    }

    /// The futex word.
    #[must_use]
    pub fn bell(&self) -> &AtomicU32 {
        &self.bell
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_substrate::layout::Shared;

    use super::*;

    #[test]
    fn a_release_needs_the_word_that_was_seen() {
        let gate = Gate::zeroed();
        let seen = gate.look();
        assert!(gate.release(seen) && !gate.release(seen));
        let seen = gate.confirm();
        assert_eq!(seen.epoch(), Epoch::new(1));
        assert_eq!(gate.count_change(), seen);
        assert!(!gate.release(seen), "decided before the change");
        assert!(gate.release(gate.look()));
        assert_eq!(gate.look().epoch(), Epoch::new(2));
    }

    #[test]
    fn changes_and_epochs_go_round_without_touching_each_other() {
        let gate = Gate::zeroed();
        gate.stand.store(u64::MAX, Ordering::Relaxed);
        assert!(gate.release(gate.look()));
        assert_eq!(gate.look(), Stand(u64::MAX << EPOCH_BITS));
        gate.count_change();
        assert_eq!(gate.look(), Stand(0));
    }

    #[test]
    fn only_who_announced_itself_is_woken() {
        let gate = Gate::zeroed();
        assert!(!gate.ring());
        let rung = gate.announce();
        assert_eq!(gate.bell.load(Ordering::Relaxed), rung);
        assert!(gate.ring() && !gate.ring());
        assert_ne!(gate.announce(), rung);
    }
}
