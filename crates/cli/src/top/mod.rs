//! `bumpless top`: a table, live.
//!
//! ```text
//!   look (every interval) ──▶ model ◀── keys
//!                              │
//!                              └──▶ screen
//! ```
//! Contract: looks, and changes nothing. The terminal is left as it was, whether the end is a key, a signal
//! or a panic; only SIGKILL leaves it as it is.

mod model;
mod screen;

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::crossterm::event::{self, Event};

use crate::pool::duration;
use crate::signals::{INTERRUPTED, Signals};
use model::Model;

/// How soon a signal ends it.
const POLL: Duration = Duration::from_millis(50);

/// Watch a table live: verdicts, lags and what happens.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless top
  bumpless top --interval 100ms /dev/shm/bumpless-1000/pool-4711.table

Keys: q ends; s sorts by the next column, r the other way round; j, k and the arrows scroll; Tab shows the
next table; a also shows slots of dead owners for which all is done. Each verdict is a word and a sign, so
colours are not needed; NO_COLOR switches them off. If a black box lies beside the table, its last events
are shown. Exit status: 0; 1 when this is no terminal; 130 ended by SIGINT or SIGTERM.")]
pub struct TopArguments {
    /// Tables [default: those in the folder of this user]
    #[arg(value_name = "TABLE")]
    pub tables: Vec<PathBuf>,

    /// Time between two looks
    #[arg(long, value_name = "T", default_value = "500ms", value_parser = duration)]
    pub interval: Duration,
}

/// The subcommand.
pub fn run(arguments: &TopArguments) -> ExitCode {
    if !stdin().is_terminal() || !stdout().is_terminal() {
        eprintln!("bumpless top: this is no terminal; `bumpless status` prints the same once");
        return ExitCode::FAILURE;
    }
    match show(arguments) {
        Ok(true) => ExitCode::from(INTERRUPTED),
        Ok(false) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bumpless top: cannot use the terminal: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Until a key or a signal ends it; whether that was a signal.
fn show(arguments: &TopArguments) -> std::io::Result<bool> {
    let signals = Signals::install()?;
    let mut model = Model::new(arguments.tables.clone());
    // Also makes a panic restore the terminal before it says anything.
    let mut terminal = ratatui::try_init()?;
    let ended = (|| {
        loop {
            model.look();
            terminal.draw(|frame| screen::draw(frame, &mut model))?;
            let due = Instant::now() + arguments.interval;
            while Instant::now() < due {
                if signals.asked() {
                    return Ok(true);
                }
                if !event::poll(POLL.min(due.saturating_duration_since(Instant::now())))? {
                    continue;
                }
                match event::read()? {
                    Event::Key(key) if model.key(key) => return Ok(false),
                    Event::Key(_) | Event::Resize(..) => {
                        terminal.draw(|frame| screen::draw(frame, &mut model))?;
                    }
                    _ => {}
                }
            }
        }
    })();
    ratatui::restore();
    ended
}
