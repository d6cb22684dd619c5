//! Where a region lies: its folder, held open, and its name there; how files are opened and trusted.
//!
//! Contract: symlinks in the last component are not followed, a FIFO does not block, only a regular
//! file is opened, and for writing only one that the user, root or a group of the user's owns.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::RegionError;

#[derive(Debug)]
pub(crate) struct Site {
    path: PathBuf,
    folder: OwnedFd,
    name: OsString,
}

/// Which file: stays the same over renames, and is pinned as long as the file is open or mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

impl Site {
    pub(crate) fn of(path: &Path) -> Result<Self, RegionError> {
        let no_file_name = || RegionError::NoFileName { path: path.into() };
        let name = path.file_name().ok_or_else(no_file_name)?.to_os_string();
        let path = std::path::absolute(path).map_err(|_| no_file_name())?;
        let parent = path.parent().ok_or_else(no_file_name)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, parent, flags, Mode::empty())
            .map_err(RegionError::system(parent, "open the folder"))?;
        Ok(Self { path, folder, name })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The neighbour called like this one with `suffix` appended.
    pub(crate) fn sibling(&self, suffix: &str) -> (OsString, PathBuf) {
        let mut name = self.name.clone();
        name.push(suffix);
        let path = self.path.with_file_name(&name);
        (name, path)
    }

    /// Which file the name stands for now, not following a symlink; None when there is none.
    pub(crate) fn look(&self, name: &OsStr) -> Result<Option<Stat>, RegionError> {
        match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(self.refused(name, "look at the file", e)),
        }
    }

    /// Opens an existing regular file. With `write`, only a trusted one.
    pub(crate) fn open(&self, name: &OsStr, write: bool) -> Result<(File, Stat), RegionError> {
        let path = self.path.with_file_name(name);
        // Looked at before it is opened, because opening some devices does something.
        let before = self
            .look(name)?
            .ok_or_else(|| RegionError::NotFound { path: path.clone() })?;
        regular(&path, &before)?;
        let doing = if write {
            "open for reading and writing"
        } else {
            "open for reading"
        };
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = match rustix::fs::openat(&self.folder, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Err(RegionError::NotFound { path }),
            Err(Errno::LOOP) => {
                return Err(RegionError::NotRegular {
                    path,
                    found: "symlink",
                });
            }
            Err(e) => return Err(self.refused(name, doing, e)),
        };
        let stat = rustix::fs::fstat(&file).map_err(RegionError::system(&path, doing))?;
        regular(&path, &stat)?;
        if write {
            trusted(&path, &stat)?;
        }
        Ok((file, stat))
    }

    /// The error for a refusal by the kernel; says whose permission bits are in the way.
    pub(crate) fn refused(&self, name: &OsStr, doing: &'static str, errno: Errno) -> RegionError {
        let path = self.path.with_file_name(name);
        if !matches!(errno, Errno::ACCESS | Errno::PERM) {
            return RegionError::System { path, doing, errno };
        }
        let file = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW);
        let folder = || rustix::fs::fstat(&self.folder);
        let (at, stat) = match (file, folder()) {
            (Ok(stat), _) => (path.clone(), stat),
            (Err(_), Ok(stat)) => (self.path.parent().unwrap_or(&self.path).into(), stat),
            (Err(_), Err(_)) => return RegionError::System { path, doing, errno },
        };
        let us = rustix::process::geteuid().as_raw();
        let (mode, owner) = (stat.st_mode & 0o7777, stat.st_uid);
        RegionError::Denied {
            path,
            doing,
            at,
            mode,
            owner,
            us,
        }
    }
}

/// Refuses what is not a regular file.
fn regular(path: &Path, stat: &Stat) -> Result<(), RegionError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        other => Err(RegionError::NotRegular {
            path: path.into(),
            found: kind_name(other),
        }),
    }
}

pub(crate) fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "regular file",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Unknown => "file of unknown kind",
    }
}

/// Refuses a file whose owner could harm us through it, root included: who may write a region may
/// also truncate it.
pub(crate) fn trusted(path: &Path, stat: &Stat) -> Result<(), RegionError> {
    let us = rustix::process::geteuid().as_raw();
    let (owner, group, mode) = (stat.st_uid, stat.st_gid, stat.st_mode & 0o7777);
    let owned = owner == us || owner == 0;
    let shared = || {
        mode & 0o020 != 0
            && (rustix::process::getegid().as_raw() == group
                || rustix::process::getgroups()
                    .is_ok_and(|ours| ours.iter().any(|gid| gid.as_raw() == group)))
    };
    if mode & 0o002 == 0 && (owned || shared()) {
        return Ok(());
    }
    Err(RegionError::Untrusted {
        path: path.into(),
        owner,
        group,
        mode,
        us,
    })
}
