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

    /// As [`beat`](Self::beat), and then what was stored: to make the next one wait for it.
    #[inline]
    #[must_use]
    pub fn beat_and_read(&self, index: usize) -> u64 {
        self.beat(index);
        self.own
            .get(index)
            .map_or(0, |line| line.epoch.load(Relaxed))
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

    /// Claim, epoch and keeper of each of the lines: what a scan cannot do without.
    #[inline]
    pub fn scan(&self, step: usize) {
        let mut seen = (0_u64, 0_u64, 0_u32);
        for line in self.own.iter().step_by(step) {
            seen.0 ^= line.claim.load(Relaxed);
            seen.1 = seen.1.max(line.epoch.load(Relaxed));
            seen.2 |= line.keeper.load(Relaxed);
        }
        black_box(seen.0);
        black_box(seen.1);
        black_box(seen.2);
    }

    /// One locked compare-and-swap that succeeds, from a value that is known.
    #[inline]
    pub fn exchange(&self, from: u64, to: u64) -> bool {
        self.shared
            .epoch
            .compare_exchange(from, to, Relaxed, Relaxed)
            .is_ok()
    }

    /// One locked addition.
    #[inline]
    pub fn add(&self) {
        self.shared.epoch.fetch_add(1, Relaxed);
    }
}
