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
//! shell, has changed its modes and its text.

use std::io::{Error, stdin, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, disable_raw_mode, enable_raw_mode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpgrp, getpid, getsid, kill_process_group};
use signal_hook::consts::{SIGCONT, SIGTSTP};
use signal_hook::low_level::emulate_default_handler;

use crate::signals::SETTLES;

/// SIGTSTP and SIGCONT, as flags that their handlers set.
#[derive(Debug)]
pub struct Pauses {
    asked: Arc<AtomicBool>,
    goes_on: Arc<AtomicBool>,
}

impl Pauses {
    /// Installs the handlers.
    ///
    /// # Errors
    /// What the system said.
    pub fn install() -> std::io::Result<Self> {
        let pauses = Self {
            asked: Arc::default(),
            goes_on: Arc::default(),
        };
        signal_hook::flag::register(SIGTSTP, Arc::clone(&pauses.asked))?;
        signal_hook::flag::register(SIGCONT, Arc::clone(&pauses.goes_on))?;
        Ok(pauses)
    }

    /// Stops, if that was asked for, until SIGCONT; whether the terminal was made ours anew, and is empty.
    ///
    /// # Errors
    /// The terminal cannot be used.
    pub fn take(&self, terminal: &mut DefaultTerminal) -> std::io::Result<bool> {
        // Relaxed, here and below: flags on their own.
        let asked = self.asked.swap(false, Ordering::Relaxed);
        // Asked for both since the last look, we go on: who sent SIGCONT sends no second one.
        if asked && !self.goes_on.load(Ordering::Relaxed) {
            terminal.show_cursor()?;
            ratatui::try_restore()?;
            std::thread::sleep(SETTLES);
            // To stop now would take back that we go on.
            if !self.goes_on.load(Ordering::Relaxed) {
                emulate_default_handler(SIGTSTP)?;
            }
        } else if !self.goes_on.load(Ordering::Relaxed) {
            return Ok(false);
        }
        self.goes_on.store(false, Ordering::Relaxed);
        // Raw once, the library takes it for raw until it is told otherwise. In the background the kernel
        // stops us here until we are in front.
        disable_raw_mode()?;
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        let size = terminal.size()?;
        terminal.resize(size.into())?;
        Ok(true)
    }
}

/// Whether it is the key that stops a job: a raw terminal makes no signal of it.
pub fn is_pause_key(key: KeyEvent) -> bool {
    key.code == KeyCode::Char('z') && key.modifiers.contains(KeyModifiers::CONTROL)
}

/// Does what the key would do: asks all of the job, unless there is no shell that could make it go on.
pub fn ask_to_pause() {
    let leads_its_session = getsid(None).is_ok_and(|session| session == getpid());
    if !leads_its_session {
        // We are in it, so it is there.
        let _ = kill_process_group(getpgrp(), Signal::TSTP);
    }
}

/// Until there is some, or the time is over. Asked for input of a terminal that is gone, the library would
/// read its end for ever.
pub fn wait_for_input(limit: Duration) -> std::io::Result<()> {
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
pub fn in_terminal<T>(
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
