//! The barrier's file: where it lies, what is in it, who joins.
//!
//! ```text
//!      0  preamble of the region (substrate)       64 B
//!     64  gate: epoch and changes, bell            64 B
//!    128  a word for each slot of the table         8 B each, rounded up to 64 B
//! ```
//! Contract: the file's name holds the table's creation id, so a barrier belongs to one table: who has a
//! table that took another's place opens another file, and no file is ever replaced under somebody
//! who waits in it. What is left of a table that was reset is a file that nobody opens any more.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bumpless_heartbeat::{CAPACITY_MAX, Handle, HeartbeatTable};
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region};
use bumpless_substrate::view::View;

use crate::error::BarrierError;
use crate::floor::{Floor, FloorError};
use crate::gate::Gate;
use crate::member::Member;
use crate::word::ArrivalWord;

/// The most bytes of a barrier's name.
pub const NAME_LEN_MAX: usize = 64;

pub(crate) const WORDS: u64 = PREAMBLE_LEN + size_of::<Gate>() as u64;

/// The file format of a barrier.
pub(crate) const FORMAT: Format = Format {
    kind: *b"EBAR",
    version: 1,
    record_size: 8,
    max_capacity: CAPACITY_MAX as u32,
    region_len: |capacity| {
        let words = u64::from(capacity) * size_of::<ArrivalWord>() as u64;
        WORDS + words.next_multiple_of(64)
    },
    revived: forget_all,
};

/// No process of another boot is a member: its slot says LIVE until a watchdog has looked at it.
fn forget_all(region: &Region) {
    // The copy was checked to be a whole barrier before it is revived.
    let words = region.slice::<ArrivalWord>(WORDS, region.capacity());
    words.into_iter().flatten().for_each(ArrivalWord::clear);
}

/// A named barrier of a table, in shared memory. `Sync`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl");
/// use bumpless_barrier::EpochBarrier;
/// use bumpless_heartbeat::HeartbeatTable;
///
/// let table = HeartbeatTable::create(&path, 64)?; // in every process, as the lines below
/// let me = table.register(std::process::id())?;
/// let barrier = EpochBarrier::create(&table, "phase")?;
/// let mut member = barrier.join(me)?;
/// for _phase in 0..3 {
///     // ... this process's part of the phase, then:
///     let released = member.wait()?; // until every live member has come here
///     assert!(released.absent.is_empty());
/// }
/// assert_eq!(barrier.epoch(), 4); // 0 had no members: who joins during an epoch takes part from the next
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct EpochBarrier<'t> {
    pub(crate) table: &'t HeartbeatTable,
    pub(crate) path: PathBuf,
    gate: View<Gate>,
    words: View<ArrivalWord>,
}

impl<'t> EpochBarrier<'t> {
    /// Creates the barrier of this name beside the table's file, with mode 0600, or attaches to the one
    /// that is there. `TABLE.NAME.ID.barrier`, ID being the table's creation id in 16 hexadecimal digits.
    ///
    /// # Errors
    /// [`BarrierError::Name`], [`BarrierError::Region`].
    pub fn create(table: &'t HeartbeatTable, name: &str) -> Result<Self, BarrierError> {
        let path = path_of(table, name)?;
        // A table has at most 2^16 slots.
        let capacity = table.capacity() as u32;
        let (region, _born) = Region::create(&path, &FORMAT, capacity, Access::Private, |_| ())?;
        let region = Arc::new(region);
        Ok(Self {
            table,
            path: region.path().to_owned(),
            gate: View::new(&region, PREAMBLE_LEN, 1)?,
            words: View::new(&region, WORDS, capacity)?,
        })
    }

    /// Deletes the barrier's files, for a clean end. Who waits in it waits on among those who have it
    /// open. Nothing being there is no error.
    ///
    /// # Errors
    /// [`BarrierError::Name`], [`BarrierError::Region`].
    pub fn remove(table: &HeartbeatTable, name: &str) -> Result<(), BarrierError> {
        Ok(Region::remove(&path_of(table, name)?)?)
    }

    /// Makes a registered process a member, which is waited for from the next epoch on until it leaves,
    /// dies, is fenced or gives its slot back. Cost: two locked instructions.
    ///
    /// # Errors
    /// [`BarrierError::Table`] when the handle is not the caller's any more;
    /// [`BarrierError::AlreadyMember`]; [`BarrierError::NotMember`] when the slot's word is damaged.
    pub fn join(&self, handle: Handle) -> Result<Member<'_>, BarrierError> {
        self.table.beat(handle)?;
        let slot = handle.slot() as u32;
        let joined = self.floor().join(slot, handle.generation());
        let first = joined.map_err(|error| self.named(handle, error))?;
        Ok(Member::new(self, handle, first))
    }

    /// The epoch that has not been released: a number that starts at 0, rises by one with each release,
    /// and starts again after 2^35.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.floor().gate().look().epoch().number()
    }

    /// The barrier's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn floor(&self) -> Floor<'_> {
        Floor::new(&self.gate[0], &self.words)
    }

    pub(crate) fn named(&self, handle: Handle, error: FloorError) -> BarrierError {
        let (path, slot) = (self.path.clone(), handle.slot() as u32);
        let generation = handle.generation();
        let found = match error {
            FloorError::AlreadyMember => {
                return BarrierError::AlreadyMember {
                    path,
                    slot,
                    generation,
                };
            }
            FloorError::NotMember { found } => format!("{found:?}"),
            FloorError::NoSuchSlot => "no word".to_owned(),
            FloorError::Contended => "a word that changes without end".to_owned(),
        };
        BarrierError::NotMember {
            path,
            slot,
            generation,
            found,
        }
    }
}

pub(crate) fn path_of(table: &HeartbeatTable, name: &str) -> Result<PathBuf, BarrierError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > NAME_LEN_MAX || !name.bytes().all(is_plain) {
        return Err(BarrierError::Name {
            found: name.to_owned(),
            limit: NAME_LEN_MAX,
        });
    }
    let mut path = OsString::from(table.path());
    path.push(format!(".{name}.{:016x}.barrier", table.creation_id()));
    Ok(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_long_as_documented() {
        assert_eq!((FORMAT.region_len)(1), 192);
        assert_eq!((FORMAT.region_len)(64), 640);
        assert_eq!((FORMAT.region_len)(CAPACITY_MAX as u32), 128 + 524_288);
    }
}
