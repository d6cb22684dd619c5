//! Layer 1 of bumpless: the heartbeat table.
//!
//! Each process owns one cache line in a mapped file, stores the current epoch there (a *beat*), and
//! marks the units of work that it has in flight. Others see both, without a lock and without asking
//! it. Who is late or dead, and what to do about it, is for the layer above.
//!
//! Start with [`HeartbeatTable`]; [`Worker`] is the same with a slot that gives itself back.
#![forbid(unsafe_code)]

pub mod epoch;
#[cfg(not(bumpless_loom))]
pub mod evidence;
pub mod identity_line;
pub mod occupancy;
pub mod occupants;
mod outcome;
pub mod slot;
pub mod verdict_line;

mod cells;
mod error;
mod handle;
#[cfg(not(bumpless_loom))]
mod header;
#[cfg(not(bumpless_loom))]
mod observe;
#[cfg(not(bumpless_loom))]
mod register;
mod snapshot;
#[cfg(not(bumpless_loom))]
mod table;
mod unit;
#[cfg(not(bumpless_loom))]
mod worker;

pub use cells::SlotCells;
pub use error::HeartbeatError;
pub use handle::{Handle, SlotIndex};
#[cfg(not(bumpless_loom))]
pub use header::{CAPACITY_MAX, DOORBELL_WAITED_ON, TableHeader};
pub use identity_line::{Label, OwnerIdentity, Profile};
pub use snapshot::{Certificate, HeartbeatSnapshot, NO_KEEPER, Observed, SlotRole};
#[cfg(not(bumpless_loom))]
pub use table::{HeartbeatTable, Result};
pub use unit::{UNITS_PER_SLOT, Unit, UnitSet};
#[cfg(not(bumpless_loom))]
pub use worker::Worker;
