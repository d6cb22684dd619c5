//! `bumpless watch`: a ready-made watchdog, for users who write none.
//!
//! ```text
//!   scan ── verdict ──▶ printer ──▶ a line on standard output
//!    │         └──────▶ desk: is its CMD running, or not yet to be tried again? ── no ──▶ a thread:
//!    │                    ▲      CMD gets the report ── exit 0 ──▶ acknowledge ── else ──┐  starts CMD
//!    │                    └──────────── the next report tries again, later each time ◀───┘
//!    └─ goes on at its period whatever CMD and the reader of the lines do
//! ```
//! Contract: the scan waits for nobody. A verdict is acknowledged only when its line is written (without
//! `--exec`) or when CMD has exited with 0, and by then only if this watchdog is still the primary one;
//! what is not acknowledged is reported again, under the same unit names. At most one CMD runs for one
//! owner of a slot at any time. Nothing is created; a second `watch` of a table is a standby.
//!
//! Exit code: 0 when SIGTERM or SIGINT asked for the end, and running CMDs have ended; 130 when asked
//! twice; 2 when this program could not go on.

mod args;
mod desk;
mod error;
mod events;
mod exec;
mod lines;
mod printer;
mod watcher;

use std::process::ExitCode;

pub use args::WatchArguments;

/// The subcommand.
pub fn run(arguments: &WatchArguments) -> ExitCode {
    match watcher::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("bumpless watch: {error}");
            ExitCode::from(2)
        }
    }
}
