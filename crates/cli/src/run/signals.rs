//! The signals that are passed on to the command, and the stop of this process with it.
//!
//! ```text
//!   blocked ── sent ──▶ passed on ──▶ the next
//!                         └── TSTP ──▶ let through: stopped, unless CONT was sent meanwhile ── CONT ──▶ passed on
//! ```
//! Contract: of TSTP and CONT the one that was sent last holds, for the command and for us, see `stop_signal`.
//! All threads have the signals blocked; the job takes that back, see [`unblock`], so the command starts with
//! the mask that we were started with.

use std::io::Result;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{
    SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};

use super::error::RunError;
use super::runner::News;
use crate::stop_signal::StopSignal;

/// The signals that are passed on.
pub fn passed_on() -> Vec<i32> {
    let mut signals = vec![
        SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT,
    ];
    // Under nohup the command is to go on when the terminal is gone; where nothing is to stop, we would not
    // stop with it.
    signals.extend(
        [SIGHUP, SIGTSTP]
            .iter()
            .filter(|signal| !is_ignored(**signal)),
    );
    signals
}

/// Whether we were started so.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

fn set_of(signals: &[i32]) -> Result<SigSet> {
    let known = signals.iter().map(|signal| Signal::try_from(*signal));
    Ok(known.collect::<nix::Result<SigSet>>()?)
}

/// Lets these through again.
///
/// # Errors
/// What the system said.
pub fn unblock(signals: &[i32]) -> Result<()> {
    Ok(set_of(signals)?.thread_unblock()?)
}

/// Passes them on to `sender`, in a thread of its own, and blocks them in this thread and in all that it starts:
/// to be called when there are no others. Returns those that were not blocked before.
///
/// # Errors
/// [`RunError::File`].
pub fn pass_signals_on(sender: &Sender<News>) -> std::result::Result<Vec<i32>, RunError> {
    let (signals, blocked) = Signals::block().map_err(RunError::file("block", "signals"))?;
    let sender = sender.clone();
    thread::spawn(move || signals.pass_on(&sender));
    Ok(blocked)
}

/// The signals, blocked.
struct Signals {
    /// None where it is ignored.
    stop: Option<StopSignal>,
    others: SignalFd,
}

impl Signals {
    fn block() -> Result<(Self, Vec<i32>)> {
        let all = set_of(&passed_on())?;
        let before = SigSet::thread_get_mask()?;
        let stops = all.contains(Signal::SIGTSTP);
        let mut others = all;
        others.remove(Signal::SIGTSTP);
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = Self {
            stop: stops.then(StopSignal::block).transpose()?,
            others: SignalFd::with_flags(&others, flags)?,
        };
        others.thread_block()?;
        let blocked = all.iter().filter(|signal| !before.contains(*signal));
        Ok((signals, blocked.map(|signal| signal as i32).collect()))
    }

    /// Until nobody listens: then the process is about to end.
    fn pass_on(&self, sender: &Sender<News>) {
        loop {
            let mut ends = vec![PollFd::new(&self.others, PollFlags::IN)];
            let stop = self.stop.iter();
            ends.extend(stop.map(|stop| PollFd::new(stop, PollFlags::IN)));
            // That it was interrupted is seen by what came.
            let _ = poll(&mut ends, None);
            // First these: a CONT among them was sent before a TSTP that is pending still.
            while let Ok(Some(came)) = self.others.read_signal() {
                if sender.send(News::Signal(came.ssi_signo as i32)).is_err() {
                    return;
                }
            }
            if let Some(stop) = self.stop.as_ref().filter(|stop| stop.is_pending()) {
                let (done, is_done) = channel();
                if sender.send(News::Stop(done)).is_err() {
                    return;
                }
                // Told by its end.
                let _ = is_done.recv();
                // Like its command, as a shell expects. Refused, it would be asked for again at once.
                if stop.let_through().is_err() {
                    return;
                }
            }
        }
    }
}
