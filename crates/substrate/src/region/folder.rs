//! The folder for regions when the user names none: private, on memory, refused when it is not.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode};
use rustix::io::Errno;

use super::RegionError;
use super::site::kind_name;

/// The user's private folder for regions, made with mode 0700 if it does not exist:
/// `/dev/shm/bumpless-<uid>`, or `$XDG_RUNTIME_DIR/bumpless` where there is no `/dev/shm`.
///
/// # Errors
/// [`RegionError::Folder`] when something else lies there: a symlink, somebody else's folder, or
/// one that the group or others may write. [`RegionError::System`] when it cannot be made.
pub fn default_folder() -> Result<PathBuf, RegionError> {
    let us = rustix::process::geteuid().as_raw();
    let shared_memory = Path::new("/dev/shm");
    if shared_memory.is_dir() {
        return private_folder(shared_memory.join(format!("bumpless-{us}")));
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) => private_folder(Path::new(&runtime).join("bumpless")),
        None => Err(RegionError::NotFound {
            path: shared_memory.into(),
        }),
    }
}

/// Makes a folder of mode 0700, or accepts one that is ours alone to write.
pub(crate) fn private_folder(path: PathBuf) -> Result<PathBuf, RegionError> {
    match rustix::fs::mkdirat(CWD, &path, Mode::from_raw_mode(0o700)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(e) => return Err(RegionError::system(&path, "make the folder")(e)),
    }
    let stat = rustix::fs::statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(RegionError::system(&path, "look at the folder"))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let us = rustix::process::geteuid().as_raw();
    let (owner, mode) = (stat.st_uid, stat.st_mode & 0o7777);
    if kind == FileType::Directory && owner == us && mode & 0o022 == 0 {
        return Ok(path);
    }
    Err(RegionError::Folder {
        path,
        found: kind_name(kind),
        owner,
        mode,
        us,
    })
}
