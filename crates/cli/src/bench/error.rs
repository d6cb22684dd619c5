//! Why a measurement gave no figures.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use bumpless_barrier::BarrierError;
use bumpless_election::ElectionError;
use bumpless_failover::AcknowledgeError;
use bumpless_heartbeat::HeartbeatError;
use bumpless_substrate::guard::GuardError;
use bumpless_substrate::region::RegionError;

/// What was tried, what was found, what was wanted.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The heartbeat table.
    #[error(transparent)]
    Table(#[from] HeartbeatError),
    /// The barrier.
    #[error(transparent)]
    Barrier(#[from] BarrierError),
    /// The other process of a measurement does not answer.
    #[error("block {block}: the other process is gone, or did not answer within {limit:?}")]
    NoAnswer {
        /// Which block.
        block: u32,
        /// How long it was awaited.
        limit: Duration,
    },
    /// The election.
    #[error(transparent)]
    Election(#[from] ElectionError),
    /// Another process leads than the one that was to.
    #[error("pid {found} leads, and not {wanted}")]
    OtherLeader {
        /// Who leads.
        found: u32,
        /// Who was to.
        wanted: u32,
    },
    /// A killed leader was not replaced in the next term.
    #[error("run {run}: nobody took over in the next term")]
    NoTakeover {
        /// Which run.
        run: u32,
    },
    /// A ring, or the sidecar's thread.
    #[error(transparent)]
    Sidecar(#[from] bumpless_sidecar::SidecarError),
    /// An observation is missing, or was counted twice.
    #[error("{wanted} beats, and {found} were counted")]
    Uncounted {
        /// How many were counted.
        found: u64,
        /// How many there were.
        wanted: u64,
    },
    /// The folder for the table.
    #[error(transparent)]
    Folder(#[from] RegionError),
    /// The folder of this measurement.
    #[error(transparent)]
    PrivateFolder(#[from] crate::private_folder::FolderError),
    /// A child could not be started.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A standby pair that was to talk to itself.
    #[error(transparent)]
    Rehearsal(#[from] bumpless_standby::rehearsal::RehearsalError),
    /// A hand-back could not be acknowledged.
    #[error(transparent)]
    Acknowledge(#[from] AcknowledgeError),
    /// A file.
    #[error("cannot {doing} {path}: {error}")]
    File {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A system call.
    #[error("cannot {doing}: {errno}")]
    System {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// What the kernel answered.
        errno: rustix::io::Errno,
    },
    /// The system does not give the memory that the worker is to touch.
    #[error("cannot touch {bytes} bytes of memory: {error}")]
    Memory {
        /// How many.
        bytes: u64,
        /// What the allocator said.
        error: std::collections::TryReserveError,
    },
    /// A child ended before it was ready.
    #[error("a child ended before it was ready: {status}")]
    ChildEnded {
        /// How it ended.
        status: ExitStatus,
    },
    /// A child that was to be killed was dead already.
    #[error("a child ended before it was killed: {status}")]
    EndedByItself {
        /// How it ended.
        status: ExitStatus,
    },
    /// A child said something else than that it is ready.
    #[error("a child said `{found}`, and not `ready SLOT GENERATION`")]
    ChildSaid {
        /// What it said.
        found: String,
    },
    /// Nothing was handed back.
    #[error("run {run}, {detector}: nothing was handed back within {limit:?}")]
    NotSeen {
        /// Which run.
        run: u32,
        /// Which detector.
        detector: &'static str,
        /// How long it was awaited.
        limit: Duration,
    },
    /// Something else was handed back than what the dead worker had in flight.
    #[error("run {run}, {detector}: handed back {found}; wanted {wanted}")]
    WrongHandBack {
        /// Which run.
        run: u32,
        /// Which detector.
        detector: &'static str,
        /// What the reports showed.
        found: String,
        /// What the worker had in flight.
        wanted: String,
    },
    /// The machine stalls so much that live workers miss their beats.
    #[error("run {run}: {tries} workers in a row missed their beats before they were killed")]
    TooBusy {
        /// Which run.
        run: u32,
        /// How many were tried.
        tries: u32,
    },
    /// The figures could not be put into JSON.
    #[error("cannot write the figures: {0}")]
    Json(#[from] serde_json::Error),
    /// A signal asked for the end.
    #[error("ended by a signal")]
    Interrupted,
}

impl BenchError {
    /// For `map_err` on operations on files.
    pub fn file(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::File { doing, path, error }
    }

    /// For `map_err` on system calls.
    pub fn system(doing: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::System { doing, errno }
    }
}
