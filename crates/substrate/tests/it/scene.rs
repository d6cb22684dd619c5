//! What the tests share: a format, a folder, a patient wait.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bumpless_substrate::region::{Access, Born, Format, PREAMBLE_LEN, Region, RegionError};
use bumpless_substrate::sync::{AtomicU64, Ordering};

/// Records of 64 bytes, at most 64.
pub const TABLE: Format = Format {
    kind: *b"TEST",
    version: 3,
    record_size: 64,
    max_capacity: 64,
    region_len: |capacity| PREAMBLE_LEN + 64 * capacity as u64,
    revived: |region| word(region, 1).store(REVIVED, Ordering::Relaxed),
};
pub const CAPACITY: u32 = 64;
/// What `revived` writes into word 1.
pub const REVIVED: u64 = 0x5ead;
/// What `filled` writes into every word.
pub const FILLED: u64 = 0x1111_2222_3333_4444;

/// Not in the portable tier: there a slot's lock is `Unknown` to all, and everybody may take it.
pub const SLOTS_HAVE_LOCKS: bool = !cfg!(bumpless_portable);
/// The names of a region `table` and of its lock files, sorted.
pub const FILES: &[&str] = if cfg!(bumpless_portable) {
    &["table", "table.attached", "table.lock"]
} else {
    &["table", "table.lock"]
};

/// Offsets in the preamble.
pub const AT_VERSION: u64 = 12;
pub const AT_BOOT_ID: u64 = 40;

pub struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// In memory where the machine has such a folder: for tests in which several wait for the
    /// replacement lock, whose holder a busy disk can keep for longer than its time limit.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if !memory.is_dir() {
            return Self::new();
        }
        Self {
            folder: tempfile::tempdir_in(memory).unwrap(),
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("table")
    }

    pub fn create(&self) -> (Region, Born) {
        create(&self.path()).unwrap()
    }

    /// A finished region which nobody has open.
    pub fn with_region(self) -> Self {
        drop(self.create());
        self
    }

    /// Every name in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder()).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub fn create(path: &Path) -> Result<(Region, Born), RegionError> {
    Region::create(path, &TABLE, CAPACITY, Access::Private, fill)
}

/// Writes the pattern by which a test knows a finished region.
pub fn fill(region: &Region) {
    for word in words(region) {
        word.store(FILLED, Ordering::Relaxed);
    }
}

/// All words behind the preamble.
pub fn words(region: &Region) -> &[AtomicU64] {
    region.slice(PREAMBLE_LEN, region.capacity() * 8).unwrap()
}

/// The word with that number behind the preamble.
pub fn word(region: &Region, number: u64) -> &AtomicU64 {
    region.at(PREAMBLE_LEN + 8 * number).unwrap()
}

/// Writes to the file behind everybody's back.
pub fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

/// Makes the file look as if the machine had been started since.
pub fn make_stale(path: &Path) {
    overwrite(path, AT_BOOT_ID, &[0xb0; 16]);
}

pub const STALE_BOOT_ID: [u64; 2] = [0xb0b0_b0b0_b0b0_b0b0; 2];

/// Waits until a condition holds, for at most a minute.
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "waited 60 s until {what}"
        );
        std::thread::yield_now();
    }
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// False, with the reason on standard error, when the test cannot be done by this user.
pub fn needs_root(why: &str) -> bool {
    if !is_root() {
        eprintln!("skipped: needs root to {why}");
    }
    is_root()
}
