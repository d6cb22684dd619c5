//! Line 0 of every region: what it is, so that errors can say found and wanted.
//!
//! ```text
//!  0 magic u64      8 kind u32     12 version u32   16 endian u32   20 record_size u32
//! 24 capacity u32  28 ready u32    32 region_len u64  40 boot_id u64 x 2  56 creation_id u64
//! ```
//!
//! Contract: written by the creator alone, before the file has a name; never written again. Who
//! attaches reads it once, from the file and not through the mapping, checks it, and keeps copies:
//! a peer that scribbles over it later changes nothing for those who are attached.

use std::path::Path;

use crate::locks::LockFiles;
use crate::shared_struct;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

use super::{Format, RegionError};

/// Length of the preamble, in bytes; the first offset that belongs to the format.
pub const PREAMBLE_LEN: u64 = 64;

/// The same bytes on every machine, so that a file of the other byte order is called just that.
const MAGIC: u64 = u64::from_ne_bytes(LockFiles::MAGIC);
const ENDIAN: u32 = 0x0102_0304;
const READY: u32 = 1;

/// No region has more slots: a slot's lock byte then lies below those of the next creation id.
pub(crate) const LOCKABLE_SLOTS: u32 = 1 << 30;

shared_struct! {
    /// Line 0 of a region. Writer: the creator. Readers: whoever attaches, through the file.
    pub(crate) struct Preamble[size = 64, align = 64] {
        /// The bytes `BUMPLESS`; `bUMPLESS` in the portable tier.
        0 => magic: AtomicU64,
        /// Four letters: what the region holds.
        8 => kind: AtomicU32,
        /// Version of the layout behind line 0.
        12 => version: AtomicU32,
        /// 0x01020304 as the creator writes it.
        16 => endian: AtomicU32,
        /// Size of one record, in bytes.
        20 => record_size: AtomicU32,
        /// Number of records.
        24 => capacity: AtomicU32,
        /// 1 when all else is written.
        28 => ready: AtomicU32,
        /// Length of the whole file, in bytes.
        32 => region_len: AtomicU64,
        /// Boot id of the system on which pids and locks of this region mean something.
        40 => boot_id: [AtomicU64; 2],
        /// Random, not 0; names this region's generations and locks.
        56 => creation_id: AtomicU64,
    }
}

/// What is known of a region once its preamble has been checked; copied, never re-read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) capacity: u32,
    pub(crate) region_len: u64,
    pub(crate) boot_id: [u64; 2],
    pub(crate) creation_id: u64,
}

impl Preamble {
    /// Writes all fields. The file has no name yet: nobody reads beside us, and `linkat` orders
    /// these stores before any read by one who found the name (the kernel's directory locks), so
    /// Relaxed is enough.
    pub(crate) fn write(&self, format: &Format, facts: &Facts) {
        self.magic.store(MAGIC, Ordering::Relaxed);
        self.kind
            .store(u32::from_ne_bytes(format.kind), Ordering::Relaxed);
        self.version.store(format.version, Ordering::Relaxed);
        self.endian.store(ENDIAN, Ordering::Relaxed);
        self.record_size
            .store(format.record_size, Ordering::Relaxed);
        self.capacity.store(facts.capacity, Ordering::Relaxed);
        self.region_len.store(facts.region_len, Ordering::Relaxed);
        self.creation_id.store(facts.creation_id, Ordering::Relaxed);
        self.set_boot_id(facts.boot_id);
        self.ready.store(READY, Ordering::Relaxed);
    }

    /// As `write`, for the private copy of a stale file.
    pub(crate) fn set_boot_id(&self, boot_id: [u64; 2]) {
        self.boot_id[0].store(boot_id[0], Ordering::Relaxed);
        self.boot_id[1].store(boot_id[1], Ordering::Relaxed);
    }
}

/// The length that a format gives for a capacity, or why the capacity cannot be had.
pub(crate) fn region_len(path: &Path, format: &Format, capacity: u32) -> Result<u64, RegionError> {
    let limit = format.max_capacity.min(LOCKABLE_SLOTS);
    if !(1..=limit).contains(&capacity) {
        return Err(RegionError::Capacity {
            path: path.into(),
            found: capacity,
            limit,
        });
    }
    Ok((format.region_len)(capacity).max(PREAMBLE_LEN))
}

fn u32_at(image: &[u8; 64], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&image[at..at + 4]);
    u32::from_ne_bytes(word)
}

fn u64_at(image: &[u8; 64], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&image[at..at + 8]);
    u64::from_ne_bytes(word)
}

/// What a preamble says, whatever the format is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stated {
    pub(crate) kind: [u8; 4],
    pub(crate) version: u32,
    pub(crate) capacity: u32,
    pub(crate) boot_id: [u64; 2],
    pub(crate) creation_id: u64,
}

/// Checks what does not depend on the format: that it is a finished region of this byte order.
pub(crate) fn stated(path: &Path, image: &[u8; 64]) -> Result<Stated, RegionError> {
    let path = || path.to_path_buf();
    let magic = u64_at(image, 0);
    if magic != MAGIC {
        return Err(RegionError::Magic {
            path: path(),
            found: magic,
            wanted: MAGIC,
        });
    }
    let endian = u32_at(image, 16);
    if endian != ENDIAN {
        return Err(RegionError::Endian {
            path: path(),
            found: endian,
            wanted: ENDIAN,
        });
    }
    let ready = u32_at(image, 28);
    if ready != READY {
        return Err(RegionError::NotReady {
            path: path(),
            found: ready,
            wanted: READY,
        });
    }
    Ok(Stated {
        kind: u32_at(image, 8).to_ne_bytes(),
        version: u32_at(image, 12),
        capacity: u32_at(image, 24),
        boot_id: [u64_at(image, 40), u64_at(image, 48)],
        creation_id: u64_at(image, 56),
    })
}

/// Checks a preamble as it was read from a file of `file_len` bytes; everything but the boot id.
pub(crate) fn check(
    path: &Path,
    format: &Format,
    file_len: u64,
    image: &[u8; 64],
) -> Result<Facts, RegionError> {
    let Stated {
        kind,
        version,
        capacity,
        boot_id,
        creation_id,
    } = stated(path, image)?;
    let path = || path.to_path_buf();
    if kind != format.kind {
        return Err(RegionError::Kind {
            path: path(),
            found: kind,
            wanted: format.kind,
        });
    }
    if version != format.version {
        return Err(RegionError::Version {
            path: path(),
            found: version,
            wanted: format.version,
        });
    }
    let record_size = u32_at(image, 20);
    if record_size != format.record_size {
        let wanted = format.record_size;
        return Err(RegionError::RecordSize {
            path: path(),
            found: record_size,
            wanted,
        });
    }
    let wanted = region_len(&path(), format, capacity)?;
    let stated = u64_at(image, 32);
    if stated != wanted {
        return Err(RegionError::Length {
            path: path(),
            found: stated,
            wanted,
        });
    }
    if file_len != wanted {
        return Err(RegionError::Length {
            path: path(),
            found: file_len,
            wanted,
        });
    }
    Ok(Facts {
        capacity,
        region_len: wanted,
        boot_id,
        creation_id,
    })
}
