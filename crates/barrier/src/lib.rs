//! Layer 2 of bumpless: processes that go through the same point together, whoever of them dies.
//!
//! An [`EpochBarrier`] lies in a region of its own beside a
//! [`HeartbeatTable`](bumpless_heartbeat::HeartbeatTable). A process that is registered in the table
//! [joins](EpochBarrier::join) and then [waits](Member::wait) once in each epoch; the epoch is released
//! when every live member has arrived in it, or, for [`Member::wait_quorum`], when so many have.
//!
//! Arrivals are a set of (slot, generation, epoch), never a count: one that was taken back, one of an
//! earlier epoch and one of a dead owner are not in it. Who is live, the table says: registered in that
//! generation, not fenced, and not marked by the kernel.
//!
//! # Membership is explicit
//! "Every worker in the table" would be less to call, but nothing in a slot says in which epoch of which
//! barrier its owner began: a process that registers while others wait would be waited for at once or
//! never, depending on who looks when. A join says it in one word.
//!
//! A member that joins during an epoch is waited for from the next. So processes that start by
//! themselves go through alone until the others have joined; to start together, make the first wait a
//! [`Member::wait_quorum`] of as many as are expected.
//!
//! # Choices
//! - The file's name holds the table's creation id. Replacing the file of a table that was reset would be
//!   tidier, but whoever still has the old table could then replace the new one's barrier under those
//!   who wait in it.
//! - A release is decided on one word that holds the epoch and a count of changes. An arrival that is
//!   taken back and a release that counted it would else both succeed.
//! - A waiter beats for its owner. It is not the one who hangs, and without that a member that hangs
//!   would have all who wait for it fenced first.
//! - A waiter does not spin. An epoch of two processes takes about as long as a bare futex ping-pong
//!   between them (`bumpless bench barrier`), and with more processes than cores, spinning keeps away who
//!   is waited for.
#![forbid(unsafe_code)]

#[cfg(not(bumpless_loom))]
mod barrier;
#[cfg(not(bumpless_loom))]
mod error;
pub mod floor;
pub mod gate;
#[cfg(not(bumpless_loom))]
mod member;
#[cfg(not(bumpless_loom))]
mod observe;
pub mod presence;
pub mod word;

#[cfg(not(bumpless_loom))]
pub use barrier::{EpochBarrier, NAME_LEN_MAX};
#[cfg(not(bumpless_loom))]
pub use error::BarrierError;
pub use floor::Absent;
#[cfg(not(bumpless_loom))]
pub use member::{Member, Released};
#[cfg(not(bumpless_loom))]
pub use observe::Assembly;
pub use presence::Presence;

/// The README's example is a test.
#[cfg(all(doctest, not(bumpless_loom)))]
#[doc = include_str!("../README.md")]
struct Readme;
