//! A ring of records of two words, which are equal: a torn one shows.

use std::sync::Arc;

use bumpless_sidecar::ring::cursor::{Cursor, Vigil};
use bumpless_sidecar::ring::lines::Lines;
use bumpless_sidecar::ring::slot::Slot;
use bumpless_sidecar::ring::{Drained, Mode, PATIENCE_NS, RingCounts, protocol};
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::AtomicU64;

bumpless_substrate::shared_struct! {
    /// A place for two words.
    pub struct Pair[size = 24, align = 8] {
        0 => stamp: AtomicU64,
        8 => words: [AtomicU64; 2],
    }
}

impl Slot<2> for Pair {
    fn stamp(&self) -> &AtomicU64 {
        &self.stamp
    }

    fn words(&self) -> &[AtomicU64; 2] {
        &self.words
    }
}

/// A ring of `N` places.
pub struct Memory<const N: usize> {
    pub lines: Lines,
    slots: [Pair; N],
}

impl<const N: usize> Memory<N> {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            lines: Lines::zeroed(),
            slots: Shared::zeroed(),
        })
    }

    pub fn ring(&self) -> protocol::Ring<'_, 2, Pair> {
        protocol::Ring::new(&self.lines, &self.slots)
    }

    pub fn push(&self, number: u64) -> bool {
        self.ring().push(Mode::Lossless, &[number; 2], || ())
    }

    pub fn record(&self, number: u64) -> bool {
        self.ring().push(Mode::FlightRecorder, &[number; 2], || ())
    }

    pub fn counts(&self) -> RingCounts {
        self.ring().counts(Mode::Lossless)
    }

    /// The numbers that a reader finds behind its cursor, at most so many; it never loses patience.
    pub fn follow(&self, cursor: &mut Cursor, at_most: usize) -> Vec<u64> {
        let next = || {
            self.ring()
                .read(cursor, 0, 1)
                .map(|(_, words)| check_whole(words))
        };
        std::iter::from_fn(next).take(at_most).collect()
    }
}

/// A consumer, and what it was given.
#[derive(Default)]
pub struct Consumer {
    vigil: Vigil,
    pub seen: Vec<u64>,
    pub skipped: u64,
}

impl Consumer {
    /// Drains at a time: a second one of `PATIENCE_NS` is too late for whoever was at work in the first.
    pub fn drain<const N: usize>(&mut self, memory: &Memory<N>, now_ns: u64) -> Drained {
        let seen = &mut self.seen;
        let drained = memory.ring().drain(&mut self.vigil, now_ns, &mut |words| {
            seen.push(check_whole(words))
        });
        self.skipped += drained.skipped;
        drained
    }

    /// Looks, and after the patience once more.
    pub fn drain_patiently<const N: usize>(&mut self, memory: &Memory<N>) {
        self.drain(memory, 0);
        // Each place has a patience of its own.
        for turn in 1..=2 * N as u64 {
            self.drain(memory, turn * PATIENCE_NS);
        }
    }

    /// Every place is accounted for.
    pub fn check_counts<const N: usize>(&self, memory: &Memory<N>, tried: u64) {
        let counts = memory.counts();
        let seen = self.seen.len() as u64;
        assert_eq!(counts.pushed + counts.dropped, tried, "{counts:?}");
        assert_eq!(counts.skipped, self.skipped, "{counts:?}");
        assert_eq!(
            counts.pushed,
            seen + self.skipped + counts.pending,
            "{counts:?}"
        );
    }
}

fn check_whole([first, second]: [u64; 2]) -> u64 {
    assert_eq!(first, second, "torn");
    first
}
