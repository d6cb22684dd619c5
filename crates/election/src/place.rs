//! Where an election lies: a region beside its table, with a line for the leader and a word for each slot.
//!
//! Contract: the numbers here are the file format; `docs/layout.md` says the same in prose. The file
//! belongs to one table, by its creation id: an election of a table that was replaced is closed, and its
//! successor goes on from its term, so that a term never comes again under one name.
//!
//! ```text
//!      0  preamble of the region (substrate)       64 B
//!     64  leader line                              64 B
//!    128  candidacies, 4 B for each slot, rounded up to 64 B
//! ```

use std::path::PathBuf;
use std::sync::Arc;

use bumpless_heartbeat::{CAPACITY_MAX, HeartbeatError, HeartbeatTable};
use bumpless_substrate::region::{Access, Format, PathState, Region};

use crate::error::ElectionError;
use crate::seat::LeaderLine;

/// Where [`LeaderLine`] lies.
pub(crate) const LEADER: u64 = 64;

/// Where the candidacies lie.
pub(crate) const CANDIDACIES: u64 = 128;

/// The longest name of an election, in bytes.
pub(crate) const NAME_MAX: usize = 64;

/// The file format of an election.
pub(crate) const FORMAT: Format = Format {
    kind: *b"ELEC",
    version: 1,
    record_size: 4,
    max_capacity: CAPACITY_MAX as u32,
    region_len: |capacity| CANDIDACIES + (u64::from(capacity) * 4).next_multiple_of(64),
    // All whom the words name are dead, and the table says so.
    revived: |_| (),
};

/// The path of a table's election of this name.
///
/// # Errors
/// [`ElectionError::Name`].
pub(crate) fn path_of(table: &HeartbeatTable, name: &str) -> Result<PathBuf, ElectionError> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if !(1..=NAME_MAX).contains(&name.len()) || !name.bytes().all(is_letter) {
        return Err(ElectionError::Name {
            name: name.chars().take(NAME_MAX).collect(),
            limit: NAME_MAX,
        });
    }
    let mut path = table.path().as_os_str().to_owned();
    path.push(format!(".{name}.election"));
    Ok(path.into())
}

/// Makes the region, or attaches to the one that is there.
///
/// # Errors
/// [`ElectionError::Name`], [`ElectionError::Region`], [`ElectionError::Table`].
pub(crate) fn open(table: &HeartbeatTable, name: &str) -> Result<Arc<Region>, ElectionError> {
    let path = path_of(table, name)?;
    // Who still has a table open that was replaced must not replace its successor's election.
    let table_path = || table.path().to_owned();
    match table.check_path()? {
        PathState::Current => {}
        PathState::Superseded => Err(HeartbeatError::Superseded { path: table_path() })?,
        PathState::Orphaned => Err(HeartbeatError::Orphaned { path: table_path() })?,
    }
    let table_id = table.creation_id();
    let begin = |region: &Region, term| {
        // The format's length was checked against both.
        if let Ok(line) = region.at::<LeaderLine>(LEADER) {
            line.begin(table_id, term);
        }
    };
    let region = Region::create_current(
        &path,
        &FORMAT,
        table.capacity() as u32,
        Access::Private,
        |draft| begin(draft, 0),
        |region| {
            region
                .at::<LeaderLine>(LEADER)
                .is_ok_and(|line| line.is_of(table_id))
        },
        |old, draft| {
            if let Ok(line) = old.at::<LeaderLine>(LEADER) {
                begin(draft, line.close().term());
            }
        },
    )?;
    Ok(Arc::new(region))
}
