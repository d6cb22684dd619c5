//! What a file is, for people and tools that do not know its format: line 0, the owner, who has it open.
//!
//! Contract: maps nothing, writes nothing, takes no lock. Whether somebody has a region open is asked of
//! the kernel, which keeps their locks; who opened it to look only is not seen.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::locks::LockFiles;

use super::attach::boot_id;
use super::error::errno;
use super::preamble::{PREAMBLE_LEN, Stated, stated};
use super::site::Site;
use super::{Region, RegionError};

/// Whether somebody has a region open who may write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// Nobody: the kernel holds no lock of it.
    Unused,
    /// At least one process.
    InUse,
    /// It cannot be told: the lock file is missing or may not be read, or this is the portable tier.
    Unknown,
}

/// What [`Region::inspect`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// The path, made absolute.
    pub path: PathBuf,
    /// Four letters that name what the region holds.
    pub kind: [u8; 4],
    /// Version of the layout.
    pub version: u32,
    /// Number of records, as stated.
    pub capacity: u32,
    /// Length of the file; unit: bytes.
    pub file_len: u64,
    /// User id of the owner.
    pub owner: u32,
    /// Permission bits.
    pub mode: u32,
    /// The region's random number.
    pub creation_id: u64,
    /// The system start in which its pids and locks mean something.
    pub boot_id: [u64; 2],
    /// Whether that is the present one.
    pub is_of_this_boot: bool,
    /// Whether somebody has it open.
    pub usage: Usage,
}

impl Region {
    /// Says what lies at a path, if it is a finished region of whatever format. Cost: some ten system
    /// calls.
    ///
    /// # Errors
    /// [`RegionError::NotFound`], [`RegionError::NotRegular`], [`RegionError::Denied`];
    /// [`RegionError::Length`], [`RegionError::Magic`], [`RegionError::Endian`],
    /// [`RegionError::NotReady`] for what is no region.
    pub fn inspect(path: &Path) -> Result<Inspection, RegionError> {
        let site = Site::of(path)?;
        let path = site.path();
        let (file, stat) = site.open(site.name(), false)?;
        let file_len = u64::try_from(stat.st_size).unwrap_or(0);
        let mut image = [0; PREAMBLE_LEN as usize];
        match file.read_exact_at(&mut image, 0) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(RegionError::Length {
                    path: path.into(),
                    found: file_len,
                    wanted: PREAMBLE_LEN,
                });
            }
            Err(e) => return Err(RegionError::system(path, "read the preamble")(errno(&e))),
        }
        let Stated {
            kind,
            version,
            capacity,
            boot_id: found,
            creation_id,
        } = stated(path, &image)?;
        Ok(Inspection {
            path: path.into(),
            kind,
            version,
            capacity,
            file_len,
            owner: stat.st_uid,
            mode: stat.st_mode & 0o7777,
            creation_id,
            boot_id: found,
            is_of_this_boot: boot_id(path)? == found,
            usage: LockFiles::usage(&site, creation_id),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::{Access, Format};

    const FORMAT: Format = Format {
        kind: *b"TEST",
        version: 3,
        record_size: 8,
        max_capacity: 8,
        region_len: |capacity| 64 + 8 * capacity as u64,
        revived: |_| (),
    };

    #[test]
    fn a_region_is_told_with_who_has_it_open_and_what_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("region");
        let looked = || Region::inspect(&path);
        assert!(matches!(looked(), Err(RegionError::NotFound { .. })));
        let (region, _) = Region::create(&path, &FORMAT, 5, Access::Private, |_| ()).unwrap();
        let (in_use, unused) = if cfg!(bumpless_portable) {
            (Usage::Unknown, Usage::Unknown)
        } else {
            (Usage::InUse, Usage::Unused)
        };
        let found = looked().unwrap();
        assert_eq!(
            (&found.kind, found.version, found.capacity),
            (b"TEST", 3, 5)
        );
        assert_eq!((found.file_len, found.mode), (104, 0o600));
        assert_eq!(found.creation_id, region.creation_id());
        assert!(found.is_of_this_boot);
        assert_eq!(found.usage, in_use);
        let observer = Region::observe(&path, &FORMAT).unwrap();
        drop(region);
        assert_eq!(looked().unwrap().usage, unused);
        drop(observer);
        std::fs::remove_file(path.with_file_name("region.lock")).unwrap();
        assert_eq!(looked().unwrap().usage, Usage::Unknown);
        std::fs::write(&path, [0; 63]).unwrap();
        assert!(matches!(looked(), Err(RegionError::Length { .. })));
        std::fs::write(&path, [7; 64]).unwrap();
        assert!(matches!(looked(), Err(RegionError::Magic { .. })));
    }

    #[test]
    fn what_somebody_has_open_is_not_removed_and_what_nobody_has_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("region");
        let (region, _) = Region::create(&path, &FORMAT, 5, Access::Private, |_| ()).unwrap();
        let refused = Region::remove_unused(&path).unwrap_err();
        assert!(matches!(refused, RegionError::InUse { .. }), "{refused}");
        assert!(refused.to_string().contains("region"), "{refused}");
        drop(region);
        Region::remove_unused(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let missing = Region::remove_unused(&path).unwrap_err();
        assert!(matches!(missing, RegionError::NotFound { .. }), "{missing}");
    }

    #[test]
    fn without_its_lock_file_nothing_proves_that_a_region_is_unused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("region");
        drop(Region::create(&path, &FORMAT, 5, Access::Private, |_| ()).unwrap());
        std::fs::remove_file(path.with_file_name("region.lock")).unwrap();
        let refused = Region::remove_unused(&path).unwrap_err();
        assert!(
            matches!(refused, RegionError::LockFileMissing { .. }),
            "{refused}"
        );
        assert!(path.exists());
    }
}
