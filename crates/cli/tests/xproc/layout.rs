//! The table's file, word by word, for scenarios that write into it what no living process would.
//!
//! Contract: the offsets are those of `docs/layout.md`; what a scenario writes through the file is in
//! every mapping at once.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes before the first word that a format may use.
pub const PREAMBLE_LEN: u64 = 64;
/// The global epoch.
pub const EPOCH: u64 = 64;
/// The watchdog's lease.
pub const LEASE: u64 = 128;

/// Offsets in a slot.
pub const CLAIM: u64 = 0;
pub const BEAT: u64 = 8;
pub const WORK: u64 = 16;
pub const SEQ: u64 = 48;
pub const KEEPER: u64 = 56;

/// The top bit of a work word.
pub const FENCED: u64 = 1 << 63;

/// A table's file of a capacity of at most 64 slots.
#[derive(Debug)]
pub struct TableFile {
    file: File,
    capacity: u64,
}

impl TableFile {
    pub fn open(path: &Path, capacity: u64) -> Self {
        assert!(capacity <= 64, "one summary and one occupancy line");
        let file = File::options().read(true).write(true).open(path);
        let file = file.expect("the table's file");
        Self { file, capacity }
    }

    /// Where a slot lies.
    pub fn slot(&self, slot: u64) -> u64 {
        384 + 64 * slot
    }

    /// Where a slot's verdict line lies.
    pub fn verdict(&self, slot: u64) -> u64 {
        self.slot(self.capacity) + 128 * self.capacity + 64 * slot
    }

    pub fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at).expect("a word");
        u64::from_ne_bytes(bytes)
    }

    pub fn set_word(&self, at: u64, value: u64) {
        self.set_bytes(at, &value.to_ne_bytes());
    }

    pub fn set_bytes(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).expect("room in the file");
    }

    /// All of it.
    pub fn bytes(&self) -> Vec<u8> {
        let len = self.file.metadata().expect("a length").len();
        let mut bytes = vec![0; usize::try_from(len).expect("a small file")];
        self.file.read_exact_at(&mut bytes, 0).expect("the bytes");
        bytes
    }
}
