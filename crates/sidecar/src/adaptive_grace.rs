//! A grace for each worker, from how it beats.
//!
//! Contract: to be called once behind each scan of the primary watchdog, in its process. For each slot it
//! learns the owner's intervals between beats, and sets the slot's own grace to the shortest one that an
//! interval exceeds with at most the chosen probability, within bounds. It touches no slot of which it
//! knows too little, and forgets what it learned of an owner with the owner. How good it is at it:
//! `docs/observation.md`.

pub mod intervals;

use bumpless_heartbeat::HeartbeatTable;

use crate::error::SidecarError;
use intervals::BeatIntervals;

/// What a grace is to hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraceTarget {
    /// How probable it may be, for each beat, that the next one comes too late although the worker lives:
    /// above 0, below 1.
    pub false_death_probability: f64,
    /// The shortest grace that is set; unit: epochs, at least 1.
    pub grace_epochs_min: u16,
    /// The longest.
    pub grace_epochs_max: u16,
}

impl Default for GraceTarget {
    /// One false death in 100,000 beats; 2 to 1,000 epochs.
    fn default() -> Self {
        Self {
            false_death_probability: 1e-5,
            grace_epochs_min: 2,
            grace_epochs_max: 1_000,
        }
    }
}

/// Learns and sets graces.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl");
/// use bumpless_failover::FailoverWatchdog;
/// use bumpless_heartbeat::HeartbeatTable;
/// use bumpless_sidecar::{AdaptiveGrace, GraceTarget};
///
/// let table = HeartbeatTable::create(&path, 64)?;
/// let slow = table.register(std::process::id())?;
/// let watchdog = FailoverWatchdog::with_grace(&table, 20);
/// let mut graces = AdaptiveGrace::new(GraceTarget::default())?;
/// for scan in 1..1_000 {
///     if scan % 7 == 0 {
///         table.beat(slow)?; // every seventh epoch
///     }
///     let report = watchdog.scan();
///     assert!(report.is_empty());
///     graces.learn(&table);
/// }
/// let own = table.snapshot(slow).unwrap().grace_epochs;
/// assert!((7..20).contains(&own), "{own}");
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct AdaptiveGrace {
    target: GraceTarget,
    /// By slot.
    known: Vec<Known>,
}

/// What is known of the owner of a slot.
#[derive(Debug, Clone, Default)]
struct Known {
    generation: u32,
    last_seen_epoch: u64,
    /// Made with the first beat that is seen.
    intervals: Option<Box<BeatIntervals>>,
}

impl AdaptiveGrace {
    /// Knows nothing yet.
    ///
    /// # Errors
    /// [`SidecarError::Probability`], [`SidecarError::GraceBounds`].
    pub fn new(target: GraceTarget) -> Result<Self, SidecarError> {
        let found = target.false_death_probability;
        // Also refuses what is no number.
        if !(found > 0.0 && found < 1.0) {
            return Err(SidecarError::Probability { found });
        }
        let (min, max) = (target.grace_epochs_min, target.grace_epochs_max);
        if min == 0 || max < min {
            return Err(SidecarError::GraceBounds { min, max });
        }
        Ok(Self {
            target,
            known: Vec::new(),
        })
    }

    /// Looks at every registered slot, and sets the graces that have changed; returns how many. A table
    /// that was opened to look only is learned, and not changed. Cost: three loads for each slot; for one
    /// that has beaten, some arithmetic.
    pub fn learn(&mut self, table: &HeartbeatTable) -> usize {
        self.known.resize(table.capacity(), Known::default());
        let mut changed = 0;
        for slot in table.occupancy().iter() {
            let (Some(cells), Some(known)) = (
                table.cells(slot as usize),
                self.known.get_mut(slot as usize),
            ) else {
                continue;
            };
            let claim = cells.slot.peek_claim();
            let beat = cells.slot.peek_beat().epoch_of(claim.generation());
            let (true, Some(epoch)) = (claim.is_live(), beat) else {
                continue;
            };
            let Some(intervals) = known.see(claim.generation(), epoch) else {
                continue;
            };
            let Some(grace) = intervals.grace_epochs(self.target.false_death_probability) else {
                continue;
            };
            let grace = u16::try_from(grace)
                .unwrap_or(u16::MAX)
                .clamp(self.target.grace_epochs_min, self.target.grace_epochs_max);
            if cells.slot.grace_epochs() != grace && !table.is_read_only() {
                cells.slot.set_grace(grace);
                changed += 1;
            }
        }
        changed
    }
}

impl Known {
    /// Takes in a look; the intervals, if there is a new one.
    fn see(&mut self, generation: u32, epoch: u64) -> Option<&BeatIntervals> {
        if self.generation != generation {
            *self = Self {
                generation,
                last_seen_epoch: epoch,
                intervals: None,
            };
            return None;
        }
        // A beat of an earlier epoch is none.
        let interval = epoch.checked_sub(self.last_seen_epoch).filter(|n| *n > 0)?;
        self.last_seen_epoch = epoch;
        let intervals = self.intervals.get_or_insert_default();
        intervals.note(interval);
        Some(intervals)
    }
}
