//! Verdicts: what a scan found a slot to be, in words that give the value and its limit.
//!
//! ```text
//!   LIVE ─ proven gone ──────────────────────────▶ Died      (also after Silent, same generation)
//!   LIVE ─ lag > grace, not proven gone ─────────▶ Silent
//!   RELEASED with units in flight ───────────────▶ Released
//!   CLAIMING ─ lock free ────────────────────────▶ Died
//!   CLAIMING ─ lag > grace ──────────────────────▶ InTransition
//!   unknown state ───────────────────────────────▶ Quarantined
//! ```

use core::fmt;

/// What a scan found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The owner is gone, for certain.
    Died,
    /// The owner missed more beats than its grace; nothing proves that it is gone.
    Silent {
        /// Epochs since its last beat.
        lag_epochs: u64,
        /// How many it may miss.
        grace_epochs: u64,
    },
    /// The owner gave the slot back with units in flight.
    Released,
    /// Somebody has been claiming the slot for longer than its grace, and is not proven gone.
    InTransition {
        /// Its process id.
        pid: u32,
    },
    /// The claim word is in a state that this version does not know; the slot is left alone.
    Quarantined,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Died => f.write_str("died"),
            Self::Silent {
                lag_epochs,
                grace_epochs,
            } => {
                write!(f, "silent: lag {lag_epochs} epochs > grace {grace_epochs}")
            }
            Self::Released => f.write_str("released with units in flight"),
            Self::InTransition { pid } => write!(f, "in transition by pid {pid}"),
            Self::Quarantined => f.write_str("quarantined: unknown state"),
        }
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_silent_verdict_gives_value_and_limit() {
        let verdict = Verdict::Silent {
            lag_epochs: 7,
            grace_epochs: 3,
        };
        assert_eq!(verdict.to_string(), "silent: lag 7 epochs > grace 3");
    }
}
