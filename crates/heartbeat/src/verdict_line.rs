//! The peers' line of a slot: deaths that were found, and how many of them were acknowledged.
//!
//! Contract: a death is recorded once per generation, by whoever proves it first (a watchdog, or a
//! registrant that recycles the slot while no watchdog runs), and acknowledged exactly once; so an
//! owner that died idle is never forgotten, although its slot may be in use again.
//!
//! ```text
//!  at  0          8              16                         64
//!      ┌──────────┬──────────────┬───────────────────────────┐
//!      │ deaths   │ last dead    │ spare                     │
//!      └──────────┴──────────────┴───────────────────────────┘
//!  deaths:   63             36 35           18 17               0
//!           ┌─────────────────┬───────────────┬──────────────────┐
//!           │ generation:28   │ recorded:18   │ acknowledged:18  │
//!           └─────────────────┴───────────────┴──────────────────┘
//! ```
//! Both counts wrap; their difference is what waits. It saturates at 131,071 for one slot: further
//! deaths of a slot whose reports nobody ever acknowledged are then no longer counted apart.

use bumpless_substrate::claim::Claim;
use bumpless_substrate::sync::{AtomicU64, Ordering, spin_loop};

const COUNT_BITS: u32 = 18;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const WAITING_MAX: u32 = (1 << (COUNT_BITS - 1)) - 1;

/// How often a change is tried against other peers before it is left to the next scan.
const TRIES: u32 = if cfg!(bumpless_loom) { 8 } else { 1_024 };

bumpless_substrate::shared_struct! {
    /// Written by CAS by watchdogs and recyclers; layout in the [module's text](self).
    pub struct VerdictLine[size = 64, align = 64] {
        /// Last generation found dead, deaths recorded, deaths acknowledged.
        0 => deaths: AtomicU64,
        /// The claim word of the last owner found dead; for people.
        8 => last_dead: AtomicU64,
        /// Zero.
        16 => spare: [AtomicU64; 6],
    }
}

/// The deaths word. Any bit pattern is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deaths(u64);

impl Deaths {
    const fn new(generation: u32, recorded: u32, acknowledged: u32) -> Self {
        Self(
            (generation as u64) << (2 * COUNT_BITS)
                | (recorded as u64 & COUNT_MASK) << COUNT_BITS
                | (acknowledged as u64 & COUNT_MASK),
        )
    }

    /// The last generation that was found dead.
    #[must_use]
    pub const fn generation(self) -> u32 {
        (self.0 >> (2 * COUNT_BITS)) as u32
    }

    /// How many deaths were recorded, modulo 2^18.
    #[must_use]
    pub const fn recorded(self) -> u32 {
        (self.0 >> COUNT_BITS & COUNT_MASK) as u32
    }

    const fn acknowledged(self) -> u32 {
        (self.0 & COUNT_MASK) as u32
    }

    /// How many recorded deaths nobody acknowledged yet.
    #[must_use]
    pub const fn waiting(self) -> u32 {
        distance(self.acknowledged(), self.recorded())
    }
}

const fn distance(from: u32, to: u32) -> u32 {
    to.wrapping_sub(from) & COUNT_MASK as u32
}

impl VerdictLine {
    /// The deaths word now.
    #[must_use]
    pub fn deaths(&self) -> Deaths {
        // Relaxed: a count on its own; changed by CAS from the exact value.
        Deaths(self.deaths.load(Ordering::Relaxed))
    }

    /// The claim of the last owner that was found dead.
    #[must_use]
    pub fn last_dead(&self) -> Claim {
        // Relaxed: for people.
        Claim::from_bits(self.last_dead.load(Ordering::Relaxed))
    }

    /// Records that the owner of `dead` is proven gone; true for exactly one caller per generation.
    pub fn record_death(&self, dead: Claim) -> bool {
        let mut found = self.deaths();
        for _ in 0..TRIES {
            if found.generation() >= dead.generation() {
                return false;
            }
            self.remember(dead);
            let recorded = if found.waiting() < WAITING_MAX {
                found.recorded() + 1
            } else {
                found.recorded()
            };
            let wanted = Deaths::new(dead.generation(), recorded, found.acknowledged());
            match self.exchange(found, wanted) {
                Ok(()) => return true,
                Err(now) => found = now,
            }
            spin_loop();
        }
        false
    }

    /// Acknowledges the deaths up to the count `recorded` that a report showed; how many of them this
    /// call, and no other, acknowledged.
    pub fn acknowledge(&self, recorded: u32) -> u32 {
        let mut found = self.deaths();
        for _ in 0..TRIES {
            let shown = distance(found.acknowledged(), recorded);
            if shown == 0 || shown > found.waiting() {
                return 0;
            }
            let wanted = Deaths::new(found.generation(), found.recorded(), recorded);
            match self.exchange(found, wanted) {
                Ok(()) => return shown,
                Err(now) => found = now,
            }
            spin_loop();
        }
        0
    }

    /// Moves the last dead owner forward. A change that is lost to an earlier generation's is made again,
    /// else the count would speak of one owner and the name of another.
    fn remember(&self, dead: Claim) {
        let mut found = self.last_dead();
        for _ in 0..TRIES {
            if found.generation() >= dead.generation() {
                return;
            }
            // Relaxed: for people, nothing is read through it.
            match self.last_dead.compare_exchange(
                found.bits(),
                dead.bits(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => found = Claim::from_bits(now),
            }
            spin_loop();
        }
    }

    fn exchange(&self, from: Deaths, to: Deaths) -> Result<(), Deaths> {
        // Relaxed: the word is all there is; nothing is published through it.
        self.deaths
            .compare_exchange(from.0, to.0, Ordering::Relaxed, Ordering::Relaxed)
            .map(|_| ())
            .map_err(Deaths)
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_substrate::claim::ClaimState;
    use bumpless_substrate::layout::Shared;

    use super::*;

    fn dead(generation: u32) -> Claim {
        Claim::new(77, generation, ClaimState::Live)
    }

    #[test]
    fn a_death_is_recorded_once_per_generation() {
        let line = VerdictLine::zeroed();
        assert!(line.record_death(dead(1)));
        assert!(!line.record_death(dead(1)));
        assert!(line.record_death(dead(4)));
        assert!(!line.record_death(dead(2)));
        assert_eq!((line.deaths().waiting(), line.last_dead()), (2, dead(4)));
    }

    #[test]
    fn each_death_is_acknowledged_once_also_by_overlapping_reports() {
        let line = VerdictLine::zeroed();
        line.record_death(dead(1));
        let first = line.deaths().recorded();
        line.record_death(dead(2));
        let second = line.deaths().recorded();
        assert_eq!(line.acknowledge(first), 1);
        assert_eq!(line.acknowledge(first), 0);
        assert_eq!(line.acknowledge(second), 1);
        line.record_death(dead(3));
        assert_eq!(line.acknowledge(second), 0);
        assert_eq!(line.deaths().waiting(), 1);
    }

    #[test]
    fn the_counts_wrap_and_what_waits_saturates() {
        let line = VerdictLine::zeroed();
        let near = Deaths::new(9, COUNT_MASK as u32, COUNT_MASK as u32);
        line.deaths.store(near.0, Ordering::Relaxed);
        assert!(line.record_death(dead(10)));
        assert_eq!((line.deaths().recorded(), line.deaths().waiting()), (0, 1));
        assert_eq!(line.acknowledge(0), 1);

        line.deaths
            .store(Deaths::new(9, WAITING_MAX, 0).0, Ordering::Relaxed);
        assert!(line.record_death(dead(10)));
        assert_eq!(line.deaths().waiting(), WAITING_MAX);
    }
}
