//! Locks beside a region: who owns a slot, who is attached, who may replace the file.
//!
//! Contract: the kernel drops a lock when the last process that holds its open file description is
//! gone, whatever the pid namespace; so a free slot lock proves that the owner is gone. Locks of one
//! region do not exclude each other: two threads that lock a slot through the same region both succeed,
//! so callers serialise them.
//!
//! A fork child shares the parent's description and with it the locks: they stay held until both
//! are gone, which delays the proof and never fakes one. An unlock in the child would drop the
//! parent's lock, so a child can only close.
//!
//! | backend | slot locks | attach and replacement locks |
//! |---|---|---|
//! | `ofd` | a byte of `<path>.lock` for each slot | two more bytes of it |
//! | `flock` (`--cfg bumpless_portable`) | none: always [`LockState::Unknown`] | `<path>.attached`, `<path>.lock` |

#[cfg(bumpless_portable)]
mod flock;
#[cfg(not(bumpless_portable))]
mod ofd;

use std::path::Path;

use crate::fork_guard::ForkGuard;
use crate::region::RegionError;

#[cfg(bumpless_portable)]
pub(crate) use flock::LockFiles;
#[cfg(not(bumpless_portable))]
pub(crate) use ofd::LockFiles;

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockState {
    /// Nobody holds the lock: whoever held it is gone, or has given it back.
    Free,
    /// Some process holds it, perhaps this one.
    Held,
    /// Slots have no locks here: the portable tier.
    Unknown,
}

/// The slot locks of one attached region. Each call costs one system call: about 0.3 us with up to
/// 64 locks in the file and 7 us more per 1,000, because the kernel keeps them in a list.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bumpless_substrate::locks::LockState;
/// use bumpless_substrate::region::{Access, Format, Region};
/// let format = Format {
///     kind: *b"DEMO",
///     version: 1,
///     record_size: 64,
///     max_capacity: 64,
///     region_len: |capacity| 64 + 64 * u64::from(capacity),
///     revived: |_| (),
/// };
/// let folder = tempfile::tempdir()?;
/// let (region, _) = Region::create(&folder.path().join("demo"), &format, 4, Access::Private, |_| ())?;
/// let locks = region.locks().ok_or("an observer has no locks")?;
/// assert_ne!(locks.probe(3)?, LockState::Held);
/// assert!(locks.try_lock(3)?);
/// assert_ne!(locks.probe(3)?, LockState::Free);
/// locks.unlock(3)?;
/// assert_ne!(locks.probe(3)?, LockState::Held);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SlotLocks {
    files: LockFiles,
    creation_id: u64,
    capacity: u32,
    opened_by: u32,
    /// Not the pid: a fork child in a pid namespace of its own may have its parent's.
    guard: ForkGuard,
}

/// Our own pid, which the kernel answers and a fork cannot make stale.
pub(crate) fn our_pid() -> u32 {
    rustix::process::getpid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

impl SlotLocks {
    /// Whether slots have locks; not in the portable tier.
    pub const EXCLUDE: bool = LockFiles::SLOTS_EXCLUDE;

    pub(crate) fn new(files: LockFiles, creation_id: u64, capacity: u32) -> Self {
        Self {
            files,
            creation_id,
            capacity,
            opened_by: our_pid(),
            guard: ForkGuard::new(),
        }
    }

    /// The lock file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.files.path
    }

    fn has(&self, slot: u32) -> Result<(), RegionError> {
        if slot < self.capacity {
            return Ok(());
        }
        let (path, capacity) = (self.files.path.clone(), self.capacity);
        Err(RegionError::NoSuchSlot {
            path,
            slot,
            capacity,
        })
    }

    fn not_forked(&self) -> Result<(), RegionError> {
        if !self.guard.is_forked() {
            return Ok(());
        }
        Err(RegionError::Forked {
            path: self.files.path.clone(),
            opened_by: self.opened_by,
            us: our_pid(),
        })
    }

    /// Takes a slot's lock if nobody else holds it; does not wait. True when this region holds it
    /// afterwards, also if it held it before; always true where slots have no locks.
    ///
    /// # Errors
    /// [`RegionError::NoSuchSlot`], [`RegionError::Forked`], [`RegionError::System`].
    pub fn try_lock(&self, slot: u32) -> Result<bool, RegionError> {
        self.not_forked()?;
        self.has(slot)?;
        self.files.try_lock_slot(self.creation_id, slot)
    }

    /// Gives a slot's lock back; nothing happens if this region does not hold it.
    ///
    /// # Errors
    /// [`RegionError::NoSuchSlot`]; [`RegionError::Forked`] in a fork child, whose unlock would
    /// drop its parent's lock; [`RegionError::System`].
    pub fn unlock(&self, slot: u32) -> Result<(), RegionError> {
        self.not_forked()?;
        self.has(slot)?;
        self.files.unlock_slot(self.creation_id, slot)
    }

    /// Says whether any process, this one included, holds a slot's lock. Right also in a fork
    /// child, and for locks that this very region holds.
    ///
    /// # Errors
    /// [`RegionError::NoSuchSlot`], [`RegionError::System`].
    pub fn probe(&self, slot: u32) -> Result<LockState, RegionError> {
        self.has(slot)?;
        self.files.probe_slot(self.creation_id, slot)
    }
}

impl Drop for SlotLocks {
    /// Unlocks rather than only closing, so that a fork child which still has the description does
    /// not keep the locks of a region that is properly closed.
    fn drop(&mut self) {
        if !self.guard.is_forked() {
            // Nothing to be done about an error here: the descriptions are closed right after.
            let _ = self.files.detach(self.creation_id);
        }
    }
}
