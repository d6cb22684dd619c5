//! Proof that a process is gone, or that it lives; never a guess.
//!
//! Contract: what cannot be decided is `Unknown`, which is not dead.

#[cfg(not(bumpless_loom))]
mod by_pid;

#[cfg(not(bumpless_loom))]
pub use by_pid::prove_by_pid;

/// Whether a process is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It was seen to live.
    Alive,
    /// It has ended, and never comes back.
    Gone,
    /// Neither can be proved from here.
    Unknown,
}
