//! Where one crash point happens: a folder of its own with a table, and a log that the victim writes.
//!
//! Contract: the log says what the victim had done for certain when it was killed. It is written by
//! plain stores to shared memory, so it costs a few instructions inside the stepped window.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bumpless_heartbeat::UnitSet;
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region};
use bumpless_substrate::sync::{AtomicU64, Ordering};

const LOG: Format = Format {
    kind: *b"CRLG",
    version: 1,
    record_size: 64,
    max_capacity: 1,
    region_len: |_| PREAMBLE_LEN + 64,
    revived: |_| (),
};

/// The folder of one crash point.
#[derive(Debug, Clone)]
pub struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// A stage in a folder that exists.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The same stage, with nothing on it.
    pub fn cleared(&self) -> Result<&Self> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error)?,
            _ => {}
        }
        fs::create_dir(&self.folder).with_context(|| format!("{}", self.folder.display()))?;
        Ok(self)
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of the table.
    pub fn table(&self) -> PathBuf {
        self.folder.join("table")
    }

    /// What others can see of the table now.
    pub fn shared_bytes(&self) -> Option<Vec<u8>> {
        fs::read(self.table()).ok()
    }

    /// The victim's log, made when there is none.
    pub fn log(&self) -> Result<Log> {
        let (region, _) =
            Region::create(&self.folder.join("log"), &LOG, 1, Access::Private, |_| ())
                .context("the victim's log")?;
        Ok(Log(region))
    }
}

/// What the victim had done: one bit for each unit, which the units in use here do not share.
#[derive(Debug)]
pub struct Log(Region);

impl Log {
    /// The result of a unit has been published.
    pub fn publish(&self, units: UnitSet) {
        self.add(0, units);
    }

    /// An operation that takes units away has returned: they are completed, or acknowledged.
    pub fn done(&self, units: UnitSet) {
        self.add(8, units);
    }

    /// Whether the result of a unit was published.
    pub fn is_published(&self, unit: u32) -> bool {
        self.has(0, unit)
    }

    /// Whether a unit was completed or acknowledged, for certain.
    pub fn is_done(&self, unit: u32) -> bool {
        self.has(8, unit)
    }

    fn word(&self, offset: u64) -> Option<&AtomicU64> {
        self.0.at(PREAMBLE_LEN + offset).ok()
    }

    fn add(&self, offset: u64, units: UnitSet) {
        if let Some(word) = self.word(offset) {
            let bits = units.iter().fold(0, |bits, unit| bits | bit(unit.index()));
            word.fetch_or(bits, Ordering::SeqCst);
        }
    }

    fn has(&self, offset: u64, unit: u32) -> bool {
        self.word(offset)
            .is_some_and(|word| word.load(Ordering::SeqCst) & bit(unit) != 0)
    }
}

fn bit(unit: u32) -> u64 {
    1 << (unit % 64)
}
