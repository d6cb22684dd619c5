//! Why a run or its job could not go on.

use std::ffi::OsString;
use std::path::PathBuf;

use bumpless_heartbeat::HeartbeatError;
use bumpless_substrate::guard::GuardError;

use crate::kept::code_of_start;
use crate::look::with_advice;

/// What was tried, on which path, what was found.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The heartbeat table.
    #[error("{}", with_advice(.0))]
    Table(#[from] HeartbeatError),
    /// The command could not be guarded.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// The command could not be started.
    #[error("cannot start {program:?}: {error}")]
    Command {
        /// The program.
        program: OsString,
        /// What the system said.
        error: std::io::Error,
    },
    /// The descriptor that was asked for is another file.
    #[error("cannot give the command descriptor {wanted}: it is in use: name another --beat-fd")]
    Descriptor {
        /// Its number.
        wanted: i32,
    },
    /// A file, a signal handler, a process.
    #[error("cannot {doing} {path}: {error}")]
    File {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

impl RunError {
    /// For `map_err` on operations on files.
    pub fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::File { doing, path, error }
    }

    /// What shells say of such a command, or 2.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Command { error, .. } => code_of_start(error),
            _ => 2,
        }
    }
}
