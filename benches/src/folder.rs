//! Folders for tables, in memory, which do not outlive a measurement for long.
//!
//! Contract: removed when dropped. A measurement that is killed leaves its folders, and the next one removes
//! them: whoever uses a folder holds a lock on it, which the kernel takes back from the dead.
//!
//! ```text
//!   made ─▶ locked ─▶ used ─▶ dropped: removed
//!     │        └─ killed: not locked any more ─▶ removed by the next measurement
//!     └─ a sweep was faster: another one is made
//! ```

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Once;

use anyhow::{Context, Result, bail};
use nix::unistd::geteuid;
use tempfile::TempDir;

const PREFIX: &str = "bumpless-benches-";
/// How often a sweep may be faster.
const TRIES: u32 = 100;

/// A folder in memory, where the system has one.
#[derive(Debug)]
pub struct Folder {
    folder: TempDir,
    /// Held open: with it goes the lock.
    _lock: File,
}

impl Folder {
    /// An empty one.
    ///
    /// # Errors
    /// None can be made.
    pub fn in_memory() -> Result<Self> {
        static SWEPT: Once = Once::new();
        let memory = Path::new("/dev/shm");
        let other = std::env::temp_dir();
        let parent = if memory.is_dir() { memory } else { &other };
        SWEPT.call_once(|| sweep(parent));
        Self::new_in(parent)
    }

    fn new_in(parent: &Path) -> Result<Self> {
        let what = || format!("a folder for tables in {}", parent.display());
        for _ in 0..TRIES {
            let mut builder = tempfile::Builder::new();
            let folder = builder.prefix(PREFIX).tempdir_in(parent);
            let folder = folder.with_context(what)?;
            // Either may fail after a sweep, which takes the lock first and then the folder.
            if let Ok(lock) = File::open(folder.path())
                && lock.try_lock().is_ok()
                && folder.path().is_dir()
            {
                let _lock = lock;
                return Ok(Self { folder, _lock });
            }
        }
        bail!("{}: {TRIES} were swept away", what())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of measurements that are not there any more.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours = fs::symlink_metadata(&path)
            .is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_ours
            && is_named
            && let Ok(lock) = File::open(&path)
            && lock.try_lock().is_ok()
        {
            // What cannot be removed costs memory, but no measurement.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_are_swept_away_and_those_in_use_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let used = Folder::new_in(parent.path()).unwrap();
        let left = parent.path().join(format!("{PREFIX}left"));
        let foreign = parent.path().join("another");
        for folder in [&left, &foreign] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("table"), "words").unwrap();
        }
        sweep(parent.path());
        assert!(!left.exists());
        assert!(used.path().is_dir() && foreign.is_dir());
    }
}
