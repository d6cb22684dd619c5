//! SIGINT and SIGTERM: the first ends the measurement after the present run, the second at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::{register, register_conditional_shutdown};

use super::error::BenchError;

/// The exit code after a signal.
pub const INTERRUPTED: u8 = 130;

/// Set by the handlers.
#[derive(Debug)]
pub struct Signals(Arc<AtomicBool>);

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// [`BenchError::File`] names the signal.
    pub fn install() -> Result<Self, BenchError> {
        let asked = Arc::new(AtomicBool::new(false));
        for (signal, name) in [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM")] {
            let refused = || BenchError::file("install a handler for", name);
            // In this order: the first signal finds the flag unset, and sets it.
            register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&asked))
                .map_err(refused())?;
            register(signal, Arc::clone(&asked)).map_err(refused())?;
        }
        Ok(Self(asked))
    }

    /// # Errors
    /// [`BenchError::Interrupted`] once a signal has come.
    pub fn check(&self) -> Result<(), BenchError> {
        // Relaxed: a flag on its own.
        if self.0.load(Ordering::Relaxed) {
            return Err(BenchError::Interrupted);
        }
        Ok(())
    }
}
