//! A work word and what its units are about.

use std::sync::Arc;

use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU64, Ordering};
use bumpless_substrate::work::{Work, WorkError, WorkWord};

pub const UNIT: u32 = 0b001;
pub const OTHER: u32 = 0b010;
pub const WRITTEN: u64 = 7;
pub const DONE: u64 = 8;

/// The owners here make fewer changes than would beat this many fences.
const SCANS_MAX: usize = 4;

bumpless_substrate::shared_struct! {
    /// A work word and what its unit is about.
    pub struct Job[size = 24, align = 8] {
        /// Units and fence.
        0 => pub word: WorkWord,
        /// What the owner wrote about the unit before it marked it, and its result.
        8 => payload: AtomicU64,
        /// What the reclaimer did with the unit before it acknowledged it.
        16 => pub reclaimed: AtomicU64,
    }
}

impl Job {
    /// A job of generation 1 with these units in flight.
    pub fn with(units: u32) -> Arc<Self> {
        let job = Self::zeroed();
        job.word.open(1);
        if units != 0 {
            job.word.mark(1, units).unwrap();
        }
        Arc::new(job)
    }

    /// Fences as often as one scan after the other would.
    pub fn fence(&self) -> Work {
        for _ in 0..SCANS_MAX {
            match self.word.fence(1) {
                Ok(work) => return work,
                Err(error) => assert!(matches!(error, WorkError::Contended { .. }), "{error}"),
            }
        }
        panic!("the owner changed its word without end");
    }

    pub fn write(&self, number: u64) {
        // Relaxed: what the work word publishes.
        self.payload.store(number, Ordering::Relaxed);
    }

    pub fn read(&self) -> u64 {
        // Relaxed: as above.
        self.payload.load(Ordering::Relaxed)
    }
}
