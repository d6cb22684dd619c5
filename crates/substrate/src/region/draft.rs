//! A file in the making: reserved, mapped and filled before it gets the name that others look for.
//!
//! Contract: until `link` or `replace` nobody else can find the file, and a creator killed at any
//! point leaves nothing behind that an attacher would take for a region. Where the file system has
//! no unnamed files, the draft has a name of its own (`<name>.<random>.new`), which a killed
//! creator leaves behind.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;

use super::attach::Opened;
use super::error::errno;
use super::preamble::{Facts, Preamble};
use super::site::Site;
use super::{Access, Format, Region, RegionError};

#[derive(Debug)]
pub(crate) struct Draft<'a> {
    site: &'a Site,
    file: File,
    name: Option<DraftName<'a>>,
    pub(crate) region: Region,
}

/// A draft's own name, where it must have one; deleted when dropped.
#[derive(Debug)]
struct DraftName<'a> {
    site: &'a Site,
    name: OsString,
}

impl Drop for DraftName<'_> {
    fn drop(&mut self) {
        // The file has its real name by now or is not wanted; a leftover does no harm.
        let _ = rustix::fs::unlinkat(self.site.folder(), &self.name, AtFlags::empty());
    }
}

/// A random number other than 0.
pub(crate) fn random_id(site: &Site) -> Result<u64, RegionError> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(RegionError::system(site.path(), "draw a creation id"))?;
    Ok(u64::from_ne_bytes(bytes).max(1))
}

fn unnamed(site: &Site) -> Result<File, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::openat(site.folder(), ".", flags, Mode::from_raw_mode(0o600)).map(File::from)
}

fn named(site: &Site) -> Result<(File, DraftName<'_>), RegionError> {
    let (name, _) = site.sibling(&format!(".{:016x}.new", random_id(site)?));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(site.folder(), &name, flags, Mode::from_raw_mode(0o600)) {
        Ok(fd) => Ok((File::from(fd), DraftName { site, name })),
        Err(e) => Err(site.refused(site.name(), "make a file in the folder", e)),
    }
}

/// Reserves the whole length, so that no store into the mapping can find the file system full.
fn reserve(site: &Site, file: &File, len: u64) -> Result<(), RegionError> {
    let failed = |e: Errno| match e {
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => RegionError::NoSpace {
            path: site.path().into(),
            wanted: len,
        },
        e => RegionError::system(site.path(), "reserve the file's length")(e),
    };
    // A signal can interrupt it; a storm of them may not keep us here.
    for _ in 0..64 {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len) {
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return write_zeros(file, len).map_err(failed),
            other => return other.map_err(failed),
        }
    }
    Err(failed(Errno::INTR))
}

fn write_zeros(file: &File, len: u64) -> Result<(), Errno> {
    let zeros = [0; 1 << 16];
    let mut at = 0;
    while at < len {
        let part = zeros
            .len()
            .min(usize::try_from(len - at).unwrap_or(usize::MAX));
        file.write_all_at(&zeros[..part], at)
            .map_err(|e| errno(&e))?;
        at += part as u64;
    }
    Ok(())
}

impl<'a> Draft<'a> {
    /// An empty file of the right length and mode, mapped; with a name if `unnamed` says that there
    /// are no unnamed files here.
    fn blank(
        site: &'a Site,
        unnamed: Result<File, Errno>,
        access: Access,
        facts: Facts,
    ) -> Result<Self, RegionError> {
        let (file, name) = match unnamed {
            Ok(file) => (file, None),
            // What kernels and file systems without unnamed files answer.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                let (file, name) = named(site)?;
                (file, Some(name))
            }
            Err(e) => return Err(site.refused(site.name(), "make a file in the folder", e)),
        };
        Self::prepare(site, file, name, access, facts)
    }

    fn prepare(
        site: &'a Site,
        file: File,
        name: Option<DraftName<'a>>,
        access: Access,
        facts: Facts,
    ) -> Result<Self, RegionError> {
        let path = site.path();
        rustix::fs::fchmod(&file, Mode::from_raw_mode(access.mode()))
            .map_err(RegionError::system(path, "set the file's mode"))?;
        reserve(site, &file, facts.region_len)?;
        let stat =
            rustix::fs::fstat(&file).map_err(RegionError::system(path, "look at the file"))?;
        let opened = Opened { file, stat, facts };
        let region = opened.map(site, false)?;
        Ok(Self {
            site,
            file: opened.file,
            name,
            region,
        })
    }

    /// A new region: preamble and whatever `init` writes.
    pub(crate) fn new(
        site: &'a Site,
        format: &Format,
        access: Access,
        facts: Facts,
        init: impl Fn(&Region),
    ) -> Result<Self, RegionError> {
        let draft = Self::blank(site, unnamed(site), access, facts)?;
        draft.region.at::<Preamble>(0)?.write(format, &facts);
        init(&draft.region);
        Ok(draft)
    }

    /// A copy of a stale region under the boot id of the running system. Nobody is attached to the
    /// old file and nobody knows the new one, so both are plain files here.
    pub(crate) fn revive(
        site: &'a Site,
        format: &Format,
        access: Access,
        old: &Opened,
        boot_id: [u64; 2],
    ) -> Result<Self, RegionError> {
        let facts = Facts {
            boot_id,
            ..old.facts
        };
        let draft = Self::blank(site, unnamed(site), access, facts)?;
        let copy_failed =
            |e: std::io::Error| RegionError::system(site.path(), "copy the stale file")(errno(&e));
        let mut buffer = vec![0; 1 << 16];
        let mut at = 0;
        while at < facts.region_len {
            let left = usize::try_from(facts.region_len - at).unwrap_or(usize::MAX);
            let part = buffer.len().min(left);
            old.file
                .read_exact_at(&mut buffer[..part], at)
                .map_err(copy_failed)?;
            draft
                .file
                .write_all_at(&buffer[..part], at)
                .map_err(copy_failed)?;
            at += part as u64;
        }
        draft.region.at::<Preamble>(0)?.set_boot_id(boot_id);
        (format.revived)(&draft.region);
        Ok(draft)
    }

    /// Gives the file a name in its folder.
    fn link_as(&self, name: &OsStr) -> Result<(), Errno> {
        match &self.name {
            None => {
                let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                rustix::fs::linkat(CWD, own, self.site.folder(), name, AtFlags::SYMLINK_FOLLOW)
            }
            Some(own) => {
                let folder = self.site.folder();
                rustix::fs::linkat(folder, &own.name, folder, name, AtFlags::empty())
            }
        }
    }

    /// Publishes a new region. False, and nothing changed, when the name is taken.
    pub(crate) fn link(&self) -> Result<bool, RegionError> {
        match self.link_as(self.site.name()) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(e) => Err(self
                .site
                .refused(self.site.name(), "give the file its name", e)),
        }
    }

    /// Publishes the region in place of whatever has its name. Only under the replacement lock,
    /// which makes the name in between (`<name>.new`) ours alone: one that is found is the remains
    /// of a killed replacement.
    pub(crate) fn replace(&self) -> Result<(), RegionError> {
        let (between, _) = self.site.sibling(".new");
        let folder = self.site.folder();
        let refused = |e| self.site.refused(self.site.name(), "replace the file", e);
        match rustix::fs::unlinkat(folder, &between, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(refused(e)),
        }
        self.link_as(&between).map_err(refused)?;
        rustix::fs::renameat(folder, &between, folder, self.site.name()).map_err(refused)
    }

    /// The region, without the draft's own name; published or lost.
    pub(crate) fn finish(self) -> Region {
        self.region
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts {
        capacity: 1,
        region_len: 200_000,
        boot_id: [1, 2],
        creation_id: 3,
    };

    fn names(folder: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn where_files_must_have_names_a_draft_has_one_until_it_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::of(&folder.path().join("table")).unwrap();
        let blank = || Draft::blank(&site, Err(Errno::OPNOTSUPP), Access::Private, FACTS).unwrap();

        let draft = blank();
        let name = names(folder.path()).pop().unwrap();
        assert!(
            name.starts_with("table.") && name.ends_with(".new"),
            "{name}"
        );
        drop(draft);
        assert_eq!(names(folder.path()), [""; 0]);

        let draft = blank();
        assert!(draft.link().unwrap());
        let first = draft.finish();
        assert_eq!(names(folder.path()), ["table"]);
        assert!(first.is_at(&site).unwrap());

        let draft = blank();
        assert!(!draft.link().unwrap(), "the name is taken");
        draft.replace().unwrap();
        let second = draft.finish();
        assert_eq!(names(folder.path()), ["table"]);
        assert!(second.is_at(&site).unwrap() && !first.is_at(&site).unwrap());
    }

    #[test]
    fn other_errors_are_no_reason_for_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::of(&folder.path().join("table")).unwrap();
        let error = Draft::blank(&site, Err(Errno::MFILE), Access::Private, FACTS).unwrap_err();
        assert!(
            matches!(
                error,
                RegionError::System {
                    errno: Errno::MFILE,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[test]
    fn a_length_is_reserved_by_writing_where_the_file_system_cannot_reserve() {
        let file = tempfile::tempfile().unwrap();
        write_zeros(&file, 200_001).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 200_001);
    }
}
