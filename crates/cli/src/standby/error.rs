//! Why a node or a plant could not run.

use std::path::PathBuf;

use bumpless_standby::ConfigError;
use bumpless_standby::drive::DeviceError;
use bumpless_standby::link::LinkError;
use bumpless_standby::persist::StoreError;

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
    /// As many local addresses as remote ones are wanted.
    #[error("{listen} addresses to listen at and {peer} of the peer, wanted 1 or 2 of each")]
    Paths {
        /// As given.
        listen: usize,
        /// As given.
        peer: usize,
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
    /// An order that the node did not take, or no node that could.
    #[error("{0}")]
    Refused(String),
}
