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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn the_default_folder_is_private_and_the_same_each_time() {
        let folder = default_folder().unwrap();
        let found = std::fs::metadata(&folder).unwrap();
        assert!(found.is_dir());
        assert_eq!(found.permissions().mode() & 0o022, 0);
        assert_eq!(default_folder().unwrap(), folder);
    }

    #[test]
    fn a_new_folder_has_mode_0700_and_an_existing_private_one_is_kept() {
        let scene = tempfile::tempdir().unwrap();
        let path = scene.path().join("folder");
        assert_eq!(private_folder(path.clone()).unwrap(), path);
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o700);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        private_folder(path.clone()).unwrap();
        assert_eq!(mode(), 0o755, "a folder of the user's is not changed");
    }

    #[test]
    fn what_is_not_ours_alone_to_write_is_refused() {
        let scene = tempfile::tempdir().unwrap();
        let ours = scene.path().join("ours");
        std::fs::create_dir(&ours).unwrap();
        let link = scene.path().join("link");
        symlink(&ours, &link).unwrap();
        let file = scene.path().join("file");
        std::fs::write(&file, b"").unwrap();
        for (path, kind) in [(link, "symlink"), (file, "regular file")] {
            let error = private_folder(path).unwrap_err();
            assert!(
                matches!(error, RegionError::Folder { found, .. } if found == kind),
                "{error}"
            );
        }
        for writable in [0o720, 0o702] {
            std::fs::set_permissions(&ours, PermissionsExt::from_mode(writable)).unwrap();
            let error = private_folder(ours.clone()).unwrap_err();
            assert!(matches!(error, RegionError::Folder { mode, .. } if mode == writable));
        }
        std::fs::set_permissions(&ours, PermissionsExt::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&ours, Some(65_534), None).unwrap();
            let error = private_folder(ours).unwrap_err();
            assert!(
                matches!(
                    error,
                    RegionError::Folder {
                        owner: 65_534,
                        us: 0,
                        ..
                    }
                ),
                "{error}"
            );
        }
    }
}
