//! A folder with a table, and candidates that die or are fenced at a word.

use std::path::PathBuf;

use bumpless_election::{Leader, LeaderToken, Leadership, SharedLeaderElection};
use bumpless_heartbeat::{Handle, HeartbeatTable};
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

/// The table's election.
pub fn open(table: &HeartbeatTable) -> SharedLeaderElection<'_> {
    SharedLeaderElection::open(table, "job").expect("an election")
}

/// Registers this process.
pub fn register(table: &HeartbeatTable) -> Handle {
    table.register(std::process::id()).expect("a free slot")
}

/// Marks the owner of a slot as the kernel does when its process ends.
pub fn die(table: &HeartbeatTable, handle: Handle) {
    let cells = table.cells(handle.slot()).expect("a slot");
    // Relaxed: one thread.
    let word = cells.slot.keeper_word();
    word.store(OWNER_DIED | WAITERS, Ordering::Relaxed);
}

/// Fences the owner of a slot as a watchdog does.
pub fn fence(table: &HeartbeatTable, handle: Handle) {
    let cells = table.cells(handle.slot()).expect("a slot");
    let _ = cells.slot.fence(handle.generation());
}

/// Claims, and must lead.
#[track_caller]
pub fn lead(election: &SharedLeaderElection<'_>, handle: Handle) -> LeaderToken {
    match election.try_claim_leadership(handle) {
        Ok(Leadership::Mine(token)) => token,
        other => panic!("{handle}: {other:?}"),
    }
}

/// Claims, and must follow.
#[track_caller]
pub fn follow(election: &SharedLeaderElection<'_>, handle: Handle) -> Leader {
    match election.try_claim_leadership(handle) {
        Ok(Leadership::Theirs(leader)) => leader,
        other => panic!("{handle}: {other:?}"),
    }
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
