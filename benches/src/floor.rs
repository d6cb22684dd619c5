//! What nothing that does the job can leave out: the same loads and stores, from lines laid out alike,
//! with no protocol around them.
//!
//! Relaxed: everywhere here; a floor is what the bare instruction costs.

use std::hint::black_box;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// A line that is read by every owner and written by one watchdog.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Shared {
    /// The clock.
    pub epoch: AtomicU64,
}

/// An owner's line, as wide as a slot's.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Line {
    claim: AtomicU64,
    epoch: AtomicU64,
    work: [AtomicU64; 4],
    seq: AtomicU64,
    keeper: AtomicU32,
    role: AtomicU16,
    grace: AtomicU16,
}

/// Lines without a protocol.
#[derive(Debug)]
pub struct Lines {
    /// The line that all read.
    pub shared: Shared,
    /// A line each.
    pub own: Box<[Line]>,
}

impl Lines {
    /// So many owners' lines.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            shared: Shared::default(),
            own: (0..count).map(|_| Line::default()).collect(),
        }
    }

    /// One load and one store: what a beat cannot do without.
    #[inline]
    pub fn beat(&self, index: usize) {
        if let Some(line) = self.own.get(index) {
            line.epoch.store(self.shared.epoch.load(Relaxed), Relaxed);
        }
    }

    /// What [`beat`](Self::beat) stores.
    #[inline]
    #[must_use]
    pub fn stored(&self, index: usize) -> Option<&AtomicU64> {
        self.own.get(index).map(|line| &line.epoch)
    }

    /// Every field once, each seen by the optimizer as used.
    #[inline]
    pub fn look(&self, index: usize) {
        let Some(line) = self.own.get(index) else {
            return;
        };
        black_box(line.claim.load(Relaxed));
        black_box(line.epoch.load(Relaxed));
        for work in &line.work {
            black_box(work.load(Relaxed));
        }
        black_box(line.seq.load(Relaxed));
        black_box(line.keeper.load(Relaxed));
        black_box(line.role.load(Relaxed));
        black_box(line.grace.load(Relaxed));
    }

    /// Claim, epoch and keeper of every `step`th line: what a scan cannot do without. None waits for another.
    #[inline]
    pub fn scan(&self, step: usize) {
        let (mut seen, mut index) = (0, 0);
        // Not `step_by`, which counts in each turn.
        while let Some(line) = self.own.get(index) {
            seen ^= line.claim.load(Relaxed) ^ line.epoch.load(Relaxed);
            seen ^= u64::from(line.keeper.load(Relaxed));
            index += step;
        }
        black_box(seen);
    }

    /// One locked compare-and-swap that succeeds, from a value that is known.
    #[inline]
    pub fn exchange(&self, from: u64, to: u64) -> bool {
        self.shared
            .epoch
            .compare_exchange(from, to, Relaxed, Relaxed)
            .is_ok()
    }

    /// Two locked compare-and-swaps of an owner's line, there and back.
    #[inline]
    #[must_use]
    pub fn exchange_own(&self, index: usize) -> bool {
        self.own.get(index).is_some_and(|line| {
            let [word, ..] = &line.work;
            word.compare_exchange(0, 1, Relaxed, Relaxed).is_ok()
                && word.compare_exchange(1, 0, Relaxed, Relaxed).is_ok()
        })
    }

    /// One locked addition.
    #[inline]
    pub fn add(&self) {
        self.shared.epoch.fetch_add(1, Relaxed);
    }
}
