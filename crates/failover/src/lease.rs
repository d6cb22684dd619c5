//! The lease word: which watchdog is the primary one.
//!
//! Contract: whoever scans first takes a new term; a watchdog whose term is not the one in the word
//! ticks nothing and reports nothing, and what it reported before can no longer be acknowledged.
//! Terms rise by one and wrap after a million takeovers.
//!
//! ```text
//!   word:  63       48 47               20 19        0
//!         ┌───────────┬───────────────────┬───────────┐
//!         │ slot:16   │ generation:28     │ term:20   │    slot 0xffff = the watchdog has no slot
//!         └───────────┴───────────────────┴───────────┘
//! ```

use bumpless_substrate::sync::{AtomicU64, Ordering};

const TERM_BITS: u32 = 20;
const TERM_MASK: u64 = (1 << TERM_BITS) - 1;
const NO_SLOT: u64 = 0xffff << 48;

/// How often a takeover is tried against other watchdogs that start at the same time.
const TAKE_TRIES: u32 = 64;

/// The term that the word names now.
pub(crate) fn current_term(word: &AtomicU64) -> u32 {
    // Relaxed: the value alone decides.
    (word.load(Ordering::Relaxed) & TERM_MASK) as u32
}

/// Takes the next term; `None` when other watchdogs took one each time.
pub(crate) fn take(word: &AtomicU64) -> Option<u32> {
    // Relaxed, all of them: the value alone decides, and nothing is published through the word.
    let mut found = word.load(Ordering::Relaxed);
    for _ in 0..TAKE_TRIES {
        let term = (found + 1) & TERM_MASK;
        let wanted = NO_SLOT | term;
        match word.compare_exchange(found, wanted, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(term as u32),
            Err(now) => found = now,
        }
    }
    None
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_substrate::layout::Shared;

    use super::*;

    #[test]
    fn each_takeover_is_the_next_term_and_the_term_wraps() {
        let word = AtomicU64::zeroed();
        assert_eq!((take(&word), take(&word)), (Some(1), Some(2)));
        assert_eq!(current_term(&word), 2);
        word.store(NO_SLOT | TERM_MASK, Ordering::Relaxed);
        assert_eq!(take(&word), Some(0));
    }
}
