//! Looking at a table: for observers, and for the layers above that judge.
//!
//! Contract: an observer writes nothing, locks nothing and never waits; on a read-only mapping it does
//! exactly the same. Only `tick_global_epoch` and `check_path` write, and say `ReadOnly` there.

use std::path::Path;

use bumpless_substrate::locks::SlotLocks;
use bumpless_substrate::region::PathState;

use crate::cells::SlotCells;
use crate::epoch::TableEpoch;
use crate::error::HeartbeatError;
use crate::handle::SlotIndex;
use crate::header::TableHeader;
use crate::identity_line::{Label, OwnerIdentity};
use crate::occupancy::Occupancy;
use crate::slot::Slot;
use crate::snapshot::{HeartbeatSnapshot, Observed};
use crate::table::{HeartbeatTable, Result};

/// How often `observe` looks before it says "in transition".
const OBSERVE_TRIES: u32 = 64;

/// The observers' operations: no write, no lock, no wait.
impl HeartbeatTable {
    /// How many slots the table has.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The table's path, as it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.region.path()
    }

    /// Whether it was opened to look only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.region.is_read_only()
    }

    /// Whether this process inherited the table by a fork: it and the slots in it are the parent's, and
    /// this process has to open its own. Cost: one load, where the kernel can wipe a page on fork.
    #[must_use]
    pub fn is_forked(&self) -> bool {
        self.guard.is_forked()
    }

    /// What this table has in common with no other: part of every unit's name.
    #[must_use]
    pub fn creation_id(&self) -> u64 {
        self.region.creation_id()
    }

    /// The epoch: how often a primary watchdog has scanned.
    #[must_use]
    pub fn global_epoch(&self) -> u64 {
        self.epoch().epoch()
    }

    /// Advances the epoch by one and returns it. For the one ticker of a table that no watchdog scans;
    /// a watchdog's scan ticks by itself.
    ///
    /// # Errors
    /// [`HeartbeatError::ReadOnly`].
    pub fn tick_global_epoch(&self) -> Result<u64> {
        self.writable()?;
        let mut seen = self.epoch();
        loop {
            // Not bounded by a count: each failure is another ticker's success, and the epoch stops
            // at its end.
            match self.header.epoch.tick(seen) {
                Ok(now) => return Ok(now.epoch()),
                Err(now) => seen = now,
            }
        }
    }

    /// A consistent look at a slot, "vacant", or "in transition" by whom. Bounded, never waits.
    #[must_use]
    pub fn observe(&self, slot: impl SlotIndex) -> Observed {
        match self.slots.get(slot.slot_index()) {
            Some(slot) => slot.observe(OBSERVE_TRIES),
            None => Observed::Vacant,
        }
    }

    /// A consistent look at a slot; `None` when it is vacant, in transition, or beyond the table
    /// ([`observe`](Self::observe) tells these apart).
    #[must_use]
    #[inline(always)]
    pub fn snapshot(&self, slot: impl SlotIndex) -> Option<HeartbeatSnapshot> {
        self.slots.get(slot.slot_index())?.snapshot(OBSERVE_TRIES)
    }

    /// What the owner of a slot says of itself, if somebody owns it.
    #[must_use]
    pub fn identity(&self, slot: impl SlotIndex) -> Option<OwnerIdentity> {
        let cells = self.cells(slot.slot_index())?;
        let claim = cells.slot.claimed_by();
        let identity = cells.slot.identity(cells.identity, OBSERVE_TRIES)?;
        (claim.is_live() && identity.generation == claim.generation()).then_some(identity)
    }

    /// Every registered slot, with its index, in rising order.
    pub fn iter_live(&self) -> impl Iterator<Item = (usize, HeartbeatSnapshot)> + '_ {
        self.occupancy()
            .iter()
            .filter_map(|slot| Some((slot as usize, self.snapshot(slot)?)))
    }

    /// The first registered slot with this label.
    #[must_use]
    pub fn find_by_label(&self, label: &str) -> Option<usize> {
        let label = Label::new(label).ok()?;
        self.occupancy()
            .iter()
            .map(|slot| slot as usize)
            .find(|slot| {
                self.identity(*slot)
                    .is_some_and(|found| found.registration.profile.label == label)
            })
    }
}

/// What the layers above work on. They judge; this crate only keeps the words.
impl HeartbeatTable {
    /// The header's words.
    #[must_use]
    pub fn header(&self) -> &TableHeader {
        &self.header
    }

    /// The epoch word: epoch and SUPERSEDED.
    #[must_use]
    #[inline(always)]
    pub fn epoch(&self) -> TableEpoch {
        self.header.epoch.now()
    }

    /// Which slots may be in use.
    #[must_use]
    #[inline]
    pub fn occupancy(&self) -> Occupancy<'_> {
        Occupancy::new(
            &self.summary,
            &self.occupancy,
            &self.header.claims,
            self.region.capacity(),
        )
    }

    /// The owners' lines of all slots.
    #[must_use]
    #[inline]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The lines of a slot; `None` beyond the table.
    #[must_use]
    #[inline]
    pub fn cells(&self, slot: usize) -> Option<SlotCells<'_>> {
        Some(SlotCells {
            slot: self.slots.get(slot)?,
            identity: self.identities.get(slot)?,
            verdict: self.verdicts.get(slot)?,
        })
    }

    /// Whether the path still names this table; if not, every later beat is told. The primary
    /// watchdog's duty, once per scan. Cost: one system call.
    ///
    /// # Errors
    /// [`HeartbeatError::ReadOnly`]; [`HeartbeatError::Region`] when the path cannot be looked at.
    pub fn check_path(&self) -> Result<PathState> {
        self.writable()?;
        let state = self.region.path_state()?;
        if state != PathState::Current && !self.epoch().is_superseded() {
            self.header.epoch.supersede();
        }
        Ok(state)
    }

    /// # Errors
    /// [`HeartbeatError::ReadOnly`].
    pub(crate) fn writable(&self) -> Result<&SlotLocks> {
        self.region.locks().ok_or_else(|| HeartbeatError::ReadOnly {
            path: self.region.path().to_owned(),
        })
    }
}
