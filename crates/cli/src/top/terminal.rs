//! The terminal, lent: for the whole of it, and as a shell expects that of a job.
//!
//! ```text
//!              ┌─ SIGTSTP, ctrl-Z: put right, stopped ─┐
//!   put right ─▶ ours ◀── SIGCONT: made ours anew ─────┘
//!      ▲          │
//!      └── end ───┘ a key, a signal, an error, a panic
//! ```
//! Contract: whoever has the terminal next finds it as it was; only SIGKILL and SIGSTOP leave it as it is. After
//! SIGCONT all is drawn anew, also when it was SIGSTOP that stopped us: who had the terminal meanwhile, as a
//! shell, has changed its modes and its text. Who is told to stop and right after to go on goes on, see
//! `stop_signal`. Reading never waits: the terminal is so set while it is ours.

use std::io::{Result, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::DefaultTerminal;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, disable_raw_mode, enable_raw_mode};
use rustix::process::{Signal, getpgrp, kill_process_group};
use rustix::termios::{OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGCONT, SIGWINCH};

use crate::stop_signal::StopSignal;

/// SIGTSTP, which waits for us; SIGCONT and SIGWINCH, as flags that their handlers set.
#[derive(Debug)]
pub struct Pauses {
    /// To be awaited together with the keys.
    pub stop: StopSignal,
    goes_on: Arc<AtomicBool>,
    is_resized: Arc<AtomicBool>,
}

impl Pauses {
    /// Blocks the one, and installs the handlers of the others.
    ///
    /// # Errors
    /// What the system said.
    pub fn install() -> Result<Self> {
        let pauses = Self {
            stop: StopSignal::block()?,
            goes_on: Arc::default(),
            is_resized: Arc::default(),
        };
        signal_hook::flag::register(SIGCONT, Arc::clone(&pauses.goes_on))?;
        signal_hook::flag::register(SIGWINCH, Arc::clone(&pauses.is_resized))?;
        Ok(pauses)
    }

    /// Stops, if that was asked for, until SIGCONT; whether the terminal was made ours anew, and is empty.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn take(&self, terminal: &mut DefaultTerminal) -> Result<bool> {
        let is_asked = self.stop.is_pending();
        // Relaxed, here and below: flags on their own.
        if !is_asked && !self.goes_on.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if is_asked {
            terminal.show_cursor()?;
            ratatui::try_restore()?;
            self.stop.let_through()?;
        }
        // Before it is made ours: told to go on once more meanwhile, we do so once more.
        self.goes_on.store(false, Ordering::Relaxed);
        // Raw once, the library takes it for raw until it is told otherwise. In the background the kernel
        // stops us here until we are in front.
        disable_raw_mode()?;
        enter()?;
        execute!(stdout(), EnterAlternateScreen)?;
        let size = terminal.size()?;
        terminal.resize(size.into())?;
        Ok(true)
    }

    /// Whether the terminal has changed its size since the last look.
    pub fn is_resized(&self) -> bool {
        self.is_resized.swap(false, Ordering::Relaxed)
    }
}

/// Does what the key would do, of which a raw terminal makes no signal: asks all of the job.
pub fn ask_to_pause() {
    // We are in it, so it is there.
    let _ = kill_process_group(getpgrp(), Signal::TSTP);
}

/// Makes it raw, and so that who reads gets what is there, also nothing.
fn enter() -> Result<()> {
    enable_raw_mode()?;
    let stdin = stdin();
    let mut modes = tcgetattr(&stdin)?;
    modes.special_codes[SpecialCodeIndex::VMIN] = 0;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    tcsetattr(&stdin, OptionalActions::Now, &modes)?;
    Ok(())
}

/// Lends the terminal, and leaves it as it was, also when `used` panics: then before the panic says why.
pub fn in_terminal<T>(used: impl FnOnce(&mut DefaultTerminal) -> Result<T>) -> Result<T> {
    let lent = ratatui::try_init().and_then(|terminal| enter().map(|()| terminal));
    let ended = lent.and_then(|mut terminal| used(&mut terminal));
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
            let used = in_terminal(|_| -> Result<()> { panic!("what went wrong") });
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
        let test = "top::terminal::tests::a_panic_leaves_the_terminal_as_it_was_and_is_read_there";
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
