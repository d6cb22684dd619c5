//! The diagnostic tag: where a node stands, for anybody to read, at any time, without a lock.
//!
//! Contract: a reader gets a whole tag as the node wrote it in one cycle, also while the next one is being
//! written, and also when the node died in the middle of that. It never waits, maps the file for reading
//! only, and cannot be noticed. How old the tag is and whether its writer lives it tells apart from what
//! the tag says.
//!
//! ```text
//!      0  preamble of the region (substrate)            64 B
//!     64  head: number of tags written                  64 B     a lane, as in the mailbox
//!    128  heads of four buffers                         16 B each
//!    192  four buffers: the tag, see `record.rs`       312 B each
//! ```
//! A write takes the buffer of the oldest of the four last tags, so a reader is overtaken only if three
//! cycles pass while it copies 312 bytes.

mod record;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bumpless_substrate::identity::{self, IdentityError, ProcessIdentity};
use bumpless_substrate::proof::{Proof, prove_by_pid};
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region, RegionError};
use bumpless_substrate::sync::AtomicU64;
use bumpless_substrate::view::View;
use thiserror::Error;

use crate::link::lane::{BufferHead, Found, Lane, LaneHead};
use crate::node::Status;

use record::RECORD_LEN;

const BUFFERS: u32 = 4;
const RECORD_WORDS: u32 = (RECORD_LEN / size_of::<u64>()) as u32;
const HEADS: u64 = PREAMBLE_LEN + size_of::<LaneHead>() as u64;
const WORDS: u64 = HEADS + BUFFERS as u64 * size_of::<BufferHead>() as u64;
const REGION_LEN: u64 = WORDS + BUFFERS as u64 * RECORD_LEN as u64;

const _: () = assert!(RECORD_LEN.is_multiple_of(size_of::<u64>()));
const _: () = assert!(REGION_LEN == 1_440);

const FORMAT: Format = Format {
    kind: *b"SBTG",
    version: 1,
    record_size: RECORD_LEN as u32,
    max_capacity: 1,
    region_len: |_| REGION_LEN,
    revived: forget,
};

/// Of an earlier start of the machine: its times are another clock's.
fn forget(region: &Region) {
    // The copy was checked to be a whole tag before it is revived.
    if let Ok(head) = region.at::<LaneHead>(PREAMBLE_LEN) {
        head.forget();
    }
}

/// How late the cycles of a node began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lateness {
    /// 99 of 100 cycles were not later; unit: ns.
    pub p99_ns: u64,
    /// The latest one; unit: ns.
    pub max_ns: u64,
}

/// What a reader sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagSnapshot {
    /// Where the node stood.
    pub status: Status,
    /// `None`: the node did not say.
    pub lateness: Option<Lateness>,
    /// The node's process.
    pub writer: ProcessIdentity,
    /// When it was written, by the clock of [`bumpless_substrate::clock`]; unit: ns.
    pub written_at_ns: u64,
}

impl TagSnapshot {
    /// How long ago it was written; unit: ns. A node that lives writes once in each cycle.
    #[must_use]
    pub fn age_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.written_at_ns)
    }

    /// Whether the writer lives. Cost: some microseconds. `Unknown`, which is not dead, from another pid
    /// namespace: then its age tells.
    #[must_use]
    pub fn writer_proof(&self) -> Proof {
        prove_by_pid(&self.writer)
    }
}

/// Why a tag cannot be written or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TagError {
    /// The file could not be created or mapped, or is no tag.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The writer's own identity cannot be told.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Another writer has it.
    #[error("{path}: written by another process")]
    Held {
        /// The tag.
        path: PathBuf,
    },
}

#[derive(Debug)]
struct Memory {
    head: View<LaneHead>,
    buffers: View<BufferHead>,
    words: View<AtomicU64>,
}

impl Memory {
    fn new(region: Region) -> Result<Self, RegionError> {
        let region = Arc::new(region);
        Ok(Self {
            head: View::new(&region, PREAMBLE_LEN, 1)?,
            buffers: View::new(&region, HEADS, BUFFERS)?,
            words: View::new(&region, WORDS, BUFFERS * RECORD_WORDS)?,
        })
    }

    fn lane(&self) -> Lane<'_> {
        Lane::new(&self.head[0], &self.buffers, &self.words)
    }
}

/// The node's side.
///
/// ```
/// # use bumpless_standby::node::{Counts, Redundancy, State, Status};
/// # use bumpless_standby::{Epoch, NodeId};
/// use bumpless_standby::tag::{TagReader, TagWriter};
/// use bumpless_substrate::{clock::monotonic_ns, proof::Proof, region::Access};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("node-0.tag");
/// # let status = Status {
/// #     node: NodeId(0),
/// #     incarnation: 7,
/// #     state: State::Solo,
/// #     epoch: Epoch::new(3, NodeId(0)),
/// #     cycle: Some(100),
/// #     redundancy: Redundancy::Lost,
/// #     partner: None,
/// #     checkpoint_len: [0; 3],
/// #     paths: Vec::new(),
/// #     active_alarms: Default::default(),
/// #     latched_alarms: Default::default(),
/// #     service_level: 200,
/// #     redundancy_support: 3,
/// #     counts: Counts::default(),
/// # };
/// let mut writer = TagWriter::create(&path, Access::ReadForOthers)?;
/// writer.write(&status, None, monotonic_ns()); // in each cycle, with `Node::status`
///
/// let reader = TagReader::open(&path)?; // in any process, of any user who may read the file
/// let tag = reader.read().ok_or("nothing was written yet")?;
/// assert_eq!(tag.status, status);
/// assert_ne!(tag.writer_proof(), Proof::Gone);
/// assert!(tag.age_ns(monotonic_ns()) < 10_000_000_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TagWriter {
    memory: Memory,
    identity: ProcessIdentity,
}

impl TagWriter {
    /// Creates the tag, or goes on with the one that is there; `access` says who may read it. What an
    /// earlier writer wrote stays until the first [`write`](Self::write).
    ///
    /// # Errors
    /// [`TagError::Held`] while another process, or another writer, has it: after a kill, until the kernel
    /// has taken that down; [`TagError::Region`], [`TagError::Identity`].
    pub fn create(path: impl AsRef<Path>, access: Access) -> Result<Self, TagError> {
        let (region, _born) = Region::create(path.as_ref(), &FORMAT, 1, access, |_| ())?;
        if let Some(locks) = region.locks()
            && !locks.try_lock(0)?
        {
            return Err(TagError::Held {
                path: region.path().to_owned(),
            });
        }
        Ok(Self {
            memory: Memory::new(region)?,
            identity: identity::current()?,
        })
    }

    /// Writes the tag, in each cycle. `now_ns` is the clock of [`bumpless_substrate::clock`].
    ///
    /// Cost: 60 ns, measured; no system call.
    pub fn write(&mut self, status: &Status, lateness: Option<Lateness>, now_ns: u64) {
        let record = record::encode(status, lateness, &self.identity, now_ns);
        // A buffer is as long as a record.
        self.memory.lane().write(&record);
    }
}

/// Anybody's side.
#[derive(Debug)]
pub struct TagReader(Memory);

impl TagReader {
    /// Maps an existing tag for reading only.
    ///
    /// # Errors
    /// [`TagError::Region`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TagError> {
        let region = Region::observe(path.as_ref(), &FORMAT)?;
        Ok(Self(Memory::new(region)?))
    }

    /// The newest tag. `None`: nothing was written yet, or it is no tag that a node of this version wrote.
    #[must_use]
    pub fn read(&self) -> Option<TagSnapshot> {
        let mut bytes = Vec::with_capacity(RECORD_LEN);
        match self.0.lane().newest(&mut bytes) {
            Found::Frame => record::decode(&bytes),
            Found::Nothing | Found::Damaged => None,
        }
    }
}
