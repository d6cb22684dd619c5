//! A sequence lock over payloads that are atomics themselves.
//!
//! Contract: one writer at a time (the owner of the record), any number of readers, which never
//! write and never wait: after a bounded number of tries they get `None` and learn from the claim
//! word who is inside. A writer that died inside leaves the version odd; its successor moves it
//! forward, never back, so no reader can take two owners' halves for one whole.
//!
//! ```text
//!   version:  even = payload at rest          odd = a writer is inside (or died there)
//!   write:    v|1 ── release fence ── payload, relaxed ── (v|1)+1, release
//!   read:     v ── acquire fence ── payload, relaxed ── acquire fence ── v again?
//!   repair:   the next writer starts from (v|1)+1
//! ```
//! If a payload load sees a new store, the writer's release fence and the reader's second acquire
//! fence synchronise, so the second look at the version sees at least the odd value: Boehm, "Can
//! seqlocks get along with programming language memory models?", MSPC 2012. A release *store* of
//! the odd value would not do: it orders what came before it.

use crate::layout::Shared;
use crate::sync::{AtomicU64, Ordering, fence, spin_loop};

/// The version word. Written by the owner of the record alone.
///
/// ```
/// use bumpless_substrate::{layout::Shared, seqlock::SeqLock};
/// use bumpless_substrate::sync::{AtomicU64, Ordering};
/// let (lock, x) = (SeqLock::zeroed(), AtomicU64::new(0));
/// lock.write(|| x.store(7, Ordering::Relaxed));
/// assert_eq!(lock.read(4, || x.load(Ordering::Relaxed)), Some(7));
/// let _died_inside = lock.begin();
/// assert_eq!(lock.read(4, || x.load(Ordering::Relaxed)), None);
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct SeqLock(AtomicU64);

/// The odd version of a write under way; given back to [`SeqLock::end`].
#[derive(Debug)]
#[must_use = "without `end` the payload stays unreadable"]
pub struct Writing(u64);

// SAFETY: a transparent wrapper of an `AtomicU64`, which is `Shared`.
unsafe impl Shared for SeqLock {
    fn zeroed() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl SeqLock {
    /// Runs `payload`, which stores the payload relaxed, as one change.
    pub fn write(&self, payload: impl FnOnce()) {
        let writing = self.begin();
        payload();
        self.end(writing);
    }

    /// Opens a change: readers see no payload until [`end`](Self::end). Steps over what a writer that
    /// died inside left behind.
    pub fn begin(&self) -> Writing {
        // Relaxed: the single writer reads its own, or its predecessor's value, which the claim
        // word's Acquire made visible.
        let found = self.0.load(Ordering::Relaxed);
        let rest = if found & 1 == 1 {
            (found | 1).wrapping_add(1)
        } else {
            found
        };
        let odd = rest | 1;
        // Relaxed: the fence orders it before the payload.
        self.0.store(odd, Ordering::Relaxed);
        // Pairs with the acquire fence behind the payload loads in `read`.
        fence(Ordering::Release);
        Writing(odd)
    }

    /// Closes the change that [`begin`](Self::begin) opened.
    pub fn end(&self, writing: Writing) {
        // Release pairs with the first acquire fence in `read`: the whole payload before even.
        self.0.store(writing.0.wrapping_add(1), Ordering::Release);
    }

    /// Runs `payload`, which loads the payload relaxed, until it ran beside no writer; `None` when
    /// that did not happen within `tries`. Allowed on a read-only mapping. Always inlined: a payload that
    /// is returned through memory costs more than the loads.
    #[inline(always)]
    pub fn read<T>(&self, tries: u32, payload: impl Fn() -> T) -> Option<T> {
        for _ in 0..tries {
            // Relaxed: the fence below orders it (a read-only mapping allows no acquire load).
            let before = self.0.load(Ordering::Relaxed);
            // Pairs with the Release store in `end`.
            fence(Ordering::Acquire);
            if before & 1 == 0 {
                let value = payload();
                // Pairs with the release fence in `begin`.
                fence(Ordering::Acquire);
                // Relaxed: ordered behind the payload by the fence.
                if self.0.load(Ordering::Relaxed) == before {
                    return Some(value);
                }
            }
            spin_loop();
        }
        None
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_successor_of_a_dead_writer_moves_the_version_forward() {
        let lock = SeqLock::zeroed();
        let _died_inside = lock.begin();
        assert_eq!(lock.read(2, || ()), None);
        lock.write(|| ());
        assert_eq!(lock.0.load(Ordering::Relaxed), 4);
        assert_eq!(lock.read(1, || 5), Some(5));
    }

    #[test]
    fn the_version_wraps_without_a_stuck_reader() {
        let lock = SeqLock::zeroed();
        lock.0.store(u64::MAX, Ordering::Relaxed);
        lock.write(|| ());
        assert_eq!(lock.0.load(Ordering::Relaxed), 2);
        assert_eq!(lock.read(1, || 5), Some(5));
    }
}
