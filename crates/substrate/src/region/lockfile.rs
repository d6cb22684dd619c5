//! The lock file as a whole: opening it, the replacement lock, the attach lock.
//!
//! Contract: the lock file is made before the region has a name and deleted after it has lost it,
//! by [`Region::remove`](super::Region::remove) alone, both under the replacement lock. So whoever
//! opens a region and then its lock file, and afterwards still finds the region under its name, has
//! the lock file that everyone attached to that region has.

use std::fs::File;
use std::os::unix::fs::FileExt;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::locks::{LockFiles, our_pid};

use super::site::{FileId, Site, trusted};
use super::{Access, RegionError};

/// How long to wait for the replacement lock and for a path that keeps changing.
const PATIENCE_MS: u64 = if cfg!(test) { 50 } else { 2_000 };

/// A bounded wait. What counts are the pauses, at their own length: who was not run for two seconds has not tried
/// for two seconds.
#[derive(Debug)]
pub(crate) struct Patience {
    start_ns: u64,
    paused_us: u64,
    pause_us: u64,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self {
            start_ns: crate::clock::monotonic_ns(),
            paused_us: 0,
            pause_us: 50,
        }
    }

    pub(crate) fn waited_ms(&self) -> u64 {
        crate::clock::monotonic_ns().saturating_sub(self.start_ns) / 1_000_000
    }

    /// Sleeps a little, longer each time up to 2 ms; false, at once, when the pauses are used up.
    pub(crate) fn pause(&mut self) -> bool {
        if self.paused_us >= PATIENCE_MS * 1_000 {
            return false;
        }
        std::thread::sleep(std::time::Duration::from_micros(self.pause_us));
        self.paused_us += self.pause_us;
        self.pause_us = (self.pause_us * 2).min(2_000);
        true
    }
}

/// The replacement lock, held until dropped.
#[derive(Debug)]
pub(crate) struct Replacing<'a>(&'a LockFiles);

impl Drop for Replacing<'_> {
    /// Unlocks rather than waits for the description to be closed: a child forked meanwhile by
    /// another thread would keep it open.
    fn drop(&mut self) {
        // Fails only for a closed descriptor, and then the lock is gone too.
        let _ = self.0.end_replacing();
    }
}

impl LockFiles {
    /// Opens the lock file of a region; with `create`, makes it when there is none.
    pub(crate) fn open(site: &Site, create: Option<Access>) -> Result<Self, RegionError> {
        let hold = open_or_make(site, ".lock", create)?;
        Self::complete(site, site.sibling(".lock").1, hold, create)
    }

    /// Whether the name still stands for the file that is open here.
    pub(crate) fn is_current(&self, site: &Site) -> Result<bool, RegionError> {
        let (name, _) = site.sibling(".lock");
        let ours = rustix::fs::fstat(&self.hold)
            .map_err(RegionError::system(&self.path, "look at the file"))?;
        Ok(site
            .look(&name)?
            .is_some_and(|there| FileId::of(&there) == FileId::of(&ours)))
    }

    /// Takes the replacement lock, waiting for at most two seconds of pauses.
    pub(crate) fn replacing(&self) -> Result<Replacing<'_>, RegionError> {
        let mut patience = Patience::new();
        while !self.try_replace()? {
            if !patience.pause() {
                let (path, holder) = (self.path.clone(), self.holder());
                let waited_ms = patience.waited_ms();
                return Err(RegionError::ReplacementHeld {
                    path,
                    holder,
                    waited_ms,
                });
            }
        }
        let guard = Replacing(self);
        // For the error message of others alone (the kernel does not name the holder of such a
        // lock), so a full file system is no reason to fail.
        let _ = self
            .hold
            .write_all_at(format!("{:>10}\n", our_pid()).as_bytes(), 0);
        Ok(guard)
    }

    /// The pid that the last holder of the replacement lock wrote down.
    fn holder(&self) -> Option<u32> {
        let mut text = [0; 10];
        self.hold.read_exact_at(&mut text, 0).ok()?;
        core::str::from_utf8(&text).ok()?.trim().parse().ok()
    }
}

/// Opens a file beside the region; with `create`, makes it when there is none.
pub(crate) fn open_or_make(
    site: &Site,
    suffix: &str,
    create: Option<Access>,
) -> Result<File, RegionError> {
    let (name, path) = site.sibling(suffix);
    // A second round if somebody made it between our look and our attempt to make it.
    for _ in 0..2 {
        match site.open(&name, true) {
            Ok((file, _)) => return Ok(file),
            Err(RegionError::NotFound { .. }) => {}
            Err(e) => return Err(e),
        }
        let Some(access) = create else {
            return Err(RegionError::LockFileMissing { path });
        };
        if let Some(file) = make(site, suffix, access)? {
            return Ok(file);
        }
    }
    Err(RegionError::Changing { path, waited_ms: 0 })
}

/// Makes a lock file; None when it exists by now.
fn make(site: &Site, suffix: &str, access: Access) -> Result<Option<File>, RegionError> {
    let (name, path) = site.sibling(suffix);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(site.folder(), &name, flags, Mode::from_raw_mode(0o600)) {
        Ok(fd) => File::from(fd),
        Err(Errno::EXIST) => return Ok(None),
        Err(e) => return Err(site.refused(&name, "make the lock file", e)),
    };
    // Whatever the umask was; for those who may write the region and nobody else: who may read the
    // lock file can take locks in it and thereby keep others from registering.
    let mode = Mode::from_raw_mode(match access {
        Access::Private | Access::ReadForOthers => 0o600,
        Access::Group => 0o660,
    });
    rustix::fs::fchmod(&file, mode)
        .map_err(RegionError::system(&path, "set the lock file's mode"))?;
    let stat =
        rustix::fs::fstat(&file).map_err(RegionError::system(&path, "look at the lock file"))?;
    trusted(&path, &stat)?;
    Ok(Some(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> (tempfile::TempDir, Site) {
        let folder = tempfile::tempdir().unwrap();
        let site = Site::of(&folder.path().join("table")).unwrap();
        (folder, site)
    }

    #[test]
    fn one_replaces_and_others_learn_who_after_a_bounded_wait() {
        let (_folder, site) = scene();
        assert!(matches!(
            LockFiles::open(&site, None),
            Err(RegionError::LockFileMissing { .. })
        ));
        let first = LockFiles::open(&site, Some(Access::Private)).unwrap();
        let second = LockFiles::open(&site, None).unwrap();
        let replacing = first.replacing().unwrap();
        let error = second.replacing().unwrap_err();
        let RegionError::ReplacementHeld {
            holder, waited_ms, ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!(holder, Some(our_pid()));
        assert!(waited_ms >= PATIENCE_MS);
        drop(replacing);
        drop(second.replacing().unwrap());
    }

    #[test]
    fn who_is_not_run_for_longer_than_it_would_wait_tries_again_all_the_same() {
        let mut patience = Patience::new();
        while patience.waited_ms() <= PATIENCE_MS {
            std::hint::spin_loop();
        }
        assert!(patience.pause());
        while patience.pause() {}
        assert!(patience.waited_ms() >= 2 * PATIENCE_MS);
    }

    #[test]
    fn rubbish_in_the_lock_file_names_nobody() {
        let (folder, site) = scene();
        let locks = LockFiles::open(&site, Some(Access::Private)).unwrap();
        for rubbish in [
            &b""[..],
            b"12",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"-123456789\n",
        ] {
            std::fs::write(folder.path().join("table.lock"), rubbish).unwrap();
            assert_eq!(locks.holder(), None);
        }
    }

    #[test]
    fn a_deleted_or_replaced_lock_file_is_not_current() {
        let (folder, site) = scene();
        let locks = LockFiles::open(&site, Some(Access::Private)).unwrap();
        assert!(locks.is_current(&site).unwrap());
        std::fs::remove_file(folder.path().join("table.lock")).unwrap();
        assert!(!locks.is_current(&site).unwrap());
        LockFiles::open(&site, Some(Access::Private)).unwrap();
        assert!(!locks.is_current(&site).unwrap());
    }

    #[test]
    fn nobody_attaches_while_one_excludes_and_nobody_excludes_the_attached() {
        let (_folder, site) = scene();
        let first = LockFiles::open(&site, Some(Access::Private)).unwrap();
        let second = LockFiles::open(&site, None).unwrap();
        let third = LockFiles::open(&site, None).unwrap();
        assert!(first.exclude(8).unwrap());
        assert!(!second.attach(8).unwrap());
        assert!(first.attach(8).unwrap() && second.attach(8).unwrap());
        assert!(!third.exclude(8).unwrap());
        first.detach(8).unwrap();
        assert!(!third.exclude(8).unwrap());
        second.detach(8).unwrap();
        assert!(third.exclude(8).unwrap());
    }

    // In the portable tier all regions of a path share one lock.
    #[cfg(not(bumpless_portable))]
    #[test]
    fn who_is_attached_to_one_region_does_not_keep_another_from_being_replaced() {
        let (_folder, site) = scene();
        let first = LockFiles::open(&site, Some(Access::Private)).unwrap();
        let second = LockFiles::open(&site, None).unwrap();
        assert!(first.attach(7).unwrap() && second.attach(7).unwrap());
        assert!(!first.exclude(7).unwrap());
        assert!(first.exclude(8).unwrap());
    }
}
