//! Layer 2 of bumpless: which of several processes leads.
//!
//! A [`SharedLeaderElection`] is a small region beside a heartbeat table. The registered processes that
//! stand in it are its *candidates*; the one with the lowest (pid, slot) leads. Each hand-over is the
//! next *term*, which never comes again: it travels with the leader's work as a [`LeaderToken`], and a
//! [`Fence`] refuses the work of leaders of the past.
//!
//! Who lives is asked of the table alone: registered, not fenced, not marked dead by the kernel. So a
//! leader that is killed is replaced with no watchdog running, and one that hangs as soon as some
//! watchdog fences it. Nothing here ticks, beats by itself, or reads a clock to decide anything.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("workers.tbl");
//! use bumpless_election::{Fence, Leadership, SharedLeaderElection};
//! use bumpless_heartbeat::HeartbeatTable;
//! use std::time::Duration;
//!
//! let table = HeartbeatTable::create(&path, 64)?; // in every process
//! let me = table.register(std::process::id())?;
//! let election = SharedLeaderElection::open(&table, "compaction")?;
//! let token = loop {
//!     match election.try_claim_leadership(me)? {
//!         Leadership::Mine(token) => break token,
//!         Leadership::Theirs(leader) => {
//!             table.beat(me)?;
//!             election.wait_for_change(Some(leader), Duration::from_millis(10))?;
//!         }
//!     }
//! };
//! let mut fence = Fence::remembering(0); // kept by what the leader changes
//! let mut work = ["one", "two"].into_iter();
//! while election.beat_as_leader(me)? == Some(token) { // else somebody else leads
//!     let Some(_unit) = work.next() else { break };
//!     fence.admit(&token)?; // by whom the work is for: from now on it refuses every earlier term
//! }
//! election.step_down(me)?;
//! # Ok(()) }
//! ```
//!
//! Whoever first finds the seat empty *appoints* the lowest live candidate, itself or another. If each
//! could only seat itself, either a busy lowest candidate would leave everybody without a leader, or the
//! lowest would not lead; and those who defer would have to guess for how long.
#![forbid(unsafe_code)]

pub mod candidacy;
pub mod claiming;
#[cfg(not(bumpless_loom))]
mod election;
mod error;
#[cfg(not(bumpless_loom))]
mod observe;
#[cfg(not(bumpless_loom))]
mod place;
pub mod seat;
mod token;
#[cfg(not(bumpless_loom))]
mod waiting;

#[cfg(not(bumpless_loom))]
pub use election::{Leadership, Result, SharedLeaderElection};
pub use error::ElectionError;
#[cfg(not(bumpless_loom))]
pub use observe::Standings;
pub use token::{Fence, Leader, LeaderToken};
