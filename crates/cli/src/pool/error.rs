//! Why a pool could not run, or not to its end.

use std::path::PathBuf;

use bumpless_failover::AcknowledgeError;
use bumpless_heartbeat::HeartbeatError;
use bumpless_substrate::guard::GuardError;
use bumpless_substrate::region::{PathState, RegionError};

/// What was tried, on which path, what was found.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// The heartbeat table.
    #[error(transparent)]
    Table(#[from] HeartbeatError),
    /// The lanes.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The black box.
    #[error(transparent)]
    BlackBox(#[from] bumpless_sidecar::SidecarError),
    /// A worker could not be started.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A report could not be acknowledged.
    #[error(transparent)]
    Acknowledge(#[from] AcknowledgeError),
    /// The table is somebody else's.
    #[error("{path}: in use by pid {pid}: name another --table, or none")]
    TableInUse {
        /// The table's path.
        path: PathBuf,
        /// Who uses it.
        pid: u32,
    },
    /// Another watchdog scans the table.
    #[error("{path}: another watchdog has taken this pool's table over")]
    NotPrimary {
        /// The table's path.
        path: PathBuf,
    },
    /// The table's file is not the one that was opened.
    #[error("{path}: the table was taken away while in use: its path is {state:?}")]
    TableMoved {
        /// The table's path.
        path: PathBuf,
        /// What the path means now.
        state: PathState,
    },
    /// A file of the pool's own.
    #[error("cannot {doing} {path}: {error}")]
    File {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The folder for the commands' output holds something.
    #[error("{path}: not empty: name an empty or new folder as --output-dir")]
    OutputDirInUse {
        /// The folder.
        path: PathBuf,
    },
    /// A system call about a child failed.
    #[error("cannot {doing}: {errno}")]
    System {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// What the kernel answered.
        errno: rustix::io::Errno,
    },
    /// Workers end before they can work.
    #[error("{tries} workers in a row ended before they could register; the last one: {last}")]
    WorkersDoNotStart {
        /// How many.
        tries: u32,
        /// How the last one ended.
        last: String,
    },
    /// A signal asked for the end.
    #[error("ended by a signal")]
    Interrupted,
}

impl PoolError {
    /// For `map_err` on operations on files.
    pub fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::File { doing, path, error }
    }
}
