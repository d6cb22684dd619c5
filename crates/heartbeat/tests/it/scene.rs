//! A folder with a table.

use std::path::PathBuf;

use bumpless_heartbeat::{Handle, HeartbeatTable, Unit, UnitSet};
use tempfile::TempDir;

/// A folder that goes with the test.
pub struct Scene {
    folder: TempDir,
}

impl Scene {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn table(&self, capacity: usize) -> HeartbeatTable {
        HeartbeatTable::create(self.path("table"), capacity).expect("a table")
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path("table")).expect("the table")
    }
}

/// Registers this process.
pub fn register(table: &HeartbeatTable) -> Handle {
    table.register(std::process::id()).expect("a free slot")
}

/// These units.
pub fn units(numbers: &[u8]) -> UnitSet {
    let units = numbers.iter().map(|number| Unit::try_from(*number));
    units.map(|unit| unit.expect("a unit")).collect()
}

/// Asserts that a call was refused with this variant.
macro_rules! assert_refused {
    ($call:expr, $wanted:pat $(if $guard:expr)?) => {{
        let result = $call;
        assert!(
            matches!(result, Err($wanted) $(if $guard)?),
            "{}: {result:?}, not {}",
            stringify!($call),
            stringify!($wanted)
        );
    }};
}
pub(crate) use assert_refused;
