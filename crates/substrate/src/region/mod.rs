//! A file that processes map together: born complete, checked before it is mapped, replaced only
//! under a lock, and noticed when it was.
//!
//! Contract: a path means no region or a finished one, whatever moment its creator died at. What a
//! region is (length, capacity, creation id) is copied when it is opened; nothing that a peer
//! writes later changes where this process reads. A region's file is never shrunk. References into
//! it are to all-atomic types ([`Shared`]) alone, at checked offsets.
//!
//! Trusted are: who may write the file's folder, and who may write the file as far as its length
//! goes (a peer that truncates it takes the memory away from everybody). Files are therefore made
//! for their owner alone (0600) unless asked otherwise, and files of strangers are refused.

mod attach;
mod create;
mod draft;
mod error;
mod folder;
mod inspect;
mod lockfile;
mod mapping;
mod place;
mod preamble;
mod site;

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use crate::layout::Shared;
use crate::locks::SlotLocks;

pub use self::error::RegionError;
pub(crate) use self::error::errno;
pub use self::folder::default_folder;
pub use self::inspect::{Inspection, Usage};
#[cfg(bumpless_portable)]
pub(crate) use self::lockfile::open_or_make;
pub(crate) use self::place::Place;
pub use self::preamble::PREAMBLE_LEN;
pub(crate) use self::site::{FileId, Site};

use self::mapping::Mapping;
use self::preamble::Facts;

/// What a region holds and how it is laid out: the same in every program that opens it.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Four letters that name what the region holds.
    pub kind: [u8; 4],
    /// Version of the layout; raised with every change of it.
    pub version: u32,
    /// Size of one record, in bytes; told in errors when it differs.
    pub record_size: u32,
    /// Largest number of records, at most 2^30.
    pub max_capacity: u32,
    /// Length of the file in bytes for a capacity within the limit, preamble included.
    pub region_len: fn(capacity: u32) -> u64,
    /// Called on the private copy of a stale file before anybody else can see it.
    pub revived: fn(&Region),
}

/// Who but the owner may do what with a new region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Nobody else anything: 0600.
    #[default]
    Private,
    /// The file's group may read and write: 0660. Each of its members is trusted.
    Group,
    /// Everybody may observe: 0644.
    ReadForOthers,
}

impl Access {
    /// Permission bits of the region's file.
    #[must_use]
    pub fn mode(self) -> u32 {
        match self {
            Self::Private => 0o600,
            Self::Group => 0o660,
            Self::ReadForOthers => 0o644,
        }
    }
}

/// Where the region that [`Region::create`] returns came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Born {
    /// There was none: it was made.
    New,
    /// There was one, in use or ready for use.
    Attached,
    /// There was one from before the last start of the machine: a copy of it took its place.
    Revived,
}

/// What a region's path means now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathState {
    /// The file that is mapped.
    Current,
    /// Another file: the region was replaced.
    Superseded,
    /// Nothing: the file was deleted without a successor.
    Orphaned,
}

/// A mapped region. Valid as long as it lives, also after its file was replaced or deleted.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bumpless_substrate::region::{Access, Born, Format, PREAMBLE_LEN, Region};
/// use bumpless_substrate::sync::{AtomicU64, Ordering};
///
/// const COUNTERS: Format = Format {
///     kind: *b"CNTR",
///     version: 1,
///     record_size: 8,
///     max_capacity: 1024,
///     region_len: |capacity| PREAMBLE_LEN + 8 * u64::from(capacity),
///     revived: |_| (),
/// };
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("counters");
/// let (region, born) = Region::create(&path, &COUNTERS, 16, Access::Private, |_| ())?;
/// assert_eq!(born, Born::New);
///
/// // Another process does the same, or attaches:
/// let peer = Region::attach(&path, &COUNTERS)?;
/// region.slice::<AtomicU64>(PREAMBLE_LEN, 16)?[3].fetch_add(2, Ordering::Relaxed);
/// assert_eq!(peer.at::<AtomicU64>(PREAMBLE_LEN + 3 * 8)?.load(Ordering::Relaxed), 2);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Region {
    // Fields drop in this order: the memory goes before the locks that say we use it.
    map: Mapping,
    path: PathBuf,
    file_id: FileId,
    facts: Facts,
    locks: Option<SlotLocks>,
}

impl Region {
    /// Makes a region, or attaches to the one that is there.
    ///
    /// A new file is zero but for its preamble, then `init` fills it, then it gets its name: others
    /// never see it unfinished, and who is killed in here leaves nothing behind. `init` may run more
    /// than once, on different drafts. A file from before the last start of the machine is revived:
    /// a copy with the same contents and creation id, on which [`Format::revived`] has run, takes
    /// its place.
    ///
    /// # Errors
    /// [`RegionError::Capacity`] for a capacity of 0 or beyond the format's limit;
    /// [`RegionError::CapacityDiffers`] when one exists with another capacity;
    /// [`RegionError::NoSpace`] when the whole length cannot be reserved;
    /// [`RegionError::StaleButAttached`] when a stale file cannot be replaced; and all errors of
    /// [`Region::attach`] for a file that exists and is not such a region: it is left alone.
    pub fn create(
        path: &Path,
        format: &Format,
        capacity: u32,
        access: Access,
        init: impl Fn(&Region),
    ) -> Result<(Region, Born), RegionError> {
        create::create(path, format, capacity, access, init)
    }

    /// As [`Region::create`], for a region that belongs to something else: one that is there and is
    /// not `is_current`, or has another capacity, is replaced as [`Region::reset`] does it. Of several
    /// who find the same one outdated one replaces it, and the others get its successor: the question
    /// is asked again under the lock.
    ///
    /// # Errors
    /// As [`Region::reset`], and those of [`Region::attach`] for a file that is no such region.
    pub fn create_current(
        path: &Path,
        format: &Format,
        capacity: u32,
        access: Access,
        init: impl Fn(&Region),
        is_current: impl Fn(&Region) -> bool,
        carry: impl Fn(&Region, &Region),
    ) -> Result<Region, RegionError> {
        create::create_current(path, format, capacity, access, init, is_current, carry)
    }

    /// Attaches to an existing region for reading and writing.
    ///
    /// # Errors
    /// [`RegionError::NotFound`], [`RegionError::NotRegular`], [`RegionError::Denied`],
    /// [`RegionError::Untrusted`] for what cannot or should not be opened; [`RegionError::Length`],
    /// [`RegionError::Magic`], [`RegionError::Endian`], [`RegionError::Kind`],
    /// [`RegionError::Version`], [`RegionError::RecordSize`], [`RegionError::NotReady`],
    /// [`RegionError::Capacity`] for what is not such a region; [`RegionError::StaleBoot`] for one
    /// from before the last start of the machine; [`RegionError::LockFileMissing`].
    pub fn attach(path: &Path, format: &Format) -> Result<Region, RegionError> {
        attach::attach(path, format)
    }

    /// Maps an existing region for reading only, whoever owns it; needs read permission, takes no
    /// lock and cannot be noticed. Views may only be loaded from, with `Relaxed` and an acquire
    /// fence behind: every store or read-modify-write through them is a fault (SIGSEGV). The file's
    /// owner is trusted not to truncate it.
    ///
    /// # Errors
    /// As [`Region::attach`], but for ownership and locks.
    pub fn observe(path: &Path, format: &Format) -> Result<Region, RegionError> {
        attach::observe(path, format)
    }

    /// As [`Region::observe`], and also a region from before the last start of the machine: for records
    /// that stay true without their writers. Pids, locks and clock times in it are of the start that
    /// [`boot_id`](Region::boot_id) names.
    ///
    /// # Errors
    /// As [`Region::observe`], but for [`RegionError::StaleBoot`].
    pub fn observe_of_any_boot(path: &Path, format: &Format) -> Result<Region, RegionError> {
        attach::observe_of_any_boot(path, format)
    }

    /// Replaces whatever region or plain file is there by a new region with a new creation id.
    ///
    /// Destructive, therefore never done unasked. Who has the old region mapped keeps it, and
    /// learns of the replacement by [`Region::path_state`]. `carry` is called with the old region,
    /// if there was one of this format (of any boot id), and the new one before that is published:
    /// it may carry over what must not start again. Returns the new region and the old one.
    ///
    /// # Errors
    /// As [`Region::create`]; [`RegionError::NotRegular`] and [`RegionError::Untrusted`] for what
    /// is not ours to replace.
    pub fn reset(
        path: &Path,
        format: &Format,
        capacity: u32,
        access: Access,
        init: impl Fn(&Region),
        carry: impl Fn(&Region, &Region),
    ) -> Result<(Region, Option<Region>), RegionError> {
        create::reset(path, format, capacity, access, init, carry)
    }

    /// Deletes a region and its lock file: for a clean end. Who has it mapped keeps it and finds
    /// itself [`PathState::Orphaned`]. Nothing being there is no error.
    ///
    /// # Errors
    /// [`RegionError::NotRegular`], [`RegionError::Untrusted`], [`RegionError::Denied`] for what is
    /// not ours to delete; [`RegionError::ReplacementHeld`].
    pub fn remove(path: &Path) -> Result<(), RegionError> {
        create::remove(path)
    }

    /// As [`Region::remove`], but only a region that is there and that nobody has open for writing: while it
    /// is deleted nobody can attach. Who has it open to look only keeps what is mapped.
    ///
    /// # Errors
    /// [`RegionError::InUse`]; [`RegionError::NotFound`]; [`RegionError::LockFileMissing`]: without that
    /// nothing proves that nobody has it; as [`Region::inspect`] for what is no region, and as
    /// [`Region::remove`].
    pub fn remove_unused(path: &Path) -> Result<(), RegionError> {
        create::remove_unused(path)
    }

    /// The value at an offset from the start of the file, in bytes; the format's part begins at
    /// [`PREAMBLE_LEN`]. A range check and an alignment check, then a plain reference. One range of
    /// bytes is to be viewed through integers of one width only.
    ///
    /// # Errors
    /// [`RegionError::OutOfRange`], [`RegionError::Misaligned`].
    pub fn at<T: Shared>(&self, offset: u64) -> Result<&T, RegionError> {
        self.map.at(&self.path, offset)
    }

    /// `count` values side by side, as [`Region::at`].
    ///
    /// # Errors
    /// [`RegionError::OutOfRange`], [`RegionError::Misaligned`].
    pub fn slice<T: Shared>(&self, offset: u64, count: u32) -> Result<&[T], RegionError> {
        self.map.slice(&self.path, offset, count)
    }

    /// The region's path, made absolute when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of records.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.facts.capacity
    }

    /// Length of the mapping and of the file, in bytes.
    #[must_use]
    pub fn region_len(&self) -> u64 {
        self.map.len()
    }

    /// Random number that names this region among all that ever had its path; not 0. A revived
    /// region keeps it.
    #[must_use]
    pub fn creation_id(&self) -> u64 {
        self.facts.creation_id
    }

    /// Id of the system start in which pids and locks of this region mean something.
    #[must_use]
    pub fn boot_id(&self) -> [u64; 2] {
        self.facts.boot_id
    }

    /// Whether the region was opened by [`Region::observe`].
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.map.is_read_only()
    }

    /// The slot locks; None for observers, and inside of `init`, `carry` and `revived`.
    #[must_use]
    pub fn locks(&self) -> Option<&SlotLocks> {
        self.locks.as_ref()
    }

    /// Compares what the path means with what is mapped: one system call.
    ///
    /// # Errors
    /// [`RegionError::System`] when the path cannot be looked at.
    pub fn path_state(&self) -> Result<PathState, RegionError> {
        match rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileId::of(&stat) == self.file_id => Ok(PathState::Current),
            Ok(_) => Ok(PathState::Superseded),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(PathState::Orphaned),
            Err(e) => Err(RegionError::system(&self.path, "look at the path")(e)),
        }
    }

    fn is_at(&self, site: &site::Site) -> Result<bool, RegionError> {
        Ok(site
            .look(site.name())?
            .is_some_and(|there| FileId::of(&there) == self.file_id))
    }

    /// Writes `len` bytes at `offset` back to the file and waits until they are there. Does nothing
    /// that matters on tmpfs.
    ///
    /// # Errors
    /// [`RegionError::OutOfRange`], [`RegionError::System`].
    pub fn flush(&self, offset: u64, len: u64) -> Result<(), RegionError> {
        self.map.flush(&self.path, offset, len, true)
    }

    /// As [`Region::flush`], without waiting.
    ///
    /// # Errors
    /// As [`Region::flush`].
    pub fn flush_async(&self, offset: u64, len: u64) -> Result<(), RegionError> {
        self.map.flush(&self.path, offset, len, false)
    }
}
