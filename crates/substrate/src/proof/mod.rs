//! Proof that a process is gone, or that it lives; never a guess.
//!
//! Contract: what cannot be decided is `Unknown`, which is not dead.

use core::fmt;

#[cfg(not(bumpless_loom))]
mod by_pid;
#[cfg(not(any(bumpless_loom, bumpless_portable)))]
mod pidfd;

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

/// Where a proof comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProofSource {
    /// The kernel's mark in the slot, confirmed by the byte lock.
    Certificate,
    /// The slot's byte lock alone.
    ByteLock,
    /// The process that has the owner's pid: a pidfd and its start time.
    Pid,
    /// None of them knows.
    None,
}

impl fmt::Display for ProofSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Certificate => "death certificate",
            Self::ByteLock => "byte lock",
            Self::Pid => "pid and start time",
            Self::None => "no proof",
        })
    }
}

/// What is known of an owner, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Whether it is gone.
    pub proof: Proof,
    /// Who says so.
    pub source: ProofSource,
}

impl Evidence {
    /// Nobody knows.
    pub const UNKNOWN: Self = Self {
        proof: Proof::Unknown,
        source: ProofSource::None,
    };
}
