//! A folder with a table, and owners that die or are fenced at a word.

use std::path::PathBuf;
use std::time::Duration;

use bumpless_barrier::{BarrierError, EpochBarrier, Released};
use bumpless_heartbeat::slot::FenceOutcome;
use bumpless_heartbeat::{Handle, HeartbeatTable};
use bumpless_substrate::sync::Ordering;
use tempfile::TempDir;

/// What the kernel writes into the keeper word of a dead owner.
const OWNER_DIED: u32 = 0x4000_0000;

/// Far more than any wait here takes, also on a busy machine.
pub const LONG: Duration = Duration::from_secs(60);

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

pub fn register(table: &HeartbeatTable) -> Handle {
    table.register(std::process::id()).expect("a free slot")
}

pub fn barrier(table: &HeartbeatTable) -> EpochBarrier<'_> {
    EpochBarrier::create(table, "phase").expect("a barrier")
}

/// Marks the owner of a slot as the kernel does when its process ends; who sleeps on the word is not
/// woken, as by a kernel that wakes somebody else.
pub fn die(table: &HeartbeatTable, handle: Handle) {
    let cells = table.cells(handle.slot()).expect("a slot");
    // Relaxed: a word on its own.
    cells
        .slot
        .keeper_word()
        .fetch_or(OWNER_DIED, Ordering::Relaxed);
}

/// Fences an owner as a watchdog does.
pub fn fence(table: &HeartbeatTable, handle: Handle) {
    let cells = table.cells(handle.slot()).expect("a slot");
    let fenced = cells.slot.fence(handle.generation());
    assert!(matches!(fenced, FenceOutcome::Fenced(_)), "{fenced:?}");
}

/// The epoch of a wait in which nobody was missing.
#[track_caller]
pub fn expect_whole(released: Result<Released, BarrierError>) -> u64 {
    let released = released.expect("released");
    assert!(released.absent.is_empty(), "{released:?}");
    released.epoch
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
