//! Frames that only holders of a key can make: HMAC-SHA-256 with a key that was given to all three
//! processes beforehand.
//!
//! Contract: a frame is handed on only if its tag is right, which is checked in constant time and before
//! anything of the frame is looked at. Frames can be read by everybody, and be held back, delayed and
//! sent again by whoever is on the way.
//!
//! ```text
//!   frame ... │ sender u8 │ tag 16 B: the first half of HMAC-SHA-256(key, frame ... sender)
//! ```
//! `sender` is the node's id, or [`ACTUATOR`]; an end drops what it sent itself. So a frame that is
//! reflected never counts as the partner's. (The core drops frames with its own node id too.) To whom a
//! frame goes is not in the tag: a frame of one kind means nothing to the receiver of another, and a
//! reply names whom it answers.
//!
//! # Frames that are sent again
//! The tag is right; the core refuses them:
//! - *heartbeats and parts of a state*: (epoch, seq) must be higher than the last one's. A repetition is
//!   neither life nor state. One of an earlier life of the partner is too low as well: cycle numbers go
//!   on over a restart.
//! - *outputs*: the actuator accepts (epoch, seq) once, rising. After a restart with its memory it
//!   accepts at its level only what names its present life, which no earlier frame does; without its
//!   memory it takes confirmations that name its present life, and nothing else.
//! - *qualification and a start with the partner's consent* need the receiver's own incarnation in the
//!   partner's echo: random, and in no frame from before the receiver's start.
//!
//! It is not enough against these, all of which cost service and let nobody drive who must not:
//! - A node that has just started believes the first heartbeat that it hears, and whoever plays a
//!   recording to it from there on makes it believe that its partner lives. It waits.
//! - A recorded reply of the node's present life makes a silent actuator seem to answer a standby; a
//!   primary's lease needs an answer to its latest outputs. One from before the actuator's restart has
//!   the node name an earlier life of it, and outputs are refused until the next true reply.
//! - A recorded wish for an epoch from an earlier life of a node makes an actuator that is the authority
//!   grant one, and write its store.
//! - A frame that was held back and arrives first is not sent again: it is late. What it can do, a slow
//!   network can.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hmac::{Hmac, Mac};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use sha2::Sha256;

use super::{FRAME_LEN_MAX, Link, LinkCounts, LinkError, Server};
use crate::epoch::NodeId;

/// The actuator as a sender: no node has this id.
pub const ACTUATOR: NodeId = NodeId(u8::MAX);

const TAG_LEN: usize = 16;
/// What authentication adds to a frame; unit: bytes.
pub const TRAILER_LEN: usize = 1 + TAG_LEN;

/// The secret of a pair and its actuator. `Debug` does not show it.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

impl Key {
    /// A shorter one is refused; unit: bytes.
    pub const LEN_MIN: usize = 32;
    /// A longer one is refused: it is some other file; unit: bytes.
    pub const LEN_MAX: usize = 4096;

    /// A key of these bytes, which are random.
    ///
    /// # Errors
    /// [`LinkError::KeyLen`].
    pub fn new(bytes: &[u8]) -> Result<Self, LinkError> {
        let wrong_len = LinkError::KeyLen {
            found: bytes.len(),
            shortest: Self::LEN_MIN,
            longest: Self::LEN_MAX,
        };
        if !(Self::LEN_MIN..=Self::LEN_MAX).contains(&bytes.len()) {
            return Err(wrong_len);
        }
        let keyed = Hmac::new_from_slice(bytes).map_err(|_| wrong_len)?;
        Ok(Self(keyed))
    }

    /// A key of all bytes of a file that nobody but its owner may read, as
    /// `(umask 077; head -c 32 /dev/urandom > pair.key)` makes it.
    ///
    /// # Errors
    /// [`LinkError::KeyFile`], [`LinkError::KeyMode`], [`LinkError::KeyLen`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, LinkError> {
        let path = path.as_ref();
        let unreadable = |why: &dyn std::fmt::Display| LinkError::KeyFile {
            path: path.to_owned(),
            why: why.to_string(),
        };
        // NONBLOCK: a pipe of that name must be an error, not a wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|error| unreadable(&error))?;
        let stat = rustix::fs::fstat(&file).map_err(|error| unreadable(&error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(unreadable(&"it is no file"));
        }
        let found = stat.st_mode & 0o777;
        if found & 0o077 != 0 {
            return Err(LinkError::KeyMode {
                path: path.to_owned(),
                found,
                wanted: 0o600,
            });
        }
        let mut bytes = Vec::new();
        File::from(file)
            .take(Self::LEN_MAX as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| unreadable(&error))?;
        Self::new(&bytes)
    }

    fn tag(&self, covered: &[u8]) -> [u8; TAG_LEN] {
        let whole = self.0.clone().chain_update(covered).finalize().into_bytes();
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&whole[..TAG_LEN]);
        tag
    }

    fn fits(&self, covered: &[u8], tag: &[u8; TAG_LEN]) -> bool {
        self.0
            .clone()
            .chain_update(covered)
            .verify_truncated_left(tag)
            .is_ok()
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A link or a server whose frames are authenticated. Both ends have the same key.
///
/// ```
/// use bumpless_standby::NodeId;
/// use bumpless_standby::link::{Authenticated, Key, Link, UdpLink};
///
/// let (a, b) = ("127.4.7.5:4711".parse()?, "127.4.7.6:4711".parse()?);
/// let key = Key::new(&[7; 32])?; // from a file: `Key::from_file`
/// let mut node = Authenticated::new(UdpLink::connect(&[(a, b)])?, key.clone(), NodeId(0));
/// let mut partner = Authenticated::new(UdpLink::connect(&[(b, a)])?, key, NodeId(1));
/// node.send(b"frame");
/// let mut frame = Vec::new();
/// assert_eq!(partner.receive(&mut frame), Some(0));
/// assert_eq!(frame, b"frame");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Authenticated<L> {
    inner: L,
    key: Key,
    own: NodeId,
    /// The frame that is being sent, with its trailer.
    sealed: Vec<u8>,
    unauthentic: u64,
}

impl<L> Authenticated<L> {
    /// Wraps an end; `own` is the node's id, or [`ACTUATOR`].
    ///
    /// Cost of each frame: one pass of SHA-256 over it.
    pub fn new(inner: L, key: Key, own: NodeId) -> Self {
        Self {
            inner,
            key,
            own,
            sealed: Vec::new(),
            unauthentic: 0,
        }
    }

    /// Frame and trailer; nothing for a frame that is too long with it, which no way takes.
    fn seal(&mut self, frame: &[u8]) {
        self.sealed.clear();
        if frame.is_empty() || frame.len() > FRAME_LEN_MAX - TRAILER_LEN {
            return;
        }
        self.sealed.extend_from_slice(frame);
        self.sealed.push(self.own.0);
        let tag = self.key.tag(&self.sealed);
        self.sealed.extend_from_slice(&tag);
    }

    /// Takes the trailer off a frame that is somebody else's and authentic; empties any other.
    fn open(&mut self, frame: &mut Vec<u8>) {
        if frame.is_empty() {
            return;
        }
        if let Some((covered, tag)) = frame.split_last_chunk::<TAG_LEN>()
            && let Some((sender, inner)) = covered.split_last()
            && *sender != self.own.0
            && self.key.fits(covered, tag)
        {
            frame.truncate(inner.len());
            return;
        }
        frame.clear();
        self.unauthentic += 1;
    }

    fn judged(&self, mut counts: LinkCounts) -> LinkCounts {
        counts.received -= self.unauthentic;
        counts.unauthentic += self.unauthentic;
        counts
    }
}

impl<L: Link> Link for Authenticated<L> {
    fn send(&mut self, frame: &[u8]) {
        self.seal(frame);
        self.inner.send(&self.sealed);
    }

    fn receive(&mut self, frame: &mut Vec<u8>) -> Option<u8> {
        let path = self.inner.receive(frame)?;
        self.open(frame);
        Some(path)
    }

    fn counts(&self) -> LinkCounts {
        self.judged(self.inner.counts())
    }
}

impl<S: Server> Server for Authenticated<S> {
    type Peer = S::Peer;

    fn receive(&mut self, frame: &mut Vec<u8>) -> Option<S::Peer> {
        let peer = self.inner.receive(frame)?;
        self.open(frame);
        Some(peer)
    }

    fn send(&mut self, to: S::Peer, frame: &[u8]) {
        self.seal(frame);
        self.inner.send(to, &self.sealed);
    }

    fn counts(&self) -> LinkCounts {
        self.judged(self.inner.counts())
    }
}
