//! Ways between processes: frames go out and come in, and nothing waits.
//!
//! Contract: a frame arrives whole or not at all; it may be lost, repeated, late, or come from anybody
//! who can reach the way's end. No call blocks, and no call fails: what did not work is counted, and the
//! protocol lives by what arrives.
//!
//! One `receive` takes one frame at most, also one that it drops. So whoever bounds the calls of a cycle
//! bounds the cycle's work, whatever arrives; what is left waits for the next cycle.
//!
//! | way | between | who can put a frame in |
//! |---|---|---|
//! | [`UdpLink`] | two processes, over one or two paths | whoever can send from the other end's address and port |
//! | [`UdpServer`] | one process and whoever asks | everybody who reaches the port and knows the mark of a frame |
//! | [`MailboxLink`], [`MailboxServer`] | two processes of one machine | whoever may write the mailbox's file |
//!
//! Over each of them a frame can be [`Authenticated`].

pub mod auth;
mod error;
pub mod lane;
#[cfg(not(bumpless_loom))]
mod mailbox;
mod udp;

pub use auth::{Authenticated, Key};
pub use error::LinkError;
#[cfg(not(bumpless_loom))]
pub use mailbox::{End, MailboxLink, MailboxServer};
pub use udp::{UdpLink, UdpServer};

/// No way carries a longer frame; unit: bytes. A heartbeat with the longest part that a
/// [`Config`](crate::Config) allows is shorter.
pub const FRAME_LEN_MAX: usize = 61_440;

/// One end of a way between two processes.
pub trait Link {
    /// Sends one frame over every path; a path that cannot take it now loses it, and counts it. Never
    /// blocks.
    fn send(&mut self, frame: &[u8]);

    /// The next frame that arrived, into `frame` (cleared first), and over which path. `None`: no more
    /// now. `frame` stays empty if it was dropped: that is counted. Never blocks.
    fn receive(&mut self, frame: &mut Vec<u8>) -> Option<u8>;

    /// What happened since this end was made.
    fn counts(&self) -> LinkCounts;
}

/// The actuator's end: answers whoever asks.
pub trait Server {
    /// Whom an answer can be sent to.
    type Peer: Copy + Eq + std::fmt::Debug;

    /// The next frame that arrived, into `frame` (cleared first), and from whom. `None`: no more now.
    /// `frame` stays empty if it was dropped: that is counted. Never blocks.
    fn receive(&mut self, frame: &mut Vec<u8>) -> Option<Self::Peer>;

    /// Sends one frame. Never blocks: what cannot go out now is lost, and counted.
    fn send(&mut self, to: Self::Peer, frame: &[u8]);

    /// What happened since this end was made.
    fn counts(&self) -> LinkCounts;
}

/// What happened at one end. All of it rises only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LinkCounts {
    /// Frames that a path took; with two paths, each frame counts twice.
    pub sent: u64,
    /// Frames that a path did not take: it was full or down, or the frame empty or too long.
    pub unsent: u64,
    /// Frames that were handed to the caller.
    pub received: u64,
    /// Arrived without a byte, and were dropped.
    pub empty: u64,
    /// Arrived longer than [`FRAME_LEN_MAX`], and were dropped.
    pub oversized: u64,
    /// Arrived without the tag of the right key, or were this end's own come back, and were dropped.
    pub unauthentic: u64,
    /// Overwritten by the sender before this end took them, in a mailbox.
    pub overtaken: u64,
    /// Errors that the system reported, such as that nobody listens at the other end.
    pub errors: u64,
}

impl LinkCounts {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            unsent: self.unsent + other.unsent,
            received: self.received + other.received,
            empty: self.empty + other.empty,
            oversized: self.oversized + other.oversized,
            unauthentic: self.unauthentic + other.unauthentic,
            overtaken: self.overtaken.saturating_add(other.overtaken),
            errors: self.errors + other.errors,
        }
    }
}
