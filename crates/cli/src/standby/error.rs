//! Why a node or a plant could not run.

use std::path::{Path, PathBuf};

use bumpless_standby::ConfigError;
use bumpless_standby::drive::DeviceError;
use bumpless_standby::link::LinkError;
use bumpless_standby::persist::StoreError;
use bumpless_standby::tag::TagError;
use bumpless_substrate::guard::GuardError;

/// What was tried, what was found, what was wanted.
#[derive(Debug, thiserror::Error)]
pub enum StandbyError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A link.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// What is kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operator's word for the actuator's level.
    #[error(transparent)]
    Commission(#[from] bumpless_standby::actuator::CommissionError),
    /// The hardware watchdog.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The tag of a node.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// A tag without a cycle.
    #[error(
        "{path}: no cycle of a node in it that can be read: it has not begun, or its tag is damaged"
    )]
    NoTag {
        /// The tag.
        path: PathBuf,
    },
    /// As many local addresses as remote ones are wanted.
    #[error(
        "{listen} addresses to listen at and {peer} places of the peer, wanted 1 or 2 addresses of each, \
         or none and one mailbox"
    )]
    Paths {
        /// As given.
        listen: usize,
        /// As given.
        peer: usize,
    },
    /// Where a plant listens.
    #[error("{found} places to listen at, wanted one address, or two mailboxes, one for each node")]
    PlantPlaces {
        /// As given.
        found: usize,
    },
    /// Somebody else's memory.
    #[error("{path}: another plant keeps its level there")]
    FolderHeld {
        /// The state folder.
        path: PathBuf,
    },
    /// A file or socket.
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
    #[error("cannot {doing}: {error}")]
    System {
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// `--exec` without a program.
    #[error("--exec names no program")]
    NoProgram,
    /// The user's controller.
    #[error("cannot {doing} the controller {name:?}: {error}")]
    Program {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The program.
        name: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The user's controller said something else.
    #[error("the controller {name:?} answered {found:?}, wanted `OUTPUT STATE` and a line end")]
    Answer {
        /// The program.
        name: String,
        /// Its answer, or the begin of it.
        found: String,
    },
    /// The user's controller said something between two questions.
    #[error("the controller {name:?} said {found:?} unasked, wanted one line for each line")]
    Unasked {
        /// The program.
        name: String,
        /// What it said, or the begin of it.
        found: String,
    },
    /// The demo's folder.
    #[error(transparent)]
    PrivateFolder(#[from] crate::private_folder::FolderError),
    /// A process of the demo could not be started.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A process of the demo ended by itself.
    #[error("{name} has ended: {status}")]
    Ended {
        /// Which.
        name: String,
        /// How.
        status: std::process::ExitStatus,
    },
    /// What a demo waits for did not come.
    #[error("not within {limit:?}: {what}")]
    NotWithin {
        /// What was awaited.
        what: &'static str,
        /// For how long.
        limit: std::time::Duration,
    },
    /// The demo's proxy said something else than `done`.
    #[error("the proxy answered {0:?}, wanted `done AT_NS`")]
    Proxy(String),
    /// A line of a log that is none.
    #[error("{path}, line {number}: {found:?}")]
    Line {
        /// The log.
        path: PathBuf,
        /// Which line, from 1.
        number: usize,
        /// The line.
        found: String,
    },
    /// The demo's run did not end as a pair must.
    #[error(
        "fault {fault}: {stale_accepted} stale outputs accepted, wanted 0; {primaries_at_end} \
         primaries drive at the end, wanted 1"
    )]
    Unsound {
        /// Which.
        fault: String,
        /// By the plant's log.
        stale_accepted: u64,
        /// By all logs.
        primaries_at_end: u64,
    },
    /// A signal asked for the end.
    #[error("interrupted")]
    Interrupted,
    /// An order that the node did not take, or no node that could.
    #[error("{0}")]
    Refused(String),
}

impl StandbyError {
    /// What was tried with a file, and what the system said.
    pub fn file(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { doing, path, error }
    }

    /// A line that is none.
    pub fn line(path: &Path, number: usize, found: &str) -> Self {
        Self::Line {
            path: path.to_owned(),
            number,
            found: found.to_owned(),
        }
    }
}
