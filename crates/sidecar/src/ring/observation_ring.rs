//! [`ObservationRing`]: observations, in the heap or in a file.
//!
//! Contract: a push never waits and never lies about its outcome. One consumer at a time: `consuming.rs`.

use core::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bumpless_substrate::fork_guard::ForkGuard;
use bumpless_substrate::layout::Shared;
use bumpless_substrate::region::{Access, Format, Region};

use super::doorbell::{self, Doorbell};
use super::lines::{Lines, RingCounts};
use super::protocol::{Mode, Ring};
use super::reader::ObservationReader;
use super::shared::{PLACES, SharedRing};
use super::slot::ObservationSlot;
use crate::error::SidecarError;
use crate::observation::{OBSERVATION_WORDS, Observation};

mod consuming;

use consuming::Consumer;

/// The most observations that a ring holds.
const CAPACITY_MAX: u32 = 1 << 20;

/// The file format of a ring of observations.
pub const OBSERVATIONS: Format = Format {
    kind: *b"OBSR",
    version: 1,
    record_size: size_of::<ObservationSlot>() as u32,
    max_capacity: CAPACITY_MAX,
    region_len: |capacity| PLACES + u64::from(capacity) * size_of::<ObservationSlot>() as u64,
    // What was observed before the machine was started again was observed.
    revived: |_| (),
};

/// Of the operations of an instance one in so many is timed. The clock is read twice for one: spread over
/// fewer, that would be as much as all the rest of a push but the locked instruction.
const SAMPLE_PERIOD: u64 = 256;

/// Observations from many threads, or processes, for one consumer.
///
/// ```
/// use bumpless_sidecar::{Observation, ObservationRing};
///
/// let ring = ObservationRing::with_capacity(2);
/// for op_kind in 0..3 {
///     let is_taken = ring.push(Observation { op_kind, ..Observation::default() });
///     assert_eq!(is_taken, op_kind < 2);
/// }
/// let now_ns = bumpless_substrate::clock::monotonic_ns();
/// let mut kinds = Vec::new();
/// let drained = ring.drain(now_ns, &mut |seen| kinds.push(seen.op_kind));
/// assert_eq!((drained.taken, drained.skipped, kinds), (2, 0, vec![0, 1]));
/// let counts = ring.counts();
/// assert_eq!((counts.pushed, counts.dropped, counts.delivered(), counts.pending), (2, 1, 2, 0));
/// ```
#[derive(Debug)]
pub struct ObservationRing {
    memory: Memory,
    /// The process that made or opened it.
    opened_by: u32,
    guard: ForkGuard,
    consumer: Mutex<Consumer>,
    /// Rung beside the file's own: those of consumers that sleep in this process.
    bells: Mutex<Vec<Arc<Doorbell>>>,
}

#[derive(Debug)]
enum Memory {
    Heap {
        lines: Box<Lines>,
        slots: Box<[ObservationSlot]>,
    },
    File(SharedRing<ObservationSlot>),
}

thread_local! {
    /// This thread's number, and the process in which it was asked for: `pid:32 | tid:32`.
    static PRODUCER: Cell<u64> = const { Cell::new(0) };
}

impl ObservationRing {
    /// A lossless ring in the heap, of at least `capacity` observations: a power of two of them, at most
    /// 2^20. 32 B each.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, CAPACITY_MAX as usize).next_power_of_two();
        Self::new(Memory::Heap {
            lines: Box::new(Lines::zeroed()),
            slots: (0..capacity).map(|_| Shared::zeroed()).collect(),
        })
    }

    /// A lossless ring in a file: any process pushes, one drains, and it outlives them all. Makes it, or
    /// attaches to the one that is there.
    ///
    /// # Errors
    /// [`SidecarError::Capacity`] unless it is a power of two, at most 2^20; [`SidecarError::Mode`] when a
    /// flight recorder is there; [`SidecarError::Region`].
    pub fn create_in_region(
        path: impl AsRef<Path>,
        capacity: u32,
        access: Access,
    ) -> Result<Self, SidecarError> {
        Self::create(path.as_ref(), Mode::Lossless, capacity, access)
    }

    /// A flight recorder in a file: keeps the last `capacity` observations. [`drain`](Self::drain) reads them
    /// and takes nothing away.
    ///
    /// # Errors
    /// As [`create_in_region`](Self::create_in_region); [`SidecarError::Mode`] when a lossless ring is there.
    pub fn create_flight_recorder(
        path: impl AsRef<Path>,
        capacity: u32,
        access: Access,
    ) -> Result<Self, SidecarError> {
        Self::create(path.as_ref(), Mode::FlightRecorder, capacity, access)
    }

    fn create(
        path: &Path,
        mode: Mode,
        capacity: u32,
        access: Access,
    ) -> Result<Self, SidecarError> {
        let shared = SharedRing::create(path, &OBSERVATIONS, mode, capacity, access)?;
        Ok(Self::new(Memory::File(shared)))
    }

    /// Attaches to a ring in a file.
    ///
    /// # Errors
    /// [`SidecarError::Region`], [`SidecarError::Capacity`], [`SidecarError::Mode`] for what is no such ring.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, SidecarError> {
        let shared = SharedRing::attach(path.as_ref(), &OBSERVATIONS)?;
        Ok(Self::new(Memory::File(shared)))
    }

    /// Maps a ring's file for reading only: to look at the last observations, drained or not, unnoticed;
    /// also one from before the machine's last start.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<ObservationReader, SidecarError> {
        let shared = SharedRing::observe(path.as_ref(), &OBSERVATIONS)?;
        Ok(ObservationReader::new(shared))
    }

    fn new(memory: Memory) -> Self {
        Self {
            memory,
            opened_by: std::process::id(),
            guard: ForkGuard::new(),
            consumer: Mutex::default(),
            bells: Mutex::default(),
        }
    }

    #[inline(always)]
    fn ring(&self) -> Ring<'_, OBSERVATION_WORDS, ObservationSlot> {
        match &self.memory {
            Memory::Heap { lines, slots } => Ring::new(lines, slots),
            Memory::File(shared) => shared.ring(),
        }
    }

    /// How it treats its oldest records.
    #[must_use]
    #[inline]
    pub fn mode(&self) -> Mode {
        match &self.memory {
            Memory::Heap { .. } => Mode::Lossless,
            Memory::File(shared) => shared.mode,
        }
    }

    /// Whether this is a ring in the heap that a fork child has inherited: a copy, which nobody drains. It
    /// takes nothing and delivers nothing.
    #[must_use]
    #[inline]
    pub fn is_inherited(&self) -> bool {
        matches!(self.memory, Memory::Heap { .. }) && self.guard.is_forked()
    }

    /// Whether this is a fork child's copy of what its parent made or opened.
    #[must_use]
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.guard.is_forked()
    }

    /// Puts an observation into the ring; false when it was dropped and counted, or, uncounted, when the ring
    /// [is inherited](Self::is_inherited). Cost: one locked instruction, and about a nanosecond; a system
    /// call if the consumer sleeps.
    #[inline(always)]
    pub fn push(&self, observation: Observation) -> bool {
        if self.is_inherited() {
            return false;
        }
        let words = observation.to_words();
        self.ring().push(self.mode(), &words, || self.wake())
    }

    /// As [`push`](Self::push), and one that finds no place is not counted as dropped: for a sample of what is
    /// [tallied](Self::tally).
    pub fn push_sample(&self, sample: Observation) -> bool {
        if self.is_inherited() {
            return false;
        }
        let words = sample.to_words();
        self.ring()
            .push_if_room(self.mode(), &words, || self.wake())
    }

    /// Counts an operation of kind [`TALLIED_OP`](crate::TALLIED_OP) in place: never dropped, exact, and seen
    /// by every process that has the ring's file. Wakes nobody. Cost: one locked instruction.
    #[inline(always)]
    pub fn tally(&self) {
        self.lines().tally();
    }

    /// How many operations were tallied.
    #[must_use]
    #[inline(always)]
    pub fn tallied(&self) -> u64 {
        self.lines().tallied()
    }

    /// Whether the next operation that is tallied should be recorded too: one in 256, more or less. The place
    /// moves by one in every 256, so that of threads that take turns none is left out.
    #[must_use]
    #[inline(always)]
    pub fn tally_sample_due(&self) -> bool {
        let tallied = self.tallied();
        (tallied ^ (tallied / SAMPLE_PERIOD)).is_multiple_of(SAMPLE_PERIOD)
    }

    #[inline(always)]
    fn lines(&self) -> &Lines {
        match &self.memory {
            Memory::Heap { lines, .. } => lines,
            Memory::File(shared) => &shared.lines[0],
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&self) {
        if let Memory::File(shared) = &self.memory {
            doorbell::ring(&shared.lines[0].doorbell);
        }
        // In a fork child nobody sleeps on them, and a thread of the parent may hold the lock for ever.
        if !self.guard.is_forked() {
            let bells = self.bells.lock().unwrap_or_else(PoisonError::into_inner);
            bells.iter().for_each(|bell| bell.ring());
        }
    }

    /// The number of the calling thread in the kernel, for [`Observation::producer_id`]. Cost: a load; in a
    /// fork child that pushes into its parent's file, a system call.
    #[must_use]
    #[inline]
    pub fn producer_id(&self) -> u32 {
        let known = PRODUCER.get();
        // Into a ring in the heap no fork child pushes.
        let may_be_parents = matches!(self.memory, Memory::File(_)) && self.guard.is_forked();
        if (known >> 32) as u32 == self.opened_by && !may_be_parents {
            known as u32
        } else {
            self.ask_producer_id()
        }
    }

    #[cold]
    fn ask_producer_id(&self) -> u32 {
        let tid = rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs();
        if !self.guard.is_forked() {
            PRODUCER.set(u64::from(self.opened_by) << 32 | u64::from(tid));
        }
        tid
    }

    /// Whether the next operation is one of those to be timed: one in 256, more or less.
    #[must_use]
    #[inline]
    pub fn sample_due(&self) -> bool {
        self.ring().reserved().is_multiple_of(SAMPLE_PERIOD)
    }

    /// What was pushed, dropped, delivered and skipped: exact.
    #[must_use]
    pub fn counts(&self) -> RingCounts {
        self.ring().counts(self.mode())
    }

    /// How many observations fit.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.ring().capacity()
    }

    /// The ring's file, if it has one.
    #[must_use]
    pub fn region(&self) -> Option<&Region> {
        match &self.memory {
            Memory::Heap { .. } => None,
            Memory::File(shared) => Some(shared.region()),
        }
    }
}

#[cfg(test)]
mod tests {
    use bumpless_substrate::unusual::fork_and_run;

    use super::*;

    #[test]
    fn a_fork_child_pushes_into_a_sleeping_file_though_its_parent_was_ringing_a_bell() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ring");
        let ring = ObservationRing::create_in_region(&path, 8, Access::Private).expect("a ring");
        assert!(ring.fall_asleep());
        let ringing = ring.bells.lock().expect("whole");
        let child = fork_and_run(|| {
            ring.add_doorbell(&Arc::default());
            i32::from(!ring.push(Observation::default()))
        });
        drop(ringing);
        assert_eq!(child.expect("a child").wait().expect("reaped"), Some(0));
    }
}
