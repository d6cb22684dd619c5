//! Layer 2 of bumpless: who is late, who is dead, and who gets their work.
//!
//! A [`FailoverWatchdog`] scans a [`HeartbeatTable`](bumpless_heartbeat::HeartbeatTable), fences the
//! owners that are dead or silent, and reports their unfinished units until they are acknowledged.
#![forbid(unsafe_code)]

#[cfg(not(bumpless_loom))]
mod acknowledge;
#[cfg(not(bumpless_loom))]
mod glance;
pub mod judge;
pub mod lease;
#[cfg(not(bumpless_loom))]
pub mod look;
#[cfg(not(bumpless_loom))]
mod recycled;
#[cfg(not(bumpless_loom))]
mod report;
pub mod roster;
#[cfg(not(bumpless_loom))]
mod run;
#[cfg(not(bumpless_loom))]
mod tenure;
#[cfg(not(bumpless_loom))]
mod told;
mod verdict;
#[cfg(not(bumpless_loom))]
mod watchdog;

#[cfg(not(bumpless_loom))]
pub use acknowledge::{AcknowledgeError, Acknowledged};
pub use judge::OnSilence;
#[cfg(not(bumpless_loom))]
pub use report::{ReclaimReport, SlotRef, Standing, UnitName};
#[cfg(not(bumpless_loom))]
pub use run::Stop;
pub use verdict::Verdict;
#[cfg(not(bumpless_loom))]
pub use watchdog::{DEFAULT_GRACE_EPOCHS, FailoverWatchdog};

/// The README's example is a test.
#[cfg(all(doctest, not(bumpless_loom)))]
#[doc = include_str!("../../../README.md")]
struct Readme;
