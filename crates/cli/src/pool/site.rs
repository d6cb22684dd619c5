//! The files that a pool has while it runs: table, lanes, and where commands' output goes.
//!
//! Contract: a table that somebody alive uses is left alone. A table that only dead processes used is
//! used again: what they had in flight is acknowledged by the first scans. Table and lanes are deleted
//! at the end, whatever end it is, unless that is a SIGKILL.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bumpless_heartbeat::{HeartbeatTable, Label, Profile, SlotRole, Worker};
use bumpless_substrate::proof::Proof;
use bumpless_substrate::region::{Region, default_folder};

use super::error::PoolError;
use super::journal;
use super::lane::Lanes;

/// Slots in a pool's table: more than there are ever lanes.
const TABLE_SLOTS: usize = 1024;

/// The name of a table in the default folder, around its pool's pid.
const PREFIX: &str = "pool-";
const SUFFIX: &str = ".table";

/// A pool has registered in its table when that is older.
const YOUNG: Duration = Duration::from_secs(60);

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
            None => {
                let folder = default_folder()?;
                sweep(&folder, SystemTime::now());
                folder.join(format!("{PREFIX}{}{SUFFIX}", std::process::id()))
            }
        };
        let table = HeartbeatTable::create(&path, TABLE_SLOTS)?;
        await_unused(&table)?;
        let lanes_path = lanes_of(table.path());
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
        remove(self.table.path());
    }
}

fn lanes_of(table: &Path) -> PathBuf {
    let mut path = table.as_os_str().to_owned();
    path.push(".lanes");
    path.into()
}

fn remove(table: &Path) {
    // Nobody is there to be told; what stays is used again by the next pool with this table.
    let _ = Region::remove(&journal::beside(table));
    let _ = Region::remove(&lanes_of(table));
    let _ = Region::remove(table);
}

/// Deletes what pools that were killed have left in the default folder, where no other pool would
/// use it again. A table that is young may be one whose pool has not registered yet.
fn sweep(folder: &Path, now: SystemTime) {
    // What cannot be read or deleted is left.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_pools = name.to_str().is_some_and(|name| {
            let pid = name
                .strip_prefix(PREFIX)
                .and_then(|rest| rest.strip_suffix(SUFFIX));
            pid.is_some_and(|pid| pid.parse::<u32>().is_ok())
        });
        let made = entry.metadata().and_then(|found| found.modified());
        let age = made.ok().and_then(|made| now.duration_since(made).ok());
        if is_pools
            && age.is_some_and(|age| age > YOUNG)
            && HeartbeatTable::attach(entry.path()).is_ok_and(|table| user_of(&table).is_none())
        {
            remove(&entry.path());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_killed_pools_are_swept_and_those_in_use_young_or_foreign_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let dead = at("pool-1.table");
        drop(HeartbeatTable::create(&dead, 4).unwrap());
        drop(Lanes::create(&lanes_of(&dead), 1).unwrap());
        let used = HeartbeatTable::create(at("pool-2.table"), 4).unwrap();
        used.register(std::process::id()).unwrap();
        drop(HeartbeatTable::create(at("other.table"), 4).unwrap());
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        let before = names();
        let now = SystemTime::now();
        sweep(folder.path(), now);
        assert_eq!(names(), before);
        sweep(folder.path(), now + 2 * YOUNG);
        assert!(!dead.exists() && !lanes_of(&dead).exists());
        assert!(used.path().exists() && at("other.table").exists());
        assert_eq!(names(), before - 4, "table, lanes, and a lock file each");
    }
}
