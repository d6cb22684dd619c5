//! Opening a region that exists: every check, then the mapping, then the locks, then once more the
//! question whether the path still means this file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::Stat;

use crate::locks::{LockFiles, SlotLocks};

use super::error::errno;
use super::lockfile::Patience;
use super::mapping::Mapping;
use super::preamble::{self, Facts, PREAMBLE_LEN};
use super::site::{FileId, Site};
use super::{Format, Region, RegionError};

/// A region's file that passed all checks but the boot id's.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) stat: Stat,
    pub(crate) facts: Facts,
}

/// Opens and checks; maps nothing.
pub(crate) fn open(site: &Site, format: &Format, write: bool) -> Result<Opened, RegionError> {
    let path = site.path();
    let (file, stat) = site.open(site.name(), write)?;
    let found = u64::try_from(stat.st_size).unwrap_or(0);
    let too_short = || RegionError::Length {
        path: path.into(),
        found,
        wanted: PREAMBLE_LEN,
    };
    if found < PREAMBLE_LEN {
        return Err(too_short());
    }
    let mut image = [0; PREAMBLE_LEN as usize];
    match file.read_exact_at(&mut image, 0) {
        Ok(()) => {}
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Err(too_short()),
        Err(e) => return Err(RegionError::system(path, "read the preamble")(errno(&e))),
    }
    let facts = preamble::check(path, format, found, &image)?;
    Ok(Opened { file, stat, facts })
}

/// The id of the running system, named in errors by the region's path.
pub(crate) fn boot_id(path: &Path) -> Result<[u64; 2], RegionError> {
    crate::identity::boot_id().map_err(RegionError::system(path, "read the boot id"))
}

fn require_boot(path: &Path, facts: &Facts) -> Result<(), RegionError> {
    let wanted = boot_id(path)?;
    if facts.boot_id == wanted {
        return Ok(());
    }
    Err(RegionError::StaleBoot {
        path: path.into(),
        found: facts.boot_id,
        wanted,
    })
}

impl Opened {
    /// Maps the file; the region has no locks yet.
    pub(crate) fn map(&self, site: &Site, read_only: bool) -> Result<Region, RegionError> {
        let map = Mapping::new(site.path(), &self.file, self.facts.region_len, read_only)?;
        Ok(Region {
            map,
            path: site.path().into(),
            file_id: FileId::of(&self.stat),
            facts: self.facts,
            locks: None,
        })
    }

    /// Maps the file and says in the lock file that we are attached. `Changing` when it was
    /// replaced meanwhile.
    pub(crate) fn attach(&self, site: &Site) -> Result<Region, RegionError> {
        let changing = || RegionError::Changing {
            path: site.path().into(),
            waited_ms: 0,
        };
        let mut region = self.map(site, false)?;
        let locks = match LockFiles::open(site, None) {
            // Then the region was removed just now, unless it is still there.
            Err(e @ RegionError::LockFileMissing { .. }) => {
                return Err(if region.is_at(site)? { e } else { changing() });
            }
            other => other?,
        };
        if !locks.attach(self.facts.creation_id)? || !region.is_at(site)? {
            return Err(changing());
        }
        region.locks = Some(SlotLocks::new(
            locks,
            self.facts.creation_id,
            self.facts.capacity,
        ));
        Ok(region)
    }
}

/// One attempt; `Changing` asks for another.
pub(crate) fn attach_once(site: &Site, format: &Format) -> Result<Region, RegionError> {
    let opened = open(site, format, true)?;
    require_boot(site.path(), &opened.facts)?;
    opened.attach(site)
}

/// Tries until the path holds still, for at most two seconds of pauses.
pub(crate) fn until_settled<T>(
    mut attempt: impl FnMut() -> Result<Option<T>, RegionError>,
    path: &Path,
) -> Result<T, RegionError> {
    let mut patience = Patience::new();
    loop {
        match attempt() {
            Ok(Some(done)) => return Ok(done),
            Ok(None) | Err(RegionError::Changing { .. }) => {}
            Err(e) => return Err(e),
        }
        if !patience.pause() {
            let waited_ms = patience.waited_ms();
            return Err(RegionError::Changing {
                path: path.into(),
                waited_ms,
            });
        }
    }
}

pub(crate) fn attach(path: &Path, format: &Format) -> Result<Region, RegionError> {
    let site = Site::of(path)?;
    until_settled(|| attach_once(&site, format).map(Some), site.path())
}

pub(crate) fn observe(path: &Path, format: &Format) -> Result<Region, RegionError> {
    let site = Site::of(path)?;
    let opened = open(&site, format, false)?;
    require_boot(site.path(), &opened.facts)?;
    opened.map(&site, true)
}

pub(crate) fn observe_of_any_boot(path: &Path, format: &Format) -> Result<Region, RegionError> {
    let site = Site::of(path)?;
    open(&site, format, false)?.map(&site, true)
}
