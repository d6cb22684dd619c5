//! The table in which commands stand.
//!
//! Contract: the table, named or not, is made when it is missing, which is told of one that was named, and
//! never deleted. No run watches: who watches, and what a death leads to, is for the user to say
//! (`bumpless watch`).

use std::path::{Path, PathBuf};

use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::{RegionError, default_folder};
use rustix::process::Pid;

use super::error::RunError;
use super::say;
use crate::look::{TableView, path_line};
use crate::own_table;

/// In the folder of this user.
const DEFAULT_NAME: &str = "run.table";

/// Where the default table lies.
///
/// # Errors
/// [`RegionError`].
pub fn default_table() -> Result<PathBuf, RegionError> {
    Ok(default_folder()?.join(DEFAULT_NAME))
}

/// Opens the table that was named, or the default one; makes it when it is missing.
///
/// # Errors
/// [`RunError::Table`].
pub fn open(named: Option<&Path>) -> Result<HeartbeatTable, RunError> {
    let Some(path) = named else {
        return Ok(own_table::open_default(DEFAULT_NAME, "run")?);
    };
    let (table, is_new) = own_table::open_or_make(path)?;
    if is_new {
        // One that was misspelt would else be noticed by nobody.
        let (path, slots) = (path_line(path), table.capacity());
        say(&format!("{path}: made, with {slots} slots"));
    }
    Ok(table)
}

/// Whether some watchdog, primary or standby, lives.
#[must_use]
pub fn is_watched(table: &HeartbeatTable) -> bool {
    // One that cannot be looked at is no news: to register in it will fail.
    let Ok(view) = TableView::at(table.path()) else {
        return true;
    };
    let mut watchdogs = view.primary.iter().chain(&view.standbys);
    watchdogs.any(|watchdog| watchdog.is_alive)
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
