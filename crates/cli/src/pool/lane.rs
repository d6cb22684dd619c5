//! The memory between the parent and its workers: a lane for each worker, beside the heartbeat table.
//!
//! ```text
//!  preamble │ parent line 64 B │ lanes: n x 128 B │ entries: n x 32 x 4,160 B
//!
//!  lane      0        8         16        24     28     32        64       72     76
//!           ┌────────┬─────────┬─────────┬──────┬──────┬─────────┬────────┬──────┬───────────┐
//!           │ owner  │progress │ (bell)  │ exec │ zero │  zero   │ (bell) │close │   zero    │
//!           └────────┴─────────┴─────────┴──────┴──────┴─────────┴────────┴──────┴───────────┘
//!            the worker's line                                    the parent's line
//! ```
//! Contract: a lane belongs to one worker process from its spawn until the parent has reaped it; only
//! then is it cleared and given to the next. Entry `i` of a lane is heartbeat unit `i` of its worker.

use std::path::Path;
use std::sync::Arc;

use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region, RegionError};
use bumpless_substrate::sync::{AtomicU32, AtomicU64, Ordering};
use bumpless_substrate::view::View;

use super::bell::Bell;
use super::entry::Entry;

/// Entries per lane: how many files a worker has before it.
pub const ENTRIES: u32 = 32;
/// The most lanes of a pool.
pub const LANES_MAX: u32 = 4096;

const PARENT_LINE: u64 = PREAMBLE_LEN;
const LANES: u64 = PARENT_LINE + size_of::<ParentLine>() as u64;
const LANE_BYTES: u64 = size_of::<Lane>() as u64;
const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;
/// Offset of [`Lane::exec_pid`] in a lane.
const EXEC_PID: u64 = 24;

const FORMAT: Format = Format {
    kind: *b"POOL",
    version: 1,
    record_size: (LANE_BYTES + ENTRIES as u64 * ENTRY_BYTES) as u32,
    max_capacity: LANES_MAX,
    region_len: |lanes| LANES + u64::from(lanes) * (LANE_BYTES + u64::from(ENTRIES) * ENTRY_BYTES),
    revived: |_| (),
};

bumpless_substrate::shared_struct! {
    /// What all workers share.
    pub struct ParentLine[size = 64, align = 64] {
        /// The parent sleeps here; workers and the walk ring.
        0 => pub bell: Bell,
        /// Zero.
        8 => spare: [AtomicU64; 7],
    }
}

bumpless_substrate::shared_struct! {
    /// What a worker and the parent share; layout in the [module's text](self).
    pub struct Lane[size = 128, align = 64] {
        /// `slot:32 | generation:32` of the worker's registration, 0 before. Worker; read by the parent.
        0 => owner: AtomicU64,
        /// Steps of work done: any change is progress. Worker; read by the parent.
        8 => progress: AtomicU64,
        /// Zero.
        16 => spare: AtomicU64,
        /// Pid, and process group, of the command that runs; 0 for none. The command's process itself
        /// before it executes, then the worker; read by the parent.
        24 => exec_pid: AtomicU32,
        /// Zero.
        28 => spare_half: AtomicU32,
        /// Zero.
        32 => spare_words: [AtomicU64; 4],
        /// The worker sleeps here; the parent rings.
        64 => pub bell: Bell,
        /// 1 when no more work comes. Parent; read by the worker.
        72 => close: AtomicU32,
        /// Zero.
        76 => spare_close: AtomicU32,
        /// Zero.
        80 => spare_line: [AtomicU64; 6],
    }
}

/// The registration of a lane's worker in the heartbeat table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Its slot.
    pub slot: u32,
    /// Which claim of the slot; never 0.
    pub generation: u32,
}

impl Lane {
    /// The worker says who it is.
    pub fn set_owner(&self, owner: Owner) {
        let word = u64::from(owner.slot) << 32 | u64::from(owner.generation);
        // Pairs with `owner`: the registration itself is ordered by the table's own claim word.
        self.owner.store(word, Ordering::Release);
    }

    /// Who the worker said it is.
    #[must_use]
    pub fn owner(&self) -> Option<Owner> {
        // Pairs with the release in `set_owner`.
        let word = self.owner.load(Ordering::Acquire);
        let generation = word as u32;
        (generation != 0).then_some(Owner {
            slot: (word >> 32) as u32,
            generation,
        })
    }

    /// One more step of work is done.
    pub fn step(&self) {
        // Relaxed: one writer, and the reader only looks whether it changes.
        let steps = self.progress.load(Ordering::Relaxed);
        self.progress
            .store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    /// How many steps of work were done.
    #[must_use]
    pub fn steps(&self) -> u64 {
        // Relaxed: as in `step`.
        self.progress.load(Ordering::Relaxed)
    }

    /// The process group of the command that runs.
    #[must_use]
    pub fn exec_pid(&self) -> u32 {
        // Pairs with the release with which the command's process records itself.
        self.exec_pid.load(Ordering::Acquire)
    }

    /// The command is over, and its pid not yet free for others.
    pub fn forget_exec(&self) {
        // Pairs with the acquire in `exec_pid`: who reads 0 reads what came before it too.
        self.exec_pid.store(0, Ordering::Release);
    }

    /// No more work comes.
    pub fn close(&self) {
        // Pairs with `is_closed`: offers made before are seen by who sees it closed.
        self.close.store(1, Ordering::Release);
        self.bell.ring();
    }

    /// Whether no more work comes.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Pairs with the release in `close`.
        self.close.load(Ordering::Acquire) != 0
    }

    /// Relaxed: the lane has no user; its next one is spawned after this.
    fn clear(&self) {
        self.owner.store(0, Ordering::Relaxed);
        self.progress.store(0, Ordering::Relaxed);
        self.exec_pid.store(0, Ordering::Relaxed);
        self.close.store(0, Ordering::Relaxed);
        self.bell.forget_sleeper();
    }
}

/// All lanes of a pool, mapped.
#[derive(Debug)]
pub struct Lanes {
    region: Arc<Region>,
    parent: View<ParentLine>,
    lanes: View<Lane>,
    entries: View<Entry>,
}

impl Lanes {
    /// Makes new lanes in the place of what an earlier pool left.
    ///
    /// # Errors
    /// [`RegionError`].
    pub fn create(path: &Path, lanes: u32) -> Result<Self, RegionError> {
        let (region, _old) =
            Region::reset(path, &FORMAT, lanes, Access::Private, |_| {}, |_, _| {})?;
        Self::map(region)
    }

    /// Maps the lanes of the parent.
    ///
    /// # Errors
    /// [`RegionError`].
    pub fn attach(path: &Path) -> Result<Self, RegionError> {
        Self::map(Region::attach(path, &FORMAT)?)
    }

    fn map(region: Region) -> Result<Self, RegionError> {
        let region = Arc::new(region);
        let lanes = region.capacity();
        let entries = LANES + u64::from(lanes) * LANE_BYTES;
        Ok(Self {
            parent: View::new(&region, PARENT_LINE, 1)?,
            lanes: View::new(&region, LANES, lanes)?,
            entries: View::new(&region, entries, lanes * ENTRIES)?,
            region,
        })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The bell at which the parent sleeps.
    #[must_use]
    pub fn parent_bell(&self) -> &Bell {
        &self.parent[0].bell
    }

    /// A lane; `None` beyond the last.
    #[must_use]
    pub fn lane(&self, lane: usize) -> Option<&Lane> {
        self.lanes.get(lane)
    }

    /// A lane's entries; none beyond the last lane.
    #[must_use]
    pub fn entries(&self, lane: usize) -> &[Entry] {
        let count = ENTRIES as usize;
        let first = lane.saturating_mul(count);
        self.entries
            .get(first..first.saturating_add(count))
            .unwrap_or(&[])
    }

    /// The place in which a command's process records its pid.
    #[must_use]
    pub fn exec_pid_place(&self, lane: u32) -> (Arc<Region>, u64) {
        let offset = LANES + u64::from(lane) * LANE_BYTES + EXEC_PID;
        (Arc::clone(&self.region), offset)
    }

    /// Makes a lane ready for its next worker; the last one was reaped.
    pub fn clear(&self, lane: usize) {
        if let Some(lane) = self.lane(lane) {
            lane.clear();
        }
        for entry in self.entries(lane) {
            entry.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_finds_what_the_parent_put_into_its_lane_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lanes");
        let parent = Lanes::create(&path, 3).unwrap();
        let worker = Lanes::attach(&path).unwrap();
        assert!(parent.entries(1)[ENTRIES as usize - 1].offer(5, b"x"));
        let offers = |lane| {
            worker
                .entries(lane)
                .iter()
                .filter_map(Entry::offered)
                .count()
        };
        assert_eq!([offers(0), offers(1), offers(2), offers(3)], [0, 1, 0, 0]);

        let owner = Owner {
            slot: 3,
            generation: 1,
        };
        worker.lane(2).unwrap().set_owner(owner);
        assert_eq!(parent.lane(2).unwrap().owner(), Some(owner));
        parent.clear(2);
        assert_eq!(worker.lane(2).unwrap().owner(), None);
        assert!(worker.lane(3).is_none());
    }

    #[test]
    fn the_place_of_a_commands_pid_is_its_lanes() {
        let folder = tempfile::tempdir().unwrap();
        let lanes = Lanes::create(&folder.path().join("lanes"), 2).unwrap();
        let (region, offset) = lanes.exec_pid_place(1);
        region
            .at::<AtomicU32>(offset)
            .unwrap()
            .store(7, Ordering::Relaxed);
        assert_eq!(lanes.lane(1).unwrap().exec_pid(), 7);
    }
}
