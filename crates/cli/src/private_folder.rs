//! A private folder of one run: of a demo, or of a measurement.
//!
//! Contract: it goes with its run. One that was killed outright leaves it, and the next of its kind takes it
//! away: whether a run lives is told by a lock in its folder, which the kernel gives back with the process.
//!
//! ```text
//!   made ─▶ a locked file in it, under its name ─▶ used ─▶ dropped: gone
//!                                                   └─ killed: not locked any more ─▶ the next one takes it away
//! ```

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Locked for as long as the run lives.
const ALIVE: &str = "alive";

/// Why there is no folder.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} {path}: {error}")]
pub struct FolderError {
    doing: &'static str,
    path: PathBuf,
    error: io::Error,
}

impl FolderError {
    fn new(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self { doing, path, error }
    }
}

/// The folder.
#[derive(Debug)]
pub struct PrivateFolder {
    folder: TempDir,
    _alive: File,
}

impl PrivateFolder {
    /// Makes one in memory, where the system has a folder there, and takes away what dead runs of the same
    /// prefix left.
    pub fn in_memory(prefix: &str) -> Result<Self, FolderError> {
        let memory = Path::new("/dev/shm");
        let parent = match memory.is_dir() {
            true => memory.to_owned(),
            false => std::env::temp_dir(),
        };
        Self::make_in(&parent, prefix)
    }

    /// The same, in another folder.
    pub fn make_in(parent: &Path, prefix: &str) -> Result<Self, FolderError> {
        for left in left_by_the_dead(parent, prefix) {
            // Somebody else may be at it too.
            let _ = std::fs::remove_dir_all(left);
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(prefix);
        let folder = builder.tempdir_in(parent);
        let folder = folder.map_err(FolderError::new("make a folder in", parent))?;
        // Never there unlocked: whoever sees it unlocked sees a dead run's.
        let (path, draft) = (folder.path().join(ALIVE), folder.path().join("draft"));
        let alive = File::create(&draft).map_err(FolderError::new("create", &draft))?;
        alive.lock().map_err(FolderError::new("lock", &draft))?;
        std::fs::rename(&draft, &path).map_err(FolderError::new("make", &path))?;
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

/// One without the file is being made, or is not a run's: it stays.
fn left_by_the_dead(parent: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let runs = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    runs.map(|entry| entry.path())
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
    fn what_a_killed_run_left_goes_with_the_next_one_and_a_living_ones_stays() {
        let parent = tempfile::tempdir().expect("a folder");
        let make = || PrivateFolder::make_in(parent.path(), "run-").expect("made");
        let living = make();
        let left = |name: &str| {
            let folder = parent.path().join(name);
            std::fs::create_dir(&folder).expect("made");
            std::fs::write(folder.join(ALIVE), "").expect("written");
            folder
        };
        let (killed, another) = (left("run-x"), left("table-x"));
        let foreign = parent.path().join("run-y");
        std::fs::create_dir(&foreign).expect("made");

        let next = make();

        assert!(!killed.exists());
        assert!(living.path().exists() && next.path().exists());
        assert!(foreign.exists() && another.exists());
    }
}
