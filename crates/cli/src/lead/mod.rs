//! `bumpless lead`: runs a command in one of the processes that were started with it, the leader.
//!
//! ```text
//!   lead ── beats, claims ──▶ table, election ◀── watches ── job ── runs ──▶ CMD and its group
//!    │                                                        ▲
//!    └── pipe: signals to pass on; its end: the lead is gone ─┘
//! ```
//! Contract: of all `lead`s of one table and name at most one has a command running, whatever is killed
//! or stopped. Between a lead and its command stands a *job*, this program again, which holds a lock
//! from before the command starts until nobody is left of it and of what it has started. It ends the
//! command as soon as another one leads, also when its own lead hangs, and at once when that is gone. If
//! the job is killed, the lead ends who is left; only if both are killed at once, what the command
//! had started lives on. The term is passed on, so that what the command changes can refuse a former
//! leader's.
//!
//! What hangs is found by a watchdog of the table. In the default table, which is only theirs, all leads
//! watch, and one of them is the primary watchdog. In a table that was named they are guests, and its
//! owner watches, if anybody does; a lead that dies is replaced at once in both.
//!
//! Exit code: the command's, or 128 and the number of the signal that ended it; 127 and 126 as a shell,
//! when there is no such command or it cannot be executed; 2 when this program could not go on.

mod args;
mod candidate;
mod error;
mod job;
mod site;

use std::process::ExitCode;

pub use args::{JobArguments, LeadArguments};
use error::LeadError;

/// The subcommand.
pub fn run(arguments: &LeadArguments) -> ExitCode {
    told(candidate::run(arguments))
}

/// The hidden one, which runs the command.
pub fn run_job(arguments: &JobArguments) -> ExitCode {
    told(job::run(arguments))
}

fn told(ended: Result<u8, LeadError>) -> ExitCode {
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            tell!("bumpless lead: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
