//! The signals that are passed on to the command, and the stop of this process with it.
//!
//! ```text
//!   TSTP ──▶ passed on ──▶ a moment ─┬─ CONT meanwhile ──▶ passed on
//!                                    └─ none ──▶ stopped ── CONT ──▶ passed on
//! ```
//! Contract: who is told to stop and right after to go on goes on. Not without exception: threads that handle the
//! two may be seen in the other order on a machine with far too much to do; another SIGCONT ends that.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use signal_hook::consts::{
    SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH,
};
use signal_hook::iterator::Signals;

use super::error::RunError;
use super::runner::News;
use crate::signals::SETTLES;

/// The signals that are passed on.
pub fn passed_on() -> Vec<i32> {
    let mut signals = vec![
        SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP,
    ];
    // Under nohup the command is to go on when the terminal is gone.
    if !is_ignored(SIGHUP) {
        signals.push(SIGHUP);
    }
    signals
}

fn is_ignored(signal: i32) -> bool {
    is_in("SigIgn:", signal)
}

/// Whether a set of signals of this process, as the kernel tells them, has this one.
fn is_in(set: &str, signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix(set));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Passes them on to `sender`, in a thread of its own.
///
/// # Errors
/// [`RunError::File`].
pub fn pass_signals_on(sender: &Sender<News>) -> Result<(), RunError> {
    let handlers = Signals::new(passed_on());
    let mut signals = handlers.map_err(RunError::file("handle", "signals"))?;
    let sender = sender.clone();
    thread::spawn(move || {
        let mut came = Vec::new();
        loop {
            if came.is_empty() {
                came.extend(signals.wait());
            }
            // Which of two that came together was first is not known. A command that is stopped by mistake
            // may never be told to go on; one that goes on can be told to stop again.
            came.sort_by_key(|signal| *signal == SIGCONT);
            let stops = came.contains(&SIGTSTP) && !came.contains(&SIGCONT);
            for signal in came.drain(..) {
                let (done, is_done) = channel();
                let is_stop = signal == SIGTSTP;
                let news = if is_stop {
                    News::Stop(done)
                } else {
                    News::Signal(signal)
                };
                if sender.send(news).is_err() {
                    // The process is about to end.
                    return;
                }
                if is_stop {
                    // Told by its end.
                    let _ = is_done.recv();
                }
            }
            if stops {
                thread::sleep(SETTLES);
            }
            // Who was told to go on since must not be stopped, which would take that back: nobody would tell
            // it again. First who is told, then who was: it may become that meanwhile.
            let goes_on = stops && is_in("ShdPnd:", SIGCONT);
            came.extend(signals.pending());
            if stops && !goes_on && !came.contains(&SIGCONT) {
                // Stopped like its command, as a shell expects; goes on at SIGCONT.
                let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
            }
        }
    });
    Ok(())
}
