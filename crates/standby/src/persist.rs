//! A few bytes that survive: the counter of a node, the level of an actuator.
//!
//! Contract of [`Store::save`]: when it returns, the new bytes survive a power cut; when it fails, or is
//! killed in the middle, the old ones or the new ones are there, whole.
//!
//! ```text
//!   FileStore::save:  <name>.new: write, sync ──▶ rename to <name> ──▶ sync the folder
//!                     killed: <name> is old,      │ killed: <name> is new, or after a power cut
//!                     <name>.new is left over     │ still old
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use thiserror::Error;

/// Durable bytes, replaced as a whole.
pub trait Store {
    /// The bytes of the last save; `None`: never saved.
    ///
    /// # Errors
    /// They cannot be read.
    fn load(&mut self) -> Result<Option<Vec<u8>>, StoreError>;

    /// Replaces them.
    ///
    /// # Errors
    /// They are not durable.
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError>;
}

/// What could not be loaded or saved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
#[error("cannot {what}: {why}")]
pub struct StoreError {
    /// What was tried, on which path.
    pub what: String,
    /// The system's error, or what was found.
    pub why: String,
}

impl StoreError {
    pub(crate) fn malformed(found: &[u8], wanted_len: usize) -> Self {
        Self {
            what: "read what was saved".to_owned(),
            why: format!("{} bytes found, {wanted_len} wanted", found.len()),
        }
    }
}

/// Bytes in a file of their own, of mode 0600, with one writer.
///
/// A file that was left half written by a killed process lies beside it under another name, and the
/// next save removes it.
///
/// ```
/// use bumpless_standby::persist::{FileStore, Store};
///
/// let folder = tempfile::tempdir()?;
/// let mut store = FileStore::new(folder.path().join("node-1.epoch"));
/// assert_eq!(store.load()?, None);
/// store.save(&7_u64.to_le_bytes())?;
/// assert_eq!(store.load()?, Some(7_u64.to_le_bytes().to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileStore {
    path: PathBuf,
}

impl FileStore {
    /// Longer contents are neither saved nor loaded; unit: bytes.
    pub const LEN_MAX: usize = 4096;

    /// The file at this path, which need not exist; its folder must.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder, held open over all steps, and the name of the file in it.
    fn place(&self) -> Result<(OwnedFd, &OsStr), StoreError> {
        let name = self
            .path
            .file_name()
            .ok_or_else(|| self.error("name a file by", "it has no last part"))?;
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty())
            .map_err(|error| self.error("open the folder of", error))?;
        Ok((folder, name))
    }

    fn write(
        &self,
        folder: &OwnedFd,
        name: &OsStr,
        temporary: &OsStr,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, temporary, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| self.error("create a file beside", error))?;
        let mut file = File::from(file);
        file.write_all(bytes)
            .map_err(|error| self.error("write the new bytes of", error))?;
        file.sync_all()
            .map_err(|error| self.error("sync the new bytes of", error))?;
        rustix::fs::renameat(folder, temporary, folder, name)
            .map_err(|error| self.error("replace", error))
    }

    fn error(&self, what: &str, why: impl ToString) -> StoreError {
        StoreError {
            what: format!("{what} {}", self.path.display()),
            why: why.to_string(),
        }
    }
}

impl Store for FileStore {
    /// # Errors
    /// The folder or the file cannot be opened or read; it is a symlink or no file, or too long.
    fn load(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let (folder, name) = self.place()?;
        // NONBLOCK: a pipe of that name must be an error, not a wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&folder, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(self.error("load", "it is a symlink")),
            Err(error) => return Err(self.error("load", error)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|error| self.error("load", error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.error("load", "it is no file"));
        }
        let mut bytes = Vec::new();
        File::from(file)
            .take(Self::LEN_MAX as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| self.error("load", error))?;
        if bytes.len() > Self::LEN_MAX {
            let why = format!(
                "{} bytes found, at most {} wanted",
                stat.st_size,
                Self::LEN_MAX
            );
            return Err(self.error("load", why));
        }
        Ok(Some(bytes))
    }

    /// # Errors
    /// Any step failed. Unless it was the last, the sync of the folder, the old bytes are there.
    ///
    /// Cost: two syncs of the file system.
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if bytes.len() > Self::LEN_MAX {
            let why = format!("{} bytes, at most {} wanted", bytes.len(), Self::LEN_MAX);
            return Err(self.error("save", why));
        }
        let (folder, name) = self.place()?;
        let mut temporary = OsString::from(name);
        temporary.push(".new");
        match rustix::fs::unlinkat(&folder, &temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(self.error("remove what was left over beside", error)),
        }
        if let Err(error) = self.write(&folder, name, &temporary, bytes) {
            // The first error is the one to tell; what stays is removed by the next save.
            let _ = rustix::fs::unlinkat(&folder, &temporary, AtFlags::empty());
            return Err(error);
        }
        rustix::fs::fsync(&folder).map_err(|error| self.error("sync the folder of", error))
    }
}
