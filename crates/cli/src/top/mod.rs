//! `bumpless top`: tables and tags, live.
//!
//! ```text
//!   look (every interval) ──▶ model ◀── keys
//!                              │
//!                              └──▶ screen
//! ```
//! Contract: looks, and changes nothing. The terminal is left as it was, see `terminal`.

mod keyboard;
mod model;
mod rows;
mod screen;
mod terminal;

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;

use crate::pool::duration;
use crate::signals::{INTERRUPTED, Signals};
use keyboard::{Key, Keyboard};
use model::Model;
use terminal::{Pauses, ask_to_pause, in_terminal};

/// How soon a signal ends it.
const POLL: Duration = Duration::from_millis(50);

/// Watch tables and standby tags live: verdicts, lags and what happens.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless top
  bumpless top --interval 100ms /dev/shm/bumpless-1000/pool-4711.table

Keys: q ends; s sorts by the next column, r the other way round; j, k and the arrows scroll; Tab shows the
next table or tag; a also shows slots of dead owners for which all is done; ctrl-Z stops it. Each verdict
is a word and a sign, so colours are not needed; NO_COLOR switches them off. If a black box lies beside the
table, its last events are shown. Exit status: 0; 1 when this is no terminal that can be drawn on; 130 ended by a signal.")]
pub struct TopArguments {
    /// Tables and tags [default: those in the folder of this user]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Time between two looks
    #[arg(long, value_name = "T", default_value = "500ms", value_parser = duration)]
    pub interval: Duration,
}

/// The subcommand.
pub fn run(arguments: &TopArguments) -> ExitCode {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        tell!("bumpless top: this is no terminal; `bumpless status` prints the same once");
        return ExitCode::FAILURE;
    }
    let term = std::env::var_os("TERM").unwrap_or_default();
    if term.is_empty() || term == "dumb" {
        tell!(
            "bumpless top: TERM={term:?} cannot be drawn on; `bumpless status` prints the same once"
        );
        return ExitCode::FAILURE;
    }
    match show(arguments) {
        Ok(true) => ExitCode::from(INTERRUPTED),
        Ok(false) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("bumpless top: cannot use the terminal: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Until a key or a signal ends it; whether that was a signal.
fn show(arguments: &TopArguments) -> std::io::Result<bool> {
    // A second one must not end it before the terminal is put right.
    let signals = Signals::install_to_ask()?;
    let pauses = Pauses::install()?;
    let mut model = Model::new(arguments.paths.clone());
    let mut keyboard = Keyboard::default();
    in_terminal(|terminal| {
        loop {
            model.look();
            terminal.draw(|frame| screen::draw(frame, &mut model))?;
            let due = Instant::now() + arguments.interval;
            // Once at least, however short the interval: what is never asked ends nothing.
            loop {
                if signals.asked() {
                    return Ok(true);
                }
                if pauses.take(terminal)? {
                    // What was on the screen is of another time.
                    break;
                }
                let limit = POLL.min(due.saturating_duration_since(Instant::now()));
                let keys = keyboard.wait(limit, &pauses.stop)?;
                let is_changed = pauses.is_resized() || !keys.is_empty();
                for key in keys {
                    if key == Key::Pause {
                        ask_to_pause();
                    } else if model.key(key) {
                        return Ok(false);
                    }
                }
                if Instant::now() >= due {
                    break;
                }
                if is_changed {
                    terminal.draw(|frame| screen::draw(frame, &mut model))?;
                }
            }
        }
    })
}
