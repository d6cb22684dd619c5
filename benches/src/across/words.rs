//! Bare words in shared memory, a line each, for what a table is compared with.
//!
//! ```text
//!   64   turn u64     this process: rises by 1 with each turn; END: the child is to end
//!   128  seen_ns u64  the child: when it saw what it waits for, ns of the monotonic clock
//!   192  word u32     both in turn, as a futex
//! ```

use std::path::Path;

use anyhow::Result;
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region};
use bumpless_substrate::sync::{AtomicU32, AtomicU64};

/// As a turn: the child is to end.
pub const END: u64 = u64::MAX;

const FORMAT: Format = Format {
    kind: *b"BWRD",
    version: 1,
    record_size: 64,
    max_capacity: 3,
    region_len: |lines| PREAMBLE_LEN + 64 * lines as u64,
    revived: |_| (),
};

/// The words.
#[derive(Debug)]
pub struct Words(Region);

impl Words {
    /// New ones beside this table.
    pub fn create(table: &Path) -> Result<Self> {
        let path = super::words_of(table);
        Ok(Self(
            Region::create(&path, &FORMAT, 3, Access::Private, |_| ())?.0,
        ))
    }

    /// Those that are beside this table.
    pub fn attach(table: &Path) -> Result<Self> {
        Ok(Self(Region::attach(&super::words_of(table), &FORMAT)?))
    }

    /// Whose turn it is.
    pub fn turn(&self) -> Result<&AtomicU64> {
        Ok(self.0.at(PREAMBLE_LEN)?)
    }

    /// When the child saw it.
    pub fn seen_ns(&self) -> Result<&AtomicU64> {
        Ok(self.0.at(PREAMBLE_LEN + 64)?)
    }

    /// A futex.
    pub fn word(&self) -> Result<&AtomicU32> {
        Ok(self.0.at(PREAMBLE_LEN + 128)?)
    }
}
