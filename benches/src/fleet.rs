//! A table with owners in it, all of this process, where a measurement wants them.
//!
//! Contract: owners are registered as any are: byte lock, certificate, claim. Where they land is chosen by
//! setting the occupancy hint of the slots in between, and clearing it again; the summary bits stay set, as in
//! a table that was full once. One opening takes at most so many owners, so there are as many as needed.

use anyhow::{Context, Result, ensure};
use bumpless_heartbeat::{Handle, HeartbeatTable, UnitSet};
use bumpless_substrate::keeper::ARMED_MAX;
use bumpless_substrate::sync::Ordering;

use crate::folder::Folder;

/// What the kernel sets in the keeper word of an owner that died.
const OWNER_DIED: u32 = 0x4000_0000;

/// A table and its owners.
#[derive(Debug)]
pub struct Fleet {
    /// Openings, each with up to [`ARMED_MAX`] of the owners.
    tables: Vec<HeartbeatTable>,
    /// The owners, by slot.
    pub handles: Vec<Handle>,
    folder: Folder,
}

impl Fleet {
    /// A table of `capacity` slots with `owners` in it, in every `step`th slot.
    ///
    /// # Errors
    /// What the table says.
    pub fn new(capacity: usize, owners: usize, step: usize) -> Result<Self> {
        ensure!(owners * step <= capacity, "{owners} owners do not fit");
        let folder = Folder::in_memory()?;
        let mut fleet = Self {
            tables: Vec::new(),
            handles: Vec::with_capacity(owners),
            folder,
        };
        fleet
            .tables
            .push(HeartbeatTable::create(fleet.path(), capacity)?);
        let between = (0..capacity as u32).filter(|slot| !(*slot as usize).is_multiple_of(step));
        for slot in between.clone() {
            fleet.tables[0].occupancy().set(slot);
        }
        for owner in 0..owners {
            if owner > 0 && owner.is_multiple_of(ARMED_MAX) {
                fleet.tables.push(fleet.open()?);
            }
            let table = fleet.tables.last().context("an opening")?;
            fleet.handles.push(table.register(std::process::id())?);
        }
        for slot in between {
            fleet.tables[0].occupancy().clear(slot);
        }
        Ok(fleet)
    }

    /// Where the table is.
    #[must_use]
    pub fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("table")
    }

    /// The first opening: for all that takes a handle.
    #[must_use]
    pub fn table(&self) -> &HeartbeatTable {
        &self.tables[0]
    }

    /// An opening of its own, as a watchdog in another process would have.
    ///
    /// # Errors
    /// What the table says.
    pub fn open(&self) -> Result<HeartbeatTable> {
        Ok(HeartbeatTable::attach(self.path())?)
    }

    /// Every owner beats once; those that were fenced cannot.
    pub fn beat_all(&self) {
        for handle in &self.handles {
            // Fenced owners are part of some measurements.
            let _ = self.table().beat(*handle);
        }
    }

    /// Every `step`th owner has `units` in flight, and then its certificate is marked, as the kernel does when
    /// an owner ends. Their slots.
    ///
    /// # Errors
    /// A slot that is not there, or what the table says.
    pub fn kill_every(&self, step: usize, units: UnitSet) -> Result<Vec<usize>> {
        let mut killed = Vec::new();
        for handle in self.handles.iter().step_by(step) {
            for unit in units.iter() {
                self.table().mark_in_flight(*handle, unit)?;
            }
            let cells = self.table().cells(handle.slot()).context("a slot")?;
            // Relaxed: seen by the same thread.
            cells
                .slot
                .keeper_word()
                .fetch_or(OWNER_DIED, Ordering::Relaxed);
            killed.push(handle.slot());
        }
        Ok(killed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_land_in_every_so_manieth_slot_and_the_rest_is_free() {
        let fleet = Fleet::new(256, 4, 64).unwrap();
        let slots: Vec<_> = fleet.handles.iter().map(|handle| handle.slot()).collect();
        assert_eq!(slots, [0, 64, 128, 192]);
        assert!(fleet.table().occupancy().iter().eq([0, 64, 128, 192]));
    }
}
