//! The table in which commands stand.
//!
//! Contract: the default table is made when it is missing, and never deleted. A table that was named
//! belongs to somebody else, and is not made. No run watches: who watches, and what a death leads to, is
//! for the user to say (`bumpless watch`).

use std::path::{Path, PathBuf};

use bumpless_failover::lease::{Holder, Lease};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::{RegionError, default_folder};
use rustix::process::Pid;

use super::error::RunError;

/// Slots in the default table: each command takes one, and each watchdog.
const TABLE_SLOTS: usize = 1024;

/// Where the default table lies.
///
/// # Errors
/// [`RegionError`].
pub fn default_table() -> Result<PathBuf, RegionError> {
    Ok(default_folder()?.join("run.table"))
}

/// Opens the table that was named, or the default one.
///
/// # Errors
/// [`RunError::NamedTable`], [`RunError::Table`], [`RunError::Folder`].
pub fn open(named: Option<&Path>) -> Result<HeartbeatTable, RunError> {
    match named {
        Some(path) => HeartbeatTable::attach(path).map_err(|error| RunError::NamedTable { error }),
        None => Ok(HeartbeatTable::create(default_table()?, TABLE_SLOTS)?),
    }
}

/// Whether some watchdog has taken the table: one that died may still be named.
#[must_use]
pub fn is_watched(table: &HeartbeatTable) -> bool {
    Lease::load(&table.header().lease).holder() != Holder::Nobody
}

/// Whether this process has lost its slot in the table.
#[must_use]
pub fn is_fenced(path: &Path, owner: Pid) -> bool {
    // Opened each time: the path may name another table by now.
    let Ok(table) = HeartbeatTable::open_read_only(path) else {
        return false;
    };
    let pid = owner.as_raw_nonzero().get().unsigned_abs();
    let mut live = table.iter_live();
    live.any(|(_, seen)| seen.pid == pid && seen.is_fenced)
}
