//! What a scan reports: who was found dead, late or gone, and which units are handed back.
//!
//! Contract: plain copies. A [`SlotRef`] is exactly what the report showed: acknowledging it takes
//! those units and those deaths, and nothing that came later.

use core::fmt;

use bumpless_heartbeat::{HeartbeatSnapshot, SlotIndex, Unit, UnitSet};
use bumpless_substrate::proof::Evidence;
use bumpless_substrate::region::PathState;

use crate::verdict::Verdict;

/// The name of one hand-back, unique for ever: no other unit was, or will be, handed back under it.
/// A consumer that may crash between acting and acknowledging makes its action idempotent with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnitName {
    /// Which table.
    pub creation_id: u64,
    /// Which slot.
    pub slot: u32,
    /// Which owner of the slot.
    pub generation: u32,
    /// Which of its units.
    pub unit: Unit,
}

impl fmt::Display for UnitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            creation_id,
            slot,
            generation,
            unit,
        } = self;
        write!(f, "{creation_id:016x}/{slot}/{generation}/{unit}")
    }
}

/// One slot in a report, and the key to acknowledge it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotRef {
    /// The slot's index.
    pub slot: u32,
    /// Which owner of the slot.
    pub generation: u32,
    /// The owner's process id in its own pid namespace.
    pub pid: u32,
    /// What was found.
    pub verdict: Verdict,
    /// What is known about the owner's life, and from which source. As long as it is `Unknown`, the
    /// slot is not reused.
    pub evidence: Evidence,
    /// The units handed back.
    pub units: UnitSet,
    /// Deaths of this slot's owners that nobody acknowledged yet; more than one when idle owners died
    /// while no watchdog ran.
    pub deaths: u32,
    pub(crate) deaths_recorded: u32,
    pub(crate) term: u32,
    pub(crate) creation_id: u64,
}

impl SlotRef {
    /// The name under which `unit` of this slot is handed back, also by every later report of it.
    #[must_use]
    pub fn unit_name(&self, unit: Unit) -> UnitName {
        let Self {
            creation_id,
            slot,
            generation,
            ..
        } = *self;
        UnitName {
            creation_id,
            slot,
            generation,
            unit,
        }
    }

    /// The term of the watchdog that reported; its acknowledgement is refused once another watchdog
    /// has taken over.
    #[must_use]
    pub fn term(&self) -> u32 {
        self.term
    }
}

impl SlotIndex for SlotRef {
    fn slot_index(&self) -> usize {
        self.slot as usize
    }
}

impl fmt::Display for SlotRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            slot,
            generation,
            pid,
            verdict,
            ..
        } = self;
        write!(
            f,
            "slot {slot} (pid {pid}, generation {generation}): {verdict}"
        )?;
        if self.deaths > 1 {
            write!(f, ", {} deaths", self.deaths)?;
        }
        Ok(())
    }
}

/// Whether a scan judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// This watchdog ticks, judges and reports.
    Primary,
    /// Another watchdog does: this scan ticked nothing and reports nothing.
    #[default]
    Standby,
}

/// The result of a scan. Reuse it with [`scan_into`](crate::FailoverWatchdog::scan_into) to scan
/// without allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReclaimReport {
    /// Slots whose owner is dead, fenced for its silence, or left with units in flight, each with a
    /// snapshot of what it left. Repeated by every scan until acknowledged.
    pub dead_slots: Vec<(SlotRef, HeartbeatSnapshot)>,
    /// Slots that somebody should look at, and from which nothing was handed back: late owners under
    /// [`OnSilence::ReportOnly`](crate::OnSilence), claims that last too long, unknown states.
    pub suspects: Vec<SlotRef>,
    /// When this scan began, in nanoseconds of `CLOCK_MONOTONIC`: how old its news are.
    pub started_ns: u64,
    /// The epoch after this scan's tick.
    pub new_global_epoch: u64,
    /// The longest time since a registered owner's last beat, in epochs.
    pub largest_lag_epochs: u64,
    /// Whether this scan judged.
    pub standing: Standing,
    /// `Superseded` or `Orphaned` when the path does not name this table any more: acknowledge what is
    /// left here, then open the path again.
    pub path_state: Option<PathState>,
}

impl ReclaimReport {
    /// Whether there is nothing to acknowledge.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.dead_slots.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.dead_slots.clear();
        self.suspects.clear();
        self.largest_lag_epochs = 0;
        self.standing = Standing::Standby;
        self.path_state = None;
    }
}
