//! A registration that gives its slot back by itself.
//!
//! Contract: registered from construction to drop. What is in flight when it is dropped, also by a
//! panic, is handed back as a dead owner's would be.

use crate::error::HeartbeatError;
use crate::handle::Handle;
use crate::identity_line::Profile;
use crate::table::{HeartbeatTable, Result};
use crate::unit::Unit;

/// This process as a worker in a table.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let table = bumpless_heartbeat::HeartbeatTable::create(folder.path().join("t"), 4)?;
/// use bumpless_heartbeat::{Label, Profile, Worker};
///
/// let profile = Profile { label: Label::new("resizer")?, ..Profile::default() };
/// let worker = Worker::register(&table, profile)?;
/// worker.mark(0_u8)?;
/// worker.beat()?;
/// worker.complete(0_u8)?;
/// drop(worker);
/// assert_eq!(table.iter_live().count(), 0);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Worker<'t> {
    table: &'t HeartbeatTable,
    handle: Handle,
}

impl<'t> Worker<'t> {
    /// Registers this process.
    ///
    /// # Errors
    /// As [`HeartbeatTable::register_as`].
    pub fn register(table: &'t HeartbeatTable, profile: Profile) -> Result<Self> {
        let handle = table.register_as(std::process::id(), profile)?;
        Ok(Self { table, handle })
    }

    /// The handle, for calls that this type does not repeat.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// As [`HeartbeatTable::beat`].
    ///
    /// # Errors
    /// As [`HeartbeatTable::beat`].
    pub fn beat(&self) -> Result<()> {
        self.table.beat(self.handle)
    }

    /// As [`HeartbeatTable::mark_in_flight`].
    ///
    /// # Errors
    /// As [`HeartbeatTable::mark_in_flight`].
    pub fn mark<U>(&self, unit: U) -> Result<()>
    where
        U: TryInto<Unit>,
        HeartbeatError: From<U::Error>,
    {
        self.table.mark_in_flight(self.handle, unit)
    }

    /// As [`HeartbeatTable::clear_in_flight`].
    ///
    /// # Errors
    /// As [`HeartbeatTable::clear_in_flight`].
    pub fn complete<U>(&self, unit: U) -> Result<()>
    where
        U: TryInto<Unit>,
        HeartbeatError: From<U::Error>,
    {
        self.table.clear_in_flight(self.handle, unit)
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // Fails if the slot is not ours any more, also in a fork child: then it needs nothing from us.
        let _ = self.table.unregister(self.handle);
    }
}
