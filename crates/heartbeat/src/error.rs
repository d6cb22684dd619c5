//! The crate's one error: what was tried, on which path or slot, the value found and the limit.

use std::path::PathBuf;

#[cfg(not(bumpless_loom))]
use bumpless_substrate::{identity::IdentityError, region::RegionError};

use crate::occupants::Occupants;

/// Why a table's operation did nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeartbeatError {
    /// The file could not be created, mapped or locked, or is not a table.
    #[cfg(not(bumpless_loom))]
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The process could not learn who it is.
    #[cfg(not(bumpless_loom))]
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// A table has 1 to [`CAPACITY_MAX`](crate::CAPACITY_MAX) slots.
    #[error("{path}: capacity {found}: a table has 1 to {limit} slots")]
    Capacity {
        /// The table's path.
        path: PathBuf,
        /// The capacity asked for.
        found: usize,
        /// The highest capacity.
        limit: usize,
    },
    /// Every slot is taken.
    #[error("register in {path}: {occupants}")]
    TableFull {
        /// The table's path.
        path: PathBuf,
        /// Who keeps the slots.
        occupants: Occupants,
    },
    /// A process registers itself, and no other.
    #[error("register pid {found}: a process registers itself, and this one is {wanted}")]
    ForeignPid {
        /// The pid given.
        found: u32,
        /// The caller's own.
        wanted: u32,
    },
    /// No process has this id.
    #[error("register pid 0: no process has this id")]
    ZeroPid,
    /// The index is beyond the table.
    #[error("slot {slot}: the table has {capacity} slots")]
    SlotOutOfRange {
        /// The index given.
        slot: usize,
        /// How many slots there are.
        capacity: usize,
    },
    /// The handle's registration is over, or was made in another table.
    #[error("slot {slot}: the handle's generation {generation} is over; found {found}")]
    StaleHandle {
        /// The handle's slot.
        slot: usize,
        /// The handle's generation.
        generation: u32,
        /// What the slot's claim says.
        found: String,
    },
    /// A watchdog took the owner for dead: its units are handed back. Unregister, then register anew.
    #[error("slot {slot}, generation {generation}: fenced; its units were handed back")]
    Fenced {
        /// The handle's slot.
        slot: usize,
        /// The handle's generation.
        generation: u32,
    },
    /// Not a unit's number.
    #[error("unit {unit}: the limit is 127")]
    UnitOutOfRange {
        /// The number given.
        unit: i128,
    },
    /// The unit is in flight already.
    #[error("slot {slot}: unit {unit} is in flight already")]
    AlreadyMarked {
        /// The handle's slot.
        slot: usize,
        /// The unit.
        unit: u32,
    },
    /// The unit is not in flight.
    #[error("slot {slot}: unit {unit} is not in flight")]
    NotMarked {
        /// The handle's slot.
        slot: usize,
        /// The unit.
        unit: u32,
    },
    /// Other threads of this owner changed the slot each time.
    #[error("slot {slot}: other threads of this owner won every compare-and-swap")]
    Contended {
        /// The handle's slot.
        slot: usize,
    },
    /// A label is at most 64 bytes, without NUL.
    #[error("label of {len} bytes: at most {limit}, and no NUL")]
    Label {
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// Another file has taken the table's place: finish here, then open the path again.
    #[error("{path}: superseded: another file has taken this table's place")]
    Superseded {
        /// The table's path.
        path: PathBuf,
    },
    /// The table's file was removed and nothing took its place.
    #[error("{path}: orphaned: the file was removed while the table was in use")]
    Orphaned {
        /// The table's path.
        path: PathBuf,
    },
    /// The handle, or the table, was inherited by a fork child: they are its parent's.
    #[error("{path}: inherited by a fork: open the table in this process, and register in it")]
    ForkedHandle {
        /// The table's path.
        path: PathBuf,
    },
    /// A process can have so many registrations in one table: the kernel marks no more at its death.
    #[error(
        "register in {path}: this process has {found} registrations here: the limit is {limit}"
    )]
    TooManyRegistrations {
        /// The table's path.
        path: PathBuf,
        /// How many it has.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The slot's byte lock was lost while registering: something closed the table's descriptors.
    #[error("slot {slot}: its lock was lost while registering: the lock file was closed")]
    LockLost {
        /// The slot.
        slot: usize,
    },
    /// The table was opened to look only.
    #[error("{path}: opened read-only")]
    ReadOnly {
        /// The table's path.
        path: PathBuf,
    },
    /// A word that only its owner writes was changed by somebody else.
    #[error("slot {slot}: damaged: {found} where the owner's own claim must be")]
    Damaged {
        /// The slot.
        slot: usize,
        /// What was found.
        found: String,
    },
}

impl From<core::convert::Infallible> for HeartbeatError {
    fn from(never: core::convert::Infallible) -> Self {
        match never {}
    }
}
