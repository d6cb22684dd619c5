//! The work word: 32 units of work in flight, the generation that owns them, and the fence.
//!
//! Contract: every change but the claimer's first store is a compare-and-swap that requires the
//! exact generation, so a late peer can neither fence nor clear a later owner's word, and a late
//! owner can neither mark nor complete once it is fenced. Of owner and reclaimer exactly one gets
//! each unit, because `complete` and `fence` are changes of one and the same word.
//!
//! ```text
//!   word:   63     62    61 60 59             32 31              0
//!         ┌────────┬───────┬─────┬───────────────┬─────────────────┐
//!         │ FENCED │ ACKED │  0  │ generation:28 │ units in flight │
//!         └────────┴───────┴─────┴───────────────┴─────────────────┘
//!
//!   open ──▶ unfenced ──fence──▶ FENCED ──acknowledge──▶ FENCED, fewer units (ACKED)
//!             │    ▲               never un-fenced; the next owner opens a new generation
//!             └────┘ mark, complete
//! ```
//!
//! Mark or complete against fence share a word, so their order is the word's modification order and
//! no sequentially consistent access is needed.

use core::fmt;

use crate::claim::GENERATION_MAX;
use crate::layout::Shared;
use crate::sync::{AtomicU64, Ordering, fence, spin_loop};

/// How many units one word holds.
pub const UNITS_PER_WORD: u32 = 32;

/// How often a watchdog tries to fence a word before it takes the owner's winning for life.
pub const FENCE_TRIES: u32 = if cfg!(bumpless_loom) { 2 } else { 8 };

/// How often a change is tried against other threads of one owner before [`WorkError::Contended`].
const CHANGE_TRIES: u32 = if cfg!(bumpless_loom) { 8 } else { 4_096 };

const FENCED: u64 = 1 << 63;
const ACKED: u64 = 1 << 62;
const GENERATION_SHIFT: u32 = 32;

/// The value of a work word. Any bit pattern is one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Work(u64);

impl Work {
    /// The value with exactly these bits, as found in a mapping.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// An unfenced word of `generation` with `units` in flight.
    #[must_use]
    pub const fn new(generation: u32, units: u32) -> Self {
        Self(((generation & GENERATION_MAX) as u64) << GENERATION_SHIFT | units as u64)
    }

    /// The bits of the word.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Which claim of the record the word belongs to.
    #[must_use]
    #[inline]
    pub const fn generation(self) -> u32 {
        (self.0 >> GENERATION_SHIFT) as u32 & GENERATION_MAX
    }

    /// The units in flight, a bit each.
    #[must_use]
    #[inline]
    pub const fn units(self) -> u32 {
        self.0 as u32
    }

    /// Whether the owner has lost the word.
    #[must_use]
    #[inline(always)]
    pub const fn is_fenced(self) -> bool {
        self.0 & FENCED != 0
    }

    /// Whether somebody acknowledged the report of this owner.
    #[must_use]
    #[inline]
    pub const fn is_acked(self) -> bool {
        self.0 & ACKED != 0
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fenced = if self.is_fenced() { ", FENCED" } else { "" };
        let acked = if self.is_acked() { ", ACKED" } else { "" };
        write!(
            f,
            "Work(generation {}, units {:#x}{fenced}{acked})",
            self.generation(),
            self.units()
        )
    }
}

/// Why a word was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkError {
    /// The word belongs to another claim of the record.
    #[error("the word is of generation {found}, not of {wanted}")]
    Generation {
        /// The generation in the word.
        found: u32,
        /// The generation of the caller.
        wanted: u32,
    },
    /// The owner has lost the word.
    #[error("the word is fenced")]
    Fenced,
    /// An acknowledgement before the fence.
    #[error("the word is not fenced")]
    NotFenced,
    /// The unit is in flight already.
    #[error("the unit is marked already")]
    AlreadyMarked,
    /// The unit is not in flight.
    #[error("the unit is not marked")]
    NotMarked,
    /// Others changed the word between each look and its change.
    #[error("lost {tries} compare-and-swaps in a row")]
    Contended {
        /// How many were tried.
        tries: u32,
    },
}

/// What one acknowledgement changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acknowledged {
    /// The units that this call, and no other, took over.
    pub units: u32,
    /// Whether this call, and no other, acknowledged the notice.
    pub notice: bool,
}

/// The word in shared memory. Written by CAS by the owner (mark, complete, own fence) and by peers
/// (fence, acknowledge); stored plainly only by a claimer while it is CLAIMING.
///
/// ```
/// use bumpless_substrate::{layout::Shared, work::{WorkError, WorkWord}};
/// let word = WorkWord::zeroed();
/// word.open(1);
/// word.mark(1, 0b100).unwrap();
/// assert_eq!(word.fence(1).unwrap().units(), 0b100);
/// assert_eq!(word.complete(1, 0b100), Err(WorkError::Fenced));
/// assert_eq!(word.acknowledge(1, 0b100, false).unwrap().units, 0b100);
/// assert_eq!(word.acknowledge(1, 0b100, false).unwrap().units, 0);
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct WorkWord(AtomicU64);

// SAFETY: a transparent wrapper of an `AtomicU64`, which is `Shared`.
unsafe impl Shared for WorkWord {
    fn zeroed() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl WorkWord {
    /// The word now, ordered before everything that the caller reads afterwards; allowed on a
    /// read-only mapping.
    #[must_use]
    #[inline]
    pub fn load(&self) -> Work {
        let work = self.peek();
        // Pairs with the Release CAS of `complete`: who sees a unit gone sees its result.
        fence(Ordering::Acquire);
        work
    }

    /// The word now, with no ordering: a filter.
    #[must_use]
    #[inline(always)]
    pub fn peek(&self) -> Work {
        // Relaxed: a decision on it is confirmed by the CAS that follows, or needs the value alone.
        Work(self.0.load(Ordering::Relaxed))
    }

    /// Gives the word to `generation` with no unit in flight. Only for a claimer that is CLAIMING and
    /// found the word fenced (or of an older generation) and empty.
    pub fn open(&self, generation: u32) {
        let opened = Work::new(generation, 0).0;
        // Relaxed: published by the claim word's Release to LIVE. A peer's compare-and-swap of the last
        // generation comes before it or fails. loom lets a plain store come between the two halves of
        // that, which neither the language nor a processor does: there it is a swap.
        if cfg!(bumpless_loom) {
            self.0.swap(opened, Ordering::Relaxed);
        } else {
            self.0.store(opened, Ordering::Relaxed);
        }
    }

    /// Puts the units of `bits` in flight. Cost: one load, one locked CAS.
    ///
    /// # Errors
    /// [`WorkError::Generation`], [`WorkError::Fenced`], [`WorkError::AlreadyMarked`] if one of them
    /// is in flight, [`WorkError::Contended`].
    #[inline]
    pub fn mark(&self, generation: u32, bits: u32) -> Result<(), WorkError> {
        // Release pairs with the Acquire of `fence`: what the owner wrote about the unit before it
        // marked it is visible to whoever it is handed back to.
        self.change(generation, CHANGE_TRIES, Ordering::Release, |work| {
            if work.is_fenced() {
                Err(WorkError::Fenced)
            } else if work.units() & bits != 0 {
                Err(WorkError::AlreadyMarked)
            } else {
                Ok(Work(work.0 | u64::from(bits)))
            }
        })
        .map(|_| ())
    }

    /// Commits the units of `bits`: they are no longer in flight. Cost: one load, one locked CAS.
    ///
    /// # Errors
    /// [`WorkError::Generation`], [`WorkError::Fenced`] (they belong to the reclaimer),
    /// [`WorkError::NotMarked`] if one of them is not in flight, [`WorkError::Contended`].
    #[inline]
    pub fn complete(&self, generation: u32, bits: u32) -> Result<(), WorkError> {
        // Release pairs with the Acquire of `fence` and of `load`: the result before its commit.
        self.change(generation, CHANGE_TRIES, Ordering::Release, |work| {
            if work.is_fenced() {
                Err(WorkError::Fenced)
            } else if work.units() & bits != bits {
                Err(WorkError::NotMarked)
            } else {
                Ok(Work(work.0 & !u64::from(bits)))
            }
        })
        .map(|_| ())
    }

    /// Takes the word from the owner of `generation`, and returns it with the units that are thereby
    /// the reclaimer's. Fencing a fenced word changes nothing and succeeds.
    ///
    /// # Errors
    /// [`WorkError::Generation`]; [`WorkError::Contended`] after [`FENCE_TRIES`]: the owner lives.
    #[inline]
    pub fn fence(&self, generation: u32) -> Result<Work, WorkError> {
        // Acquire pairs with the Release of `mark` and `complete`.
        self.change(generation, FENCE_TRIES, Ordering::Acquire, |work| {
            Ok(Work(work.0 | FENCED))
        })
        .map(|work| Work(work.0 | FENCED))
    }

    /// The owner's own fence before it gives the record back. Cost: one locked OR, no loop.
    ///
    /// Only for the owner of the record while its claim is LIVE: nobody else can change the
    /// generation then, so the OR needs no comparison.
    pub fn fence_own(&self) {
        // Release: this owner's completed results before its leaving; pairs with `fence`.
        self.0.fetch_or(FENCED, Ordering::Release);
    }

    /// Takes the units of `bits` that are still there off a fenced word: each is given to exactly one
    /// caller. With `notice` it also sets ACKED, which exactly one caller is told.
    ///
    /// # Errors
    /// [`WorkError::Generation`], [`WorkError::NotFenced`], [`WorkError::Contended`].
    pub fn acknowledge(
        &self,
        generation: u32,
        bits: u32,
        notice: bool,
    ) -> Result<Acknowledged, WorkError> {
        let notice = if notice { ACKED } else { 0 };
        // Release pairs with the acquire fence of `load`, by which the next claimer finds the word
        // empty: what the reclaimer did with the units happened before the record is used again.
        let before = self.change(generation, CHANGE_TRIES, Ordering::Release, |work| {
            if work.is_fenced() {
                Ok(Work(work.0 & !u64::from(bits) | notice))
            } else {
                Err(WorkError::NotFenced)
            }
        })?;
        Ok(Acknowledged {
            units: before.units() & bits,
            notice: notice != 0 && !before.is_acked(),
        })
    }

    /// One change by CAS: `next` decides on each value found. Returns the value that was replaced.
    fn change(
        &self,
        generation: u32,
        tries: u32,
        success: Ordering,
        next: impl Fn(Work) -> Result<Work, WorkError>,
    ) -> Result<Work, WorkError> {
        let mut found = self.peek();
        for _ in 0..tries {
            if found.generation() != generation {
                return Err(WorkError::Generation {
                    found: found.generation(),
                    wanted: generation,
                });
            }
            let wanted = next(found)?;
            if wanted == found {
                // Pairs with the Release of whoever made the change that is already there.
                fence(Ordering::Acquire);
                return Ok(found);
            }
            // Relaxed on failure: the value is judged again. Success: argued at each caller.
            match self
                .0
                .compare_exchange(found.0, wanted.0, success, Ordering::Relaxed)
            {
                Ok(_) => return Ok(found),
                Err(now) => found = Work(now),
            }
            spin_loop();
        }
        Err(WorkError::Contended { tries })
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    fn open(generation: u32) -> WorkWord {
        let word = WorkWord::zeroed();
        word.open(generation);
        word
    }

    #[test]
    fn the_packing_is_the_documented_one() {
        let word = open(GENERATION_MAX);
        word.mark(GENERATION_MAX, 1 << 31).unwrap();
        word.fence(GENERATION_MAX).unwrap();
        word.acknowledge(GENERATION_MAX, 0, true).unwrap();
        assert_eq!(word.peek().bits(), 0xcfff_ffff_8000_0000);
    }

    #[test]
    fn another_generation_changes_nothing() {
        let word = open(5);
        word.mark(5, 1).unwrap();
        let wrong = WorkError::Generation {
            found: 5,
            wanted: 4,
        };
        assert_eq!(word.mark(4, 2), Err(wrong));
        assert_eq!(word.complete(4, 1), Err(wrong));
        assert_eq!(word.fence(4), Err(wrong));
        assert_eq!(word.acknowledge(4, 1, true), Err(wrong));
        assert_eq!(word.peek(), Work::new(5, 1));
    }

    #[test]
    fn a_fenced_word_is_its_owners_no_more() {
        let word = open(1);
        word.mark(1, 0b11).unwrap();
        assert_eq!(word.acknowledge(1, 1, true), Err(WorkError::NotFenced));
        assert_eq!(word.fence(1).unwrap().units(), 0b11);
        assert_eq!(word.mark(1, 0b100), Err(WorkError::Fenced));
        assert_eq!(word.complete(1, 1), Err(WorkError::Fenced));
        assert_eq!(word.fence(1).unwrap().units(), 0b11);
    }

    #[test]
    fn marks_and_completions_must_alternate() {
        let word = open(1);
        assert_eq!(word.complete(1, 1), Err(WorkError::NotMarked));
        word.mark(1, 1).unwrap();
        assert_eq!(word.mark(1, 1), Err(WorkError::AlreadyMarked));
        word.complete(1, 1).unwrap();
        assert_eq!(word.peek().units(), 0);
    }

    #[test]
    fn units_and_notice_are_acknowledged_once() {
        let word = open(1);
        word.mark(1, 0b111).unwrap();
        word.fence_own();
        let first = word.acknowledge(1, 0b001, true).unwrap();
        assert_eq!(
            first,
            Acknowledged {
                units: 0b001,
                notice: true
            }
        );
        let second = word.acknowledge(1, 0b011, true).unwrap();
        assert_eq!(
            second,
            Acknowledged {
                units: 0b010,
                notice: false
            }
        );
        assert_eq!(word.peek().units(), 0b100);
    }
}
