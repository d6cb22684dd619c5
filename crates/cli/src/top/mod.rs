//! `bumpless top`: tables and tags, live.
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

use std::io::{Error, IsTerminal, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::pool::duration;
use crate::signals::{INTERRUPTED, Signals};
use model::Model;

/// How soon a signal ends it.
const POLL: Duration = Duration::from_millis(50);

/// Watch tables and standby tags live: verdicts, lags and what happens.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless top
  bumpless top --interval 100ms /dev/shm/bumpless-1000/pool-4711.table

Keys: q ends; s sorts by the next column, r the other way round; j, k and the arrows scroll; Tab shows the
next table or tag; a also shows slots of dead owners for which all is done. Each verdict is a word and a sign, so
colours are not needed; NO_COLOR switches them off. If a black box lies beside the table, its last events
are shown. Exit status: 0; 1 when this is no terminal that can be drawn on; 130 ended by a signal.")]
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
    let mut model = Model::new(arguments.paths.clone());
    in_terminal(|terminal| {
        loop {
            model.look();
            terminal.draw(|frame| screen::draw(frame, &mut model))?;
            let due = Instant::now() + arguments.interval;
            while Instant::now() < due {
                if signals.asked() {
                    return Ok(true);
                }
                wait_for_input(POLL.min(due.saturating_duration_since(Instant::now())))?;
                while event::poll(Duration::ZERO)? {
                    match event::read()? {
                        Event::Key(key) if model.key(key) => return Ok(false),
                        Event::Key(_) | Event::Resize(..) => {
                            terminal.draw(|frame| screen::draw(frame, &mut model))?;
                        }
                        _ => {}
                    }
                }
            }
        }
    })
}

/// Until there is some, or the time is over. Asked for input of a terminal that is gone, the library would
/// read its end for ever.
fn wait_for_input(limit: Duration) -> std::io::Result<()> {
    let stdin = stdin();
    let mut ends = [PollFd::new(&stdin, PollFlags::IN)];
    let limit = Timespec::try_from(limit).unwrap_or_default();
    // A signal ends the wait, too.
    if poll(&mut ends, Some(&limit)).is_ok()
        && ends[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR)
    {
        return Err(Error::other("it is gone"));
    }
    Ok(())
}

/// Lends the terminal, and leaves it as it was, also when `used` panics: then before the panic says why.
fn in_terminal<T>(
    used: impl FnOnce(&mut DefaultTerminal) -> std::io::Result<T>,
) -> std::io::Result<T> {
    let ended = ratatui::try_init().and_then(|mut terminal| used(&mut terminal));
    // Of one that is gone nothing can be put right.
    let _ = ratatui::try_restore();
    ended
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};
    use std::io::Read;
    use std::process::{Command, Stdio};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};

    use super::*;

    /// Set in the process that is to panic, which is this test again, in a terminal of its own.
    const PANICS: &str = "BUMPLESS_TEST_PANICS";

    #[test]
    fn a_panic_leaves_the_terminal_as_it_was_and_is_read_there() {
        if std::env::var_os(PANICS).is_some() {
            let used = in_terminal(|_| -> std::io::Result<()> { panic!("what went wrong") });
            unreachable!("{used:?}");
        }
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let name = name.into_string().unwrap();
        let open = || {
            OpenOptions::new()
                .read(true)
                .write(true)
                .open(&name)
                .unwrap()
        };
        let slave = open();
        let modes = || {
            let modes = tcgetattr(&slave).unwrap().local_modes;
            modes & (LocalModes::ICANON | LocalModes::ECHO)
        };
        let before = modes();
        let test = "top::tests::a_panic_leaves_the_terminal_as_it_was_and_is_read_there";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(PANICS, "1")
            .stdin(Stdio::from(open()))
            .stdout(Stdio::from(open()))
            .stderr(Stdio::from(open()))
            .spawn()
            .unwrap();
        assert!(!child.wait().unwrap().success());
        assert_eq!(modes(), before);
        drop(slave);
        let mut shown = Vec::new();
        // The end of a terminal is an error.
        let _ = File::from(master).read_to_end(&mut shown);
        let shown = String::from_utf8_lossy(&shown);
        let place = |text: &str| {
            shown
                .find(text)
                .unwrap_or_else(|| panic!("{text:?}: {shown:?}"))
        };
        let (entered, left) = (place("\u{1b}[?1049h"), place("\u{1b}[?1049l"));
        assert!(
            entered < left && left < place("what went wrong"),
            "{shown:?}"
        );
    }
}
