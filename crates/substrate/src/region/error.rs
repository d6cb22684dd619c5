//! What can go wrong with a region: what was tried, on which path, what was found, what was wanted.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Why a region, or a place in it, was refused. Nothing is mapped and nothing is changed by a call
/// that returns one of these, unless the variant says so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// There is no file of that name.
    #[error("{path}: no such file")]
    NotFound {
        /// The region's path.
        path: PathBuf,
    },
    /// The path does not end in a file name.
    #[error("{path}: the path of a region must end in a file name")]
    NoFileName {
        /// The path given.
        path: PathBuf,
    },
    /// A system call failed for a reason that has no variant of its own.
    #[error("{path}: cannot {doing}: {errno}")]
    System {
        /// The file or folder concerned.
        path: PathBuf,
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// What the kernel answered.
        errno: Errno,
    },
    /// Something other than a regular file lies there; symlinks are not followed.
    #[error("{path}: found a {found}, wanted a regular file")]
    NotRegular {
        /// The region's path.
        path: PathBuf,
        /// What lies there: "directory", "symlink", "FIFO" and so on.
        found: &'static str,
    },
    /// The permissions do not allow it.
    #[error(
        "{path}: cannot {doing}: {at} has mode {mode:04o} and owner uid {owner}, we are uid {us}"
    )]
    Denied {
        /// The region's path.
        path: PathBuf,
        /// What was tried, as a verb phrase.
        doing: &'static str,
        /// The file, or its folder when not even the file can be looked at.
        at: PathBuf,
        /// Permission bits found there.
        mode: u32,
        /// Owner found there.
        owner: u32,
        /// Our effective uid.
        us: u32,
    },
    /// The file belongs to somebody whom we have no reason to trust, or anybody may write it.
    #[error(
        "{path}: found owner uid {owner}, gid {group}, mode {mode:04o}; wanted owner uid {us} or 0, \
         or write permission for a group of ours, and no write permission for all"
    )]
    Untrusted {
        /// The file concerned.
        path: PathBuf,
        /// Owner found.
        owner: u32,
        /// Group found.
        group: u32,
        /// Permission bits found.
        mode: u32,
        /// Our effective uid.
        us: u32,
    },
    /// The folder for regions is not private to us.
    #[error(
        "{path}: found a {found} with owner uid {owner} and mode {mode:04o}; wanted a folder of uid \
         {us} which nobody else may write"
    )]
    Folder {
        /// The folder concerned.
        path: PathBuf,
        /// What lies there.
        found: &'static str,
        /// Owner found.
        owner: u32,
        /// Permission bits found.
        mode: u32,
        /// Our effective uid.
        us: u32,
    },
    /// The file is not as long as it should be.
    #[error("{path}: found a length of {found} B, wanted {wanted} B")]
    Length {
        /// The region's path.
        path: PathBuf,
        /// Length of the file, or the length that its preamble states.
        found: u64,
        /// Length which format and capacity give; 64 when not even a preamble fits.
        wanted: u64,
    },
    /// The file does not start with the mark of a region.
    #[error("{path}: found magic {found:#018x}, wanted {wanted:#018x}")]
    Magic {
        /// The region's path.
        path: PathBuf,
        /// The first eight bytes.
        found: u64,
        /// What they should be.
        wanted: u64,
    },
    /// The file was written by a machine of another byte order.
    #[error("{path}: found byte-order mark {found:#010x}, wanted {wanted:#010x}")]
    Endian {
        /// The region's path.
        path: PathBuf,
        /// The mark as it reads here.
        found: u32,
        /// The mark of this machine.
        wanted: u32,
    },
    /// The region is of another kind.
    #[error("{path}: found a region of kind {:?}, wanted {:?}", .found.escape_ascii().to_string(), .wanted.escape_ascii().to_string())]
    Kind {
        /// The region's path.
        path: PathBuf,
        /// Kind stated in the file.
        found: [u8; 4],
        /// Kind of the format asked for.
        wanted: [u8; 4],
    },
    /// The region has another layout version.
    #[error("{path}: found layout version {found}, wanted {wanted}")]
    Version {
        /// The region's path.
        path: PathBuf,
        /// Version stated in the file.
        found: u32,
        /// Version of the format asked for.
        wanted: u32,
    },
    /// The region's records have another size.
    #[error("{path}: found records of {found} B, wanted {wanted} B")]
    RecordSize {
        /// The region's path.
        path: PathBuf,
        /// Size stated in the file, in bytes.
        found: u32,
        /// Size of the format asked for, in bytes.
        wanted: u32,
    },
    /// The file's ready word is not set: it was not made by [`Region::create`](super::Region::create).
    #[error("{path}: found ready word {found}, wanted {wanted}")]
    NotReady {
        /// The region's path.
        path: PathBuf,
        /// The word found.
        found: u32,
        /// The word of a finished region.
        wanted: u32,
    },
    /// A capacity, given or found in the file, is 0 or beyond the limit.
    #[error("{path}: capacity {found} is outside of 1 to {limit}")]
    Capacity {
        /// The region's path.
        path: PathBuf,
        /// The capacity.
        found: u32,
        /// The largest one allowed.
        limit: u32,
    },
    /// The region exists with another capacity.
    #[error("{path}: found a region of capacity {found}, wanted {wanted}")]
    CapacityDiffers {
        /// The region's path.
        path: PathBuf,
        /// Capacity of the region that exists.
        found: u32,
        /// Capacity asked for.
        wanted: u32,
    },
    /// The region was last used before the machine started: its pids and locks mean nothing now.
    #[error(
        "{path}: found boot id {found:016x?}, wanted {wanted:016x?}: create revives such a file"
    )]
    StaleBoot {
        /// The region's path.
        path: PathBuf,
        /// Boot id stated in the file.
        found: [u64; 2],
        /// Boot id of the running system.
        wanted: [u64; 2],
    },
    /// The region carries another boot id, yet a process is attached: one of the two sees a faked
    /// boot id. It is not replaced.
    #[error(
        "{path}: found boot id {found:016x?}, wanted {wanted:016x?}, but a process is attached to it"
    )]
    StaleButAttached {
        /// The region's path.
        path: PathBuf,
        /// Boot id stated in the file.
        found: [u64; 2],
        /// Boot id of the running system.
        wanted: [u64; 2],
    },
    /// The file system has no room. Memory that a region was promised is reserved when it is made,
    /// so that no later store can fail.
    #[error("{path}: no room for {wanted} B")]
    NoSpace {
        /// The region's path.
        path: PathBuf,
        /// Length that was to be reserved, in bytes.
        wanted: u64,
    },
    /// Somebody else holds the replacement lock for too long.
    #[error("{path}: replacement lock still held after {waited_ms} ms, by pid {}", DisplayPid(.holder))]
    ReplacementHeld {
        /// The lock file's path.
        path: PathBuf,
        /// Who wrote its pid into the lock file last, in the pid namespace of the holder.
        holder: Option<u32>,
        /// How long was waited, in ms.
        waited_ms: u64,
    },
    /// The file was replaced again and again while it was being opened.
    #[error("{path}: the file kept changing for {waited_ms} ms")]
    Changing {
        /// The region's path.
        path: PathBuf,
        /// How long was waited, in ms.
        waited_ms: u64,
    },
    /// The region exists but its lock file was deleted: nobody can tell who is attached. `reset`
    /// or `remove` the region.
    #[error("{path}: the lock file of a live region is missing")]
    LockFileMissing {
        /// The lock file's path.
        path: PathBuf,
    },
    /// A process has the region open for writing, so it is not deleted.
    #[error("{path}: a process has it open")]
    InUse {
        /// The region's path.
        path: PathBuf,
    },
    /// A view reaches beyond the region.
    #[error("{path}: {len} B at offset {offset} lie outside of {region_len} B")]
    OutOfRange {
        /// The region's path.
        path: PathBuf,
        /// Offset asked for, in bytes.
        offset: u64,
        /// Length asked for, in bytes.
        len: u64,
        /// Length of the region, in bytes.
        region_len: u64,
    },
    /// A view would not be aligned.
    #[error("{path}: offset {offset} is no multiple of the alignment {align}")]
    Misaligned {
        /// The region's path.
        path: PathBuf,
        /// Offset asked for, in bytes.
        offset: u64,
        /// Alignment of the type, in bytes.
        align: u64,
    },
    /// The region is mapped for reading only.
    #[error("{path}: cannot {doing}: the region is mapped for reading only")]
    ReadOnly {
        /// The region's path.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
    },
    /// There is no such slot.
    #[error("{path}: slot {slot} is outside of 0 to {}", .capacity - 1)]
    NoSuchSlot {
        /// The lock file's path.
        path: PathBuf,
        /// Slot asked for.
        slot: u32,
        /// Number of slots.
        capacity: u32,
    },
    /// The region was opened by another process: this one is its fork child and may only close.
    #[error("{path}: opened by pid {opened_by}, used by pid {us}: a fork child must open its own")]
    Forked {
        /// The lock file's path.
        path: PathBuf,
        /// Who opened it.
        opened_by: u32,
        /// Who uses it.
        us: u32,
    },
}

struct DisplayPid<'a>(&'a Option<u32>);

impl core::fmt::Display for DisplayPid<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            Some(pid) => write!(f, "{pid}"),
            None => f.write_str("unknown"),
        }
    }
}

impl RegionError {
    /// For `map_err`: a system call on `path` failed.
    pub(crate) fn system(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> Self {
        let path = path.to_path_buf();
        move |errno| Self::System { path, doing, errno }
    }
}

/// The kernel's error number in a standard error; errors made up by the library count as EIO.
pub(crate) fn errno(error: &std::io::Error) -> Errno {
    error
        .raw_os_error()
        .map_or(Errno::IO, Errno::from_raw_os_error)
}
