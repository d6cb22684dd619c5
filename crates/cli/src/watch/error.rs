//! Why a watch could not go on.

use std::path::PathBuf;

use bumpless_heartbeat::HeartbeatError;
use bumpless_sidecar::SidecarError;
use bumpless_substrate::region::{PathState, RegionError};

use crate::look::with_advice;

/// What was tried, on which path, what was found, what to do.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no such table, or none of this start of the machine.
    #[error("{error}: name a table that exists, or wait for it with --wait")]
    NoTable {
        /// What was found.
        error: RegionError,
    },
    /// The table.
    #[error("{}", with_advice(.0))]
    Table(HeartbeatError),
    /// The folder for the default table.
    #[error(transparent)]
    Folder(#[from] RegionError),
    /// The path does not name the table any more.
    #[error(
        "{path}: {state:?}: the file was replaced or deleted, and all that was left in it is handed \
         back: start anew"
    )]
    Moved {
        /// The table's path.
        path: PathBuf,
        /// What the path means now.
        state: PathState,
    },
    /// The black box.
    #[error(transparent)]
    Events(#[from] SidecarError),
    /// Nobody reads the lines.
    #[error("cannot write to standard output: {error}")]
    Output {
        /// What the system said.
        error: std::io::Error,
    },
    /// The handlers.
    #[error("cannot handle SIGTERM and SIGINT: {error}")]
    Signals {
        /// What the system said.
        error: std::io::Error,
    },
}
