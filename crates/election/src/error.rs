//! The crate's one error: what was tried, where, the value found and the limit.

use std::path::PathBuf;

#[cfg(not(bumpless_loom))]
use bumpless_heartbeat::HeartbeatError;
#[cfg(not(bumpless_loom))]
use bumpless_substrate::region::RegionError;

/// Why an election's operation did nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElectionError {
    /// The file could not be created, mapped or locked, or is no election's.
    #[cfg(not(bumpless_loom))]
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The registration is not in force: fenced, given back, of another table; or the table was replaced.
    #[cfg(not(bumpless_loom))]
    #[error(transparent)]
    Table(#[from] HeartbeatError),
    /// A name is part of a file's name.
    #[error("election `{name}`: 1 to {limit} of the letters a-z, A-Z, 0-9, - and _")]
    Name {
        /// The name given.
        name: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The election was replaced, with its table or by hand: open it again.
    #[error("{path}: this election is over: another one has taken its place")]
    Superseded {
        /// The election's path.
        path: PathBuf,
    },
    /// The slot's candidacy is a later owner's, or garbage.
    #[error("slot {slot}: generation {generation} cannot stand: the word says {found:#x}")]
    Outlived {
        /// The handle's slot.
        slot: u32,
        /// The handle's generation.
        generation: u32,
        /// The word found.
        found: u32,
    },
    /// The kernel's mark of a death lies in the slot of a caller: its process is just being killed, and
    /// this thread is not dead yet; or the table is damaged.
    #[error("slot {slot}: generation {generation} is marked dead, and calls")]
    MarkedDead {
        /// The handle's slot.
        slot: u32,
        /// The handle's generation.
        generation: u32,
    },
    /// Others changed the seat each time.
    #[error("claim in {path}: others won {tries} compare-and-swaps in a row")]
    Contended {
        /// The election's path.
        path: PathBuf,
        /// How many were tried.
        tries: u32,
    },
    /// A leader of the past.
    #[error("term {term} is over: {highest} has been here")]
    TermOver {
        /// The term that came.
        term: u64,
        /// The highest term that had passed before.
        highest: u64,
    },
}
