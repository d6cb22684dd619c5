//! SIGINT and SIGTERM: the first asks for a clean end, the second ends at once.
//!
//! At once means that the kernel ends the children (they die with their parent), and that the files of
//! the command stay.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// The exit code after a signal.
pub const INTERRUPTED: u8 = 130;

/// Set by the handlers.
#[derive(Debug, Clone)]
pub struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// What the system said.
    pub fn install() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag unset, and sets it.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                i32::from(INTERRUPTED),
                Arc::clone(&asked),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self(asked))
    }

    /// As [`Signals::install`], but only asks, however often, also for SIGHUP and SIGQUIT: for who has
    /// something to put right before the end, and comes to it soon.
    ///
    /// # Errors
    /// What the system said.
    pub fn install_to_ask() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self(asked))
    }

    /// One that no signal sets.
    #[cfg(test)]
    pub fn never() -> Self {
        Self(Arc::default())
    }

    /// Whether a signal has asked for the end.
    #[must_use]
    pub fn asked(&self) -> bool {
        // Relaxed: a flag on its own.
        self.0.load(Ordering::Relaxed)
    }
}
