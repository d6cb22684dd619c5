//! Who stands: one word for each slot, the generation of the owner that does.
//!
//! Contract: written by the slot's owners alone; a later owner's candidacy is never touched by an
//! earlier one. A word counts only together with the table: of an owner that is gone, was fenced or
//! gave its slot back it means nothing, so nobody has to clear it. A leader leads only as long as it
//! stands: so one that is appointed while it withdraws leads nobody, and the next who looks replaces it.
//!
//! ```text
//!   word:  31  28 27             0       0: nobody stands
//!         ┌──────┬────────────────┐
//!         │ zero │ generation:28  │      stand: CAS to one's own, from any lower; withdraw: CAS to 0
//!         └──────┴────────────────┘
//! ```
//! Relaxed: a candidacy is a number on its own. Who misses a new one appoints somebody else, as if it had
//! come a moment later; who misses a withdrawal appoints a leader that leads nobody.

use bumpless_heartbeat::Certificate;
use bumpless_heartbeat::slot::Slot;
use bumpless_substrate::claim::GENERATION_MAX;
use bumpless_substrate::sync::{AtomicU32, Ordering};

/// How often a word is tried: only threads of its owner, and garbage, get in the way.
const TRIES: u32 = 8;

/// The generation that stands.
#[must_use]
pub fn standing(word: &AtomicU32) -> Option<u32> {
    let generation = word.load(Ordering::Relaxed) & GENERATION_MAX;
    (generation != 0).then_some(generation)
}

/// Stands. Cost: one load; one locked CAS more the first time.
///
/// # Errors
/// The word found: it is a later owner's, or garbage.
pub fn stand(word: &AtomicU32, generation: u32) -> Result<(), u32> {
    let mut found = word.load(Ordering::Relaxed);
    for _ in 0..TRIES {
        if found == generation {
            return Ok(());
        }
        if found > generation {
            break;
        }
        match word.compare_exchange(found, generation, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Ok(()),
            Err(now) => found = now,
        }
    }
    Err(found)
}

/// Stands no more; a later owner's candidacy stays.
pub fn withdraw(word: &AtomicU32, generation: u32) {
    // Lost only to a later owner, or to another thread that withdrew.
    let _ = word.compare_exchange(generation, 0, Ordering::Relaxed, Ordering::Relaxed);
}

/// What a slot says of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It is registered, was not fenced, and the kernel will mark its death.
    Lives {
        /// Its process id.
        pid: u32,
    },
    /// The same, without such a mark: more has to be asked.
    Unproven {
        /// Its process id.
        pid: u32,
    },
    /// It is there no more, or has lost its slot.
    Gone,
}

/// What the slot says of its owner of `generation`. Cost: three loads.
#[must_use]
pub fn life(slot: &Slot, generation: u32) -> Life {
    let claim = slot.claimed_by();
    if !claim.is_live() || claim.generation() != generation {
        return Life::Gone;
    }
    // A word of another generation: the slot has moved on since.
    if slot
        .peek_decision(generation)
        .is_none_or(|work| work.is_fenced())
    {
        return Life::Gone;
    }
    let pid = claim.pid();
    // A mark of a later owner's is read only once this one is gone: it wrote its own before LIVE.
    match slot.certificate() {
        Certificate::Armed => Life::Lives { pid },
        Certificate::Died => Life::Gone,
        Certificate::None | Certificate::Disarmed => Life::Unproven { pid },
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_substrate::layout::Shared;

    use super::*;

    #[test]
    fn a_later_owners_candidacy_is_neither_taken_nor_withdrawn() {
        let word = AtomicU32::zeroed();
        assert_eq!(standing(&word), None);
        assert_eq!((stand(&word, 4), stand(&word, 4)), (Ok(()), Ok(())));
        assert_eq!(stand(&word, 5), Ok(()));
        assert_eq!(stand(&word, 4), Err(5));
        withdraw(&word, 4);
        assert_eq!(standing(&word), Some(5));
        withdraw(&word, 5);
        assert_eq!(standing(&word), None);
    }
}
