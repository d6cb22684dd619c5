//! The files that a pool has while it runs: table, lanes, and where commands' output goes.
//!
//! Contract: a table that somebody alive uses is left alone. A table that only dead processes used is
//! used again: what they had in flight is acknowledged by the first scans. Table and lanes are deleted
//! at the end, whatever end it is, unless that is a SIGKILL.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bumpless_heartbeat::{HeartbeatTable, Label, Profile, SlotRole, Worker};
use bumpless_substrate::proof::Proof;
use bumpless_substrate::region::{Region, default_folder};

use super::error::PoolError;
use super::lane::Lanes;

/// Slots in a pool's table: more than there are ever lanes.
const TABLE_SLOTS: usize = 1024;

/// Workers of a pool that was just killed are gone after this.
const DYING: Duration = Duration::from_secs(2);

/// A pool's table and lanes.
#[derive(Debug)]
pub struct Site {
    /// The table.
    pub table: HeartbeatTable,
    /// The lanes.
    pub lanes: Arc<Lanes>,
    /// Their path.
    pub lanes_path: PathBuf,
}

impl Site {
    /// Makes table and lanes, or takes over what a dead pool left at the path.
    ///
    /// # Errors
    /// [`PoolError::TableInUse`]; [`PoolError::Table`]; [`PoolError::Region`].
    pub fn take(path: Option<&Path>, workers: u32) -> Result<Self, PoolError> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => default_folder()?.join(format!("pool-{}.table", std::process::id())),
        };
        let table = HeartbeatTable::create(&path, TABLE_SLOTS)?;
        await_unused(&table)?;
        let mut lanes_path = table.path().as_os_str().to_owned();
        lanes_path.push(".lanes");
        let lanes_path = PathBuf::from(lanes_path);
        // Fenced workers that may come back have lanes too.
        let lanes = Lanes::create(&lanes_path, 2 * workers + 8).inspect_err(|_| {
            // The error is what is told.
            let _ = Region::remove(table.path());
        })?;
        let lanes = Arc::new(lanes);
        Ok(Self {
            table,
            lanes,
            lanes_path,
        })
    }

    /// The parent's own registration, by which other pools see that the table is in use.
    ///
    /// # Errors
    /// [`PoolError::Table`].
    pub fn register(&self) -> Result<Worker<'_>, PoolError> {
        let label = Label::new("pool")?;
        let profile = Profile {
            label,
            role: SlotRole::Coordinator,
            ..Profile::default()
        };
        Ok(Worker::register(&self.table, profile)?)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Nobody is there to be told; what stays is used again by the next pool with this table.
        let _ = Region::remove(&self.lanes_path);
        let _ = Region::remove(self.table.path());
    }
}

/// Fails when an owner of a slot lives, or may live.
fn await_unused(table: &HeartbeatTable) -> Result<(), PoolError> {
    let deadline = Instant::now() + DYING;
    while let Some(pid) = user_of(table) {
        if Instant::now() >= deadline {
            let path = table.path().to_owned();
            return Err(PoolError::TableInUse { path, pid });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn user_of(table: &HeartbeatTable) -> Option<u32> {
    table.iter_live().find_map(|(slot, snapshot)| {
        let claim = table.cells(slot)?.slot.claimed_by();
        let lives = claim.is_live() && table.examine(slot, claim).proof != Proof::Gone;
        lives.then_some(snapshot.pid)
    })
}

/// Makes the folder for commands' output, or takes an empty one.
///
/// # Errors
/// [`PoolError::OutputDirInUse`], [`PoolError::File`].
pub fn output_dir(path: &Path) -> Result<PathBuf, PoolError> {
    std::fs::create_dir_all(path).map_err(PoolError::file("make the folder", path))?;
    let path = path.canonicalize().map_err(PoolError::file("find", path))?;
    let mut entries =
        std::fs::read_dir(&path).map_err(PoolError::file("read the folder", &path))?;
    match entries.next() {
        None => Ok(path),
        Some(_) => Err(PoolError::OutputDirInUse { path }),
    }
}
