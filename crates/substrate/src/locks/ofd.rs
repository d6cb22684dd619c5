//! Byte locks of open file descriptions (`F_OFD_SETLK`, Linux 3.15): every lock is a byte of
//! `<path>.lock`.
//!
//! ```text
//! byte 0                             replacement lock, exclusive, time-bounded
//! (creation id & 0x3fff_ffff) << 32  base of one region's locks
//!                    base + 2        attached: shared, held by everyone who may write the region
//!                    base + 16 + n   slot n: exclusive, held by its owner
//! ```
//! The locks belong to open file *descriptions*, of which a region has two: one holds, one probes,
//! because a probe through the holding one always says free. The creation id in the offset keeps a
//! replaced region's slots apart from those of its successor, as both use the same lock file.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

use rustix::io::Errno;

use super::LockState;
use crate::region::{Access, FileId, RegionError, Site, Usage};

const REPLACEMENT_BYTE: u64 = 0;
/// Offset of the attach byte from a region's base.
const ATTACHED: u64 = 2;
/// Offset of slot 0 from a region's base.
const FIRST_SLOT: u64 = 16;
/// Bytes per region.
const SPAN: u64 = 1 << 32;

/// The two open file descriptions of a lock file.
#[derive(Debug)]
pub(crate) struct LockFiles {
    pub(crate) path: PathBuf,
    pub(crate) hold: File,
    probe: File,
}

/// How a byte is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shared,
    Exclusive,
}

/// First byte of a region's locks.
fn base(creation_id: u64) -> u64 {
    (creation_id & 0x3fff_ffff) << 32
}

fn attach_byte(creation_id: u64) -> u64 {
    base(creation_id) + ATTACHED
}

fn slot_byte(creation_id: u64, slot: u32) -> u64 {
    base(creation_id) + FIRST_SLOT + u64::from(slot)
}

impl LockFiles {
    /// The first bytes of a region with these locks: processes with different ones never meet in it.
    pub(crate) const MAGIC: [u8; 8] = *b"BUMPLESS";

    /// What the files are called, behind the region's name, in the order in which they are deleted.
    pub(crate) const SUFFIXES: &[&str] = &[".lock"];

    /// Slots have locks.
    pub(crate) const SLOTS_EXCLUDE: bool = true;

    /// Completes an opened lock file, by a second description of the very file that `hold` has open.
    pub(crate) fn complete(
        site: &Site,
        path: PathBuf,
        hold: File,
        _create: Option<Access>,
    ) -> Result<Self, RegionError> {
        let (name, _) = site.sibling(".lock");
        let (probe, probe_stat) = match site.open(&name, true) {
            Err(RegionError::NotFound { .. }) => {
                return Err(RegionError::Changing { path, waited_ms: 0 });
            }
            other => other?,
        };
        let hold_stat =
            rustix::fs::fstat(&hold).map_err(RegionError::system(&path, "look at the file"))?;
        if FileId::of(&hold_stat) != FileId::of(&probe_stat) {
            return Err(RegionError::Changing { path, waited_ms: 0 });
        }
        Ok(Self { path, hold, probe })
    }

    /// Whether the locks of two regions at one path fall on each other.
    pub(crate) fn collide(one: u64, other: u64) -> bool {
        base(one) == base(other)
    }

    /// Takes the replacement lock unless somebody has it.
    pub(crate) fn try_replace(&self) -> Result<bool, RegionError> {
        self.try_lock(REPLACEMENT_BYTE, Kind::Exclusive)
    }

    /// Gives the replacement lock back.
    pub(crate) fn end_replacing(&self) -> Result<(), RegionError> {
        self.unlock(REPLACEMENT_BYTE, 1)
    }

    /// Says that we are attached; false while somebody replaces the region.
    pub(crate) fn attach(&self, creation_id: u64) -> Result<bool, RegionError> {
        self.try_lock(attach_byte(creation_id), Kind::Shared)
    }

    /// Makes sure that nobody is attached, and keeps it so; false when somebody is. For the holder of
    /// the replacement lock alone.
    pub(crate) fn exclude(&self, creation_id: u64) -> Result<bool, RegionError> {
        self.try_lock(attach_byte(creation_id), Kind::Exclusive)
    }

    /// Gives all locks of a region back.
    pub(crate) fn detach(&self, creation_id: u64) -> Result<(), RegionError> {
        self.unlock(base(creation_id), SPAN)
    }

    /// Takes a slot's lock unless another description has it.
    pub(crate) fn try_lock_slot(&self, creation_id: u64, slot: u32) -> Result<bool, RegionError> {
        self.try_lock(slot_byte(creation_id, slot), Kind::Exclusive)
    }

    /// Gives a slot's lock back.
    pub(crate) fn unlock_slot(&self, creation_id: u64, slot: u32) -> Result<(), RegionError> {
        self.unlock(slot_byte(creation_id, slot), 1)
    }

    /// Asks through the probing description, which holds nothing.
    pub(crate) fn probe_slot(&self, creation_id: u64, slot: u32) -> Result<LockState, RegionError> {
        let found = fcntl_lock(
            self.probe.as_fd(),
            libc::F_OFD_GETLK,
            libc::F_WRLCK,
            slot_byte(creation_id, slot),
            1,
        )
        .map_err(RegionError::system(&self.path, "probe a lock"))?;
        Ok(if found == libc::F_UNLCK {
            LockState::Free
        } else {
            LockState::Held
        })
    }

    /// Whether any process has a lock of a region; asked through a description that is opened to read.
    pub(crate) fn usage(site: &Site, creation_id: u64) -> Usage {
        let Ok((file, _)) = site.open(&site.sibling(".lock").0, false) else {
            return Usage::Unknown;
        };
        let kind = libc::F_WRLCK;
        match fcntl_lock(
            file.as_fd(),
            libc::F_OFD_GETLK,
            kind,
            base(creation_id),
            SPAN,
        ) {
            Ok(libc::F_UNLCK) => Usage::Unused,
            Ok(_) => Usage::InUse,
            Err(_) => Usage::Unknown,
        }
    }

    /// Locks a byte through the holding description if no other description forbids it.
    fn try_lock(&self, byte: u64, kind: Kind) -> Result<bool, RegionError> {
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
    fn unlock(&self, byte: u64, len: u64) -> Result<(), RegionError> {
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
