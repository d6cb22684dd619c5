//! `bumpless run`: any command as a member of a heartbeat table, whatever language it is written in.
//!
//! ```text
//!   run ── starts, again after failures ──▶ job ── registers, beats ──▶ table ◀── watches ── a watchdog
//!    │                                       │ ▲
//!    │                                       │ └─ progress: a file, a descriptor, sd_notify ─┐
//!    └─ socket: signals to pass on;          └─── runs, signals, ends ──▶ CMD and its group ─┘
//!       its end: run is gone
//! ```
//! Contract: the registered process is the *job*, this program again, one for each start of the command.
//! When the command ends well, or as it was asked to through `run`, the job gives its slot back. When the
//! command fails, is killed, or `run` is killed, the job ends who is left of the command and then itself
//! without giving the slot back: so the kernel tells the watchdog of the death at once, and when it is
//! told nothing of the command lives any more. If the job itself is killed, the kernel tells, the command
//! dies with it, and `run` ends who is left; if it is stopped, a watchdog fences it, and `run` kills it. Only if `run` and job are killed at once, what the command
//! had started lives on.
//!
//! Without a way to show progress the job beats as long as the command lives. With one it beats only
//! while the last progress is younger than the limit; whom the watchdog then fences, the job ends.
//!
//! Exit code: the command's, or 128 and the number of the signal that ended it; 127 and 126 as a shell,
//! when there is no such command or it cannot be executed; 2 when this program could not go on.

mod args;
mod error;
mod job;
mod notify;
mod progress;
mod runner;
mod signals;
mod site;
mod ways;

use std::process::ExitCode;

use crate::out::message_in_passing;
pub use args::{JobArguments, RunArguments};
use error::RunError;
pub use site::default_table;

/// The subcommand.
pub fn run(arguments: &RunArguments) -> ExitCode {
    told(runner::run(arguments))
}

/// The hidden one, which runs the command.
pub fn run_job(arguments: &JobArguments) -> ExitCode {
    told(job::run(arguments))
}

fn told(ended: Result<u8, RunError>) -> ExitCode {
    match ended {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            say(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

/// A line for people. That nobody hears it is no reason to end, or to keep a beat, a signal or the end of a
/// command waiting.
fn say(line: &str) {
    message_in_passing(&format!("bumpless run: {line}"));
}
