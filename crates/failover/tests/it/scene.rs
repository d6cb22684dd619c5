//! A folder with a table, and owners that beat or die at a word.

use std::path::PathBuf;

use bumpless_failover::{FailoverWatchdog, ReclaimReport, SlotRef};
use bumpless_heartbeat::{Handle, HeartbeatTable, Profile, Unit, UnitSet};
use bumpless_substrate::keeper::{OWNER_DIED, WAITERS};
use bumpless_substrate::sync::Ordering;
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
}

/// Registers this process, with units in flight.
pub fn register(table: &HeartbeatTable, in_flight: &[u8]) -> Handle {
    register_with_grace(table, 0, in_flight)
}

/// As `register`, with a grace of its own.
pub fn register_with_grace(table: &HeartbeatTable, grace_epochs: u16, units: &[u8]) -> Handle {
    let profile = Profile {
        grace_epochs,
        ..Profile::default()
    };
    let handle = table
        .register_as(std::process::id(), profile)
        .expect("a free slot");
    for unit in units {
        table.mark_in_flight(handle, *unit).expect("our slot");
    }
    handle
}

/// Marks the owner of a slot as the kernel does when its process ends.
pub fn die(table: &HeartbeatTable, handle: Handle) {
    let cells = table.cells(handle.slot()).expect("a slot");
    // Relaxed: one thread.
    let word = cells.slot.keeper_word();
    word.store(OWNER_DIED | WAITERS, Ordering::Relaxed);
}

/// These units.
pub fn units(numbers: &[u8]) -> UnitSet {
    let units = numbers.iter().map(|number| Unit::try_from(*number));
    units.map(|unit| unit.expect("a unit")).collect()
}

/// The only slot that a report hands back.
#[track_caller]
pub fn only(report: &ReclaimReport) -> SlotRef {
    match report.dead_slots[..] {
        [(slot, _)] => slot,
        _ => panic!("not one slot: {report:?}"),
    }
}

/// Scans until something is handed back; the slot, which must be the only one.
#[track_caller]
pub fn scan_until_reported(watchdog: &FailoverWatchdog<'_>) -> SlotRef {
    for _ in 0..50 {
        let report = watchdog.scan();
        if !report.is_empty() {
            return only(&report);
        }
    }
    panic!("nothing was reported");
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
