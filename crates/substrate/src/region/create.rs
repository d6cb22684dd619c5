//! Making a region, reviving a stale one, replacing one, removing one.
//!
//! ```text
//! no file ──create──▶ current ──reset──▶ current (new creation id), the old one superseded
//!                      │   ▲
//!                reboot│   │create: revived (same creation id, same contents)
//!                      ▼   │
//!                      stale          any ──remove──▶ no file, those attached are orphaned
//! ```
//!
//! Contract: every change of what the path means is one `linkat` or `rename` under the replacement
//! lock, whose file is found again under its name after the lock was obtained (it may have been
//! deleted by a `remove` while we waited). A killed process leaves the path as it was or as it was
//! to be, and the kernel drops its lock.

use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::locks::{LockFiles, SlotLocks};

use super::attach::{Opened, attach_once, boot_id, open, until_settled};
use super::draft::{Draft, random_id};
use super::preamble::{Facts, region_len};
use super::site::Site;
use super::{Access, Born, Format, Region, RegionError};

pub(crate) fn create(
    path: &Path,
    format: &Format,
    capacity: u32,
    access: Access,
    init: impl Fn(&Region),
) -> Result<(Region, Born), RegionError> {
    let region_len = region_len(path, format, capacity)?;
    let site = Site::of(path)?;
    let attempt = || match attach_once(&site, format) {
        Ok(region) => {
            same_capacity(&site, region.capacity(), capacity)?;
            Ok(Some((region, Born::Attached)))
        }
        Err(RegionError::NotFound { .. }) => {
            let boot_id = boot_id(site.path())?;
            let facts = Facts {
                capacity,
                region_len,
                boot_id,
                creation_id: random_id(&site)?,
            };
            // Made before the lock is taken: whoever is stopped in `init` keeps nobody waiting.
            let draft = Draft::new(&site, format, access, facts, &init)?;
            Ok(publish(&site, access, draft)?.map(|region| (region, Born::New)))
        }
        Err(RegionError::StaleBoot { .. }) => {
            Ok(revive(&site, format, capacity, access)?.map(|region| (region, Born::Revived)))
        }
        Err(e) => Err(e),
    };
    until_settled(attempt, site.path())
}

fn same_capacity(site: &Site, found: u32, wanted: u32) -> Result<(), RegionError> {
    if found == wanted {
        return Ok(());
    }
    Err(RegionError::CapacityDiffers {
        path: site.path().into(),
        found,
        wanted,
    })
}

/// The region of a published draft, with its locks.
fn with_locks(draft: Draft<'_>, locks: LockFiles) -> Region {
    let mut region = draft.finish();
    let Facts {
        creation_id,
        capacity,
        ..
    } = region.facts;
    region.locks = Some(SlotLocks::new(locks, creation_id, capacity));
    region
}

/// Takes the attach lock for a region that nobody else knows yet.
fn attach_first(site: &Site, locks: &LockFiles, creation_id: u64) -> Result<(), RegionError> {
    if locks.attach(creation_id)? {
        return Ok(());
    }
    Err(RegionError::Changing {
        path: site.path().into(),
        waited_ms: 0,
    })
}

/// Gives a new region its name; None when the path was taken or the lock file deleted meanwhile.
fn publish(site: &Site, access: Access, draft: Draft<'_>) -> Result<Option<Region>, RegionError> {
    let locks = LockFiles::open(site, Some(access))?;
    let replacing = locks.replacing()?;
    if !locks.is_current(site)? {
        return Ok(None);
    }
    attach_first(site, &locks, draft.region.creation_id())?;
    if !draft.link()? {
        return Ok(None);
    }
    drop(replacing);
    Ok(Some(with_locks(draft, locks)))
}

/// Replaces a stale file by a copy of it under the current boot id; None when somebody else did.
fn revive(
    site: &Site,
    format: &Format,
    capacity: u32,
    access: Access,
) -> Result<Option<Region>, RegionError> {
    let locks = LockFiles::open(site, Some(access))?;
    let replacing = locks.replacing()?;
    if !locks.is_current(site)? {
        return Ok(None);
    }
    let old = match open(site, format, true) {
        Err(RegionError::NotFound { .. }) => return Ok(None),
        other => other?,
    };
    let Facts {
        creation_id,
        boot_id: found,
        ..
    } = old.facts;
    let wanted = boot_id(site.path())?;
    if found == wanted {
        return Ok(None);
    }
    same_capacity(site, old.facts.capacity, capacity)?;
    // Excludes, until the copy has the name, also one who is about to attach because its boot id
    // is the file's: it will find that the path means another file.
    if !locks.exclude(creation_id)? {
        return Err(RegionError::StaleButAttached {
            path: site.path().into(),
            found,
            wanted,
        });
    }
    let draft = Draft::revive(site, format, access, &old, wanted)?;
    draft.replace()?;
    attach_first(site, &locks, creation_id)?;
    drop(replacing);
    Ok(Some(with_locks(draft, locks)))
}

pub(crate) fn create_current(
    path: &Path,
    format: &Format,
    capacity: u32,
    access: Access,
    init: impl Fn(&Region),
    is_current: impl Fn(&Region) -> bool,
    carry: impl Fn(&Region, &Region),
) -> Result<Region, RegionError> {
    match create(path, format, capacity, access, &init) {
        Ok((region, _)) if is_current(&region) => return Ok(region),
        Ok(_) | Err(RegionError::CapacityDiffers { .. }) => {}
        Err(e) => return Err(e),
    }
    let keep = |old: &Region| old.capacity() == capacity && is_current(old);
    let (region, _) = replace(path, format, capacity, access, init, carry, keep)?;
    Ok(region)
}

pub(crate) fn reset(
    path: &Path,
    format: &Format,
    capacity: u32,
    access: Access,
    init: impl Fn(&Region),
    carry: impl Fn(&Region, &Region),
) -> Result<(Region, Option<Region>), RegionError> {
    replace(path, format, capacity, access, init, carry, |_| false)
}

/// Replaces what is there, unless it is a region of this start of the machine that is to be kept: then
/// that is what the caller gets, and no old one.
fn replace(
    path: &Path,
    format: &Format,
    capacity: u32,
    access: Access,
    init: impl Fn(&Region),
    carry: impl Fn(&Region, &Region),
    keep: impl Fn(&Region) -> bool,
) -> Result<(Region, Option<Region>), RegionError> {
    let region_len = region_len(path, format, capacity)?;
    let site = Site::of(path)?;
    let attempt = || {
        let locks = LockFiles::open(&site, Some(access))?;
        let replacing = locks.replacing()?;
        if !locks.is_current(&site)? {
            return Ok(None);
        }
        let boot_id = boot_id(site.path())?;
        let old = match existing(&site, format)? {
            Some(old) if old.boot_id() == boot_id && keep(&old) => return Ok(Some((old, None))),
            old => old,
        };
        let creation_id = other_id(&site, old.as_ref())?;
        let facts = Facts {
            capacity,
            region_len,
            boot_id,
            creation_id,
        };
        let draft = Draft::new(&site, format, access, facts, &init)?;
        if let Some(old) = &old {
            carry(old, &draft.region);
        }
        attach_first(&site, &locks, creation_id)?;
        draft.replace()?;
        drop(replacing);
        Ok(Some((with_locks(draft, locks), old)))
    };
    until_settled(attempt, site.path())
}

/// A creation id whose locks do not fall on those of the region that is replaced.
fn other_id(site: &Site, old: Option<&Region>) -> Result<u64, RegionError> {
    let id = random_id(site)?;
    match old {
        Some(old) if LockFiles::collide(old.creation_id(), id) => Ok(id ^ 1),
        _ => Ok(id),
    }
}

/// The region to be replaced, whatever its boot id, if it is one of this format; a file that is
/// none is replaced too, but nothing other than a file, and nobody else's.
fn existing(site: &Site, format: &Format) -> Result<Option<Region>, RegionError> {
    let opened: Opened = match open(site, format, true) {
        Ok(opened) => opened,
        Err(
            RegionError::NotFound { .. }
            | RegionError::Length { .. }
            | RegionError::Magic { .. }
            | RegionError::Endian { .. }
            | RegionError::Kind { .. }
            | RegionError::Version { .. }
            | RegionError::RecordSize { .. }
            | RegionError::NotReady { .. }
            | RegionError::Capacity { .. },
        ) => return Ok(None),
        Err(e) => return Err(e),
    };
    opened.attach(site).map(Some)
}

pub(crate) fn remove(path: &Path) -> Result<(), RegionError> {
    let site = Site::of(path)?;
    let attempt = || {
        let locks = match LockFiles::open(&site, None) {
            Ok(locks) => locks,
            Err(RegionError::LockFileMissing { .. })
                if site.look(site.name())?.is_none()
                    && site.look(&site.sibling(".lock").0)?.is_none() =>
            {
                return Ok(Some(()));
            }
            // Somebody deleted it by hand; the replacement lock is wanted all the same.
            Err(RegionError::LockFileMissing { .. }) => {
                LockFiles::open(&site, Some(Access::Private))?
            }
            Err(e) => return Err(e),
        };
        let replacing = locks.replacing()?;
        if !locks.is_current(&site)? {
            return Ok(None);
        }
        match site.open(site.name(), true) {
            Ok(_) | Err(RegionError::NotFound { .. }) => {}
            Err(e) => return Err(e),
        }
        delete(&site)?;
        drop(replacing);
        Ok(Some(()))
    };
    until_settled(attempt, site.path())
}

pub(crate) fn remove_unused(path: &Path) -> Result<(), RegionError> {
    let site = Site::of(path)?;
    let attempt = || {
        // Says first what lies there, if it is no region at all.
        let creation_id = Region::inspect(site.path())?.creation_id;
        let locks = LockFiles::open(&site, None)?;
        let replacing = locks.replacing()?;
        if !locks.is_current(&site)? || Region::inspect(site.path())?.creation_id != creation_id {
            return Ok(None);
        }
        site.open(site.name(), true)?;
        // Kept until the files are gone: who is about to attach then finds the path empty.
        if !locks.exclude(creation_id)? {
            return Err(RegionError::InUse {
                path: site.path().into(),
            });
        }
        delete(&site)?;
        drop(replacing);
        Ok(Some(()))
    };
    until_settled(attempt, site.path())
}

/// Deletes a region and what belongs to it, under the replacement lock.
fn delete(site: &Site) -> Result<(), RegionError> {
    // The region first: see the contract of the lock file.
    let mut names = vec![site.name().to_os_string(), site.sibling(".new").0];
    names.extend(
        LockFiles::SUFFIXES
            .iter()
            .map(|suffix| site.sibling(suffix).0),
    );
    for name in names {
        match rustix::fs::unlinkat(site.folder(), &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(site.refused(&name, "delete the file", e)),
        }
    }
    Ok(())
}
