//! A demo's private folder in memory.
//!
//! Contract: it goes with its demo. A demo that was killed outright leaves it, and the next one takes it
//! away: whether its demo lives is told by a lock in it, which the kernel gives back with the process.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::standby::error::StandbyError;

const PREFIX: &str = "bumpless-demo-";
/// Locked for as long as the demo lives.
const ALIVE: &str = "alive";

/// The folder.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    _alive: File,
}

impl PrivateFolder {
    /// Makes one, and takes away what dead demos left.
    pub fn make() -> Result<Self, StandbyError> {
        let memory = Path::new("/dev/shm");
        Self::make_in(&match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        })
    }

    fn make_in(parent: &Path) -> Result<Self, StandbyError> {
        for left in left_by_the_dead(parent) {
            // Somebody else may be at it too.
            let _ = std::fs::remove_dir_all(left);
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        let folder = builder.tempdir_in(parent);
        let folder = folder.map_err(StandbyError::file("make a folder in", parent))?;
        // Never there unlocked: whoever sees it unlocked sees a dead demo's.
        let (path, draft) = (folder.path().join(ALIVE), folder.path().join("draft"));
        let alive = File::create(&draft).map_err(StandbyError::file("create", &draft))?;
        alive.lock().map_err(StandbyError::file("lock", &draft))?;
        std::fs::rename(&draft, &path).map_err(StandbyError::file("make", &path))?;
        Ok(Self {
            folder,
            _alive: alive,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// One without the file is being made, or is not a demo's: it stays.
fn left_by_the_dead(parent: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let demos = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX));
    demos
        .map(|entry| entry.path())
        .filter(|path| {
            let alive = File::open(path.join(ALIVE));
            alive.is_ok_and(|alive| !matches!(alive.try_lock(), Err(TryLockError::WouldBlock)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_demo_left_goes_with_the_next_one_and_a_living_ones_stays() {
        let parent = tempfile::tempdir().expect("a folder");
        let living = PrivateFolder::make_in(parent.path()).expect("made");
        let killed = parent.path().join("bumpless-demo-x");
        std::fs::create_dir(&killed).expect("made");
        std::fs::write(killed.join(ALIVE), "").expect("written");
        let foreign = parent.path().join("bumpless-demo-y");
        std::fs::create_dir(&foreign).expect("made");

        let next = PrivateFolder::make_in(parent.path()).expect("made");

        assert!(!killed.exists());
        assert!(living.path().exists() && next.path().exists() && foreign.exists());
    }
}
