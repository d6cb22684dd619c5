//! Byte locks in `<path>.lock`: who owns a slot, who is attached, who may replace the file.
//!
//! ```text
//! byte 0                             replacement lock, exclusive, time-bounded
//! (creation id & 0x3fff_ffff) << 32  base of one region's locks
//!                    base + 2        attached: shared, held by everyone who may write the region
//!                    base + 16 + n   slot n: exclusive, held by its owner
//! ```
//!
//! Contract: the kernel drops a lock when the last process that holds its open file description is
//! gone, whatever the pid namespace; so a free slot lock proves that the owner is gone. The locks
//! belong to open file *descriptions* (OFD), of which a region has two: one holds, one probes,
//! because a probe through the holding one always says free. Locks of one region do not exclude
//! each other: two threads that lock a slot through the same region both succeed, so callers
//! serialise them. The creation id in the offset keeps a replaced region's slots apart from those
//! of its successor, as both use the same lock file.
//!
//! A fork child shares the parent's description and with it the locks: they stay held until both
//! are gone, which delays the proof and never fakes one. An unlock in the child would drop the
//! parent's lock, so a child can only close.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::region::RegionError;

/// Offset of the attach byte from a region's base.
const ATTACHED: u64 = 2;
/// Offset of slot 0 from a region's base.
const FIRST_SLOT: u64 = 16;
/// Bytes per region.
const SPAN: u64 = 1 << 32;

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockState {
    /// Nobody holds the lock: whoever held it is gone, or has given it back.
    Free,
    /// Some process holds it, perhaps this one.
    Held,
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
/// assert_eq!(locks.probe(3)?, LockState::Free);
/// assert!(locks.try_lock(3)?);
/// assert_eq!(locks.probe(3)?, LockState::Held);
/// locks.unlock(3)?;
/// assert_eq!(locks.probe(3)?, LockState::Free);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SlotLocks {
    files: LockFiles,
    base: u64,
    capacity: u32,
    opened_by: u32,
}

/// The two open file descriptions of a lock file.
#[derive(Debug)]
pub(crate) struct LockFiles {
    pub(crate) path: PathBuf,
    pub(crate) hold: File,
    pub(crate) probe: File,
}

/// Our own pid, which the kernel answers and a fork cannot make stale.
pub(crate) fn our_pid() -> u32 {
    rustix::process::getpid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

/// First byte of a region's locks.
pub(crate) fn base(creation_id: u64) -> u64 {
    (creation_id & 0x3fff_ffff) << 32
}

/// The byte which says that somebody is attached.
pub(crate) fn attach_byte(creation_id: u64) -> u64 {
    base(creation_id) + ATTACHED
}

impl SlotLocks {
    pub(crate) fn new(files: LockFiles, creation_id: u64, capacity: u32) -> Self {
        Self {
            files,
            base: base(creation_id),
            capacity,
            opened_by: our_pid(),
        }
    }

    /// The lock file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.files.path
    }

    fn byte(&self, slot: u32) -> Result<u64, RegionError> {
        if slot >= self.capacity {
            let (path, capacity) = (self.files.path.clone(), self.capacity);
            return Err(RegionError::NoSuchSlot {
                path,
                slot,
                capacity,
            });
        }
        Ok(self.base + FIRST_SLOT + u64::from(slot))
    }

    fn not_forked(&self) -> Result<(), RegionError> {
        let us = our_pid();
        if us == self.opened_by {
            return Ok(());
        }
        Err(RegionError::Forked {
            path: self.files.path.clone(),
            opened_by: self.opened_by,
            us,
        })
    }

    /// Takes a slot's lock if nobody else holds it; does not wait. True when this region holds it
    /// afterwards, also if it held it before.
    ///
    /// # Errors
    /// [`RegionError::NoSuchSlot`], [`RegionError::Forked`], [`RegionError::System`].
    pub fn try_lock(&self, slot: u32) -> Result<bool, RegionError> {
        self.not_forked()?;
        self.files.try_lock(self.byte(slot)?, Kind::Exclusive)
    }

    /// Gives a slot's lock back; nothing happens if this region does not hold it.
    ///
    /// # Errors
    /// [`RegionError::NoSuchSlot`]; [`RegionError::Forked`] in a fork child, whose unlock would
    /// drop its parent's lock; [`RegionError::System`].
    pub fn unlock(&self, slot: u32) -> Result<(), RegionError> {
        self.not_forked()?;
        self.files.unlock(self.byte(slot)?, 1)
    }

    /// Says whether any process, this one included, holds a slot's lock. Right also in a fork
    /// child, and for locks that this very region holds.
    ///
    /// # Errors
    /// [`RegionError::NoSuchSlot`], [`RegionError::System`].
    pub fn probe(&self, slot: u32) -> Result<LockState, RegionError> {
        self.files.probe(self.byte(slot)?)
    }
}

impl Drop for SlotLocks {
    /// Unlocks rather than only closing, so that a fork child which still has the description does
    /// not keep the locks of a region that is properly closed.
    fn drop(&mut self) {
        if our_pid() == self.opened_by {
            // Nothing to be done about an error here: the descriptions are closed right after.
            let _ = self.files.unlock(self.base, SPAN);
        }
    }
}

/// How a byte is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Shared,
    Exclusive,
}

impl LockFiles {
    /// Locks a byte through the holding description if no other description forbids it.
    pub(crate) fn try_lock(&self, byte: u64, kind: Kind) -> Result<bool, RegionError> {
        let kind = match kind {
            Kind::Shared => libc::F_RDLCK,
            Kind::Exclusive => libc::F_WRLCK,
        };
        match fcntl_lock(self.hold.as_fd(), libc::F_OFD_SETLK, kind, byte, 1) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
            Err(e) => Err(RegionError::system(&self.path, "lock a byte")(e)),
        }
    }

    /// Unlocks a range of the holding description.
    pub(crate) fn unlock(&self, byte: u64, len: u64) -> Result<(), RegionError> {
        fcntl_lock(
            self.hold.as_fd(),
            libc::F_OFD_SETLK,
            libc::F_UNLCK,
            byte,
            len,
        )
        .map(|_| ())
        .map_err(RegionError::system(&self.path, "unlock bytes"))
    }

    /// Asks through the probing description, which holds nothing.
    pub(crate) fn probe(&self, byte: u64) -> Result<LockState, RegionError> {
        let found = fcntl_lock(
            self.probe.as_fd(),
            libc::F_OFD_GETLK,
            libc::F_WRLCK,
            byte,
            1,
        )
        .map_err(RegionError::system(&self.path, "probe a lock"))?;
        Ok(if found == libc::F_UNLCK {
            LockState::Free
        } else {
            LockState::Held
        })
    }
}

/// One `fcntl` with an open-file-description lock command; returns the lock type found.
fn fcntl_lock(
    file: BorrowedFd<'_>,
    command: libc::c_int,
    kind: libc::c_int,
    start: u64,
    len: u64,
) -> Result<libc::c_int, Errno> {
    let mut lock = libc::flock {
        // Both constants are below 4.
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: i64::try_from(start).map_err(|_| Errno::OVERFLOW)?,
        l_len: i64::try_from(len).map_err(|_| Errno::OVERFLOW)?,
        // Must be 0 for OFD locks.
        l_pid: 0,
    };
    // SAFETY: the descriptor is open as long as it is borrowed, and the three commands used here
    // read and write one `flock`, which lives on this stack frame.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if done == -1 {
        return Err(crate::region::errno(&std::io::Error::last_os_error()));
    }
    Ok(libc::c_int::from(lock.l_type))
}
