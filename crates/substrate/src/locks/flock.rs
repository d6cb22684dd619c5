//! Whole-file locks (`flock`), for systems without locks of open file descriptions: the portable tier.
//!
//! ```text
//! <path>.lock      exclusive: the replacement lock, time-bounded
//! <path>.attached  shared: held by everyone who may write a region of this path, also a replaced one
//! ```
//! A slot has no lock: the compare-and-swap of its claim alone decides who owns it, and nothing here
//! proves that an owner is gone. `.attached` is deleted before `.lock`, so who finds the lock file under
//! its name behind the replacement lock has the present `.attached` as well. A region that was replaced
//! counts as attached: a stale file is then revived later, never too early.

use std::fs::File;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::LockState;
use crate::region::{Access, RegionError, Site, Usage, open_or_make};

/// The two files, each with a description of its own.
#[derive(Debug)]
pub(crate) struct LockFiles {
    pub(crate) path: PathBuf,
    pub(crate) hold: File,
    attached: File,
}

impl LockFiles {
    /// The first bytes of a region with these locks: processes with different ones never meet in it.
    pub(crate) const MAGIC: [u8; 8] = *b"bUMPLESS";

    /// What the files are called, behind the region's name, in the order in which they are deleted.
    pub(crate) const SUFFIXES: &[&str] = &[".attached", ".lock"];

    /// Slots have no locks.
    pub(crate) const SLOTS_EXCLUDE: bool = false;

    /// Completes an opened lock file by its neighbour.
    pub(crate) fn complete(
        site: &Site,
        path: PathBuf,
        hold: File,
        create: Option<Access>,
    ) -> Result<Self, RegionError> {
        let attached = open_or_make(site, ".attached", create)?;
        Ok(Self {
            path,
            hold,
            attached,
        })
    }

    /// Whether the locks of two regions at one path fall on each other.
    pub(crate) fn collide(one: u64, other: u64) -> bool {
        one == other
    }

    /// Takes the replacement lock unless somebody has it.
    pub(crate) fn try_replace(&self) -> Result<bool, RegionError> {
        self.lock(&self.hold, FlockOperation::NonBlockingLockExclusive)
    }

    /// Gives the replacement lock back.
    pub(crate) fn end_replacing(&self) -> Result<(), RegionError> {
        self.lock(&self.hold, FlockOperation::Unlock).map(|_| ())
    }

    /// Says that we are attached; false while somebody replaces the region.
    pub(crate) fn attach(&self, _creation_id: u64) -> Result<bool, RegionError> {
        self.lock(&self.attached, FlockOperation::NonBlockingLockShared)
    }

    /// Makes sure that nobody is attached, and keeps it so; false when somebody is. For the holder of
    /// the replacement lock alone: a change to a shared lock is not one step, and only another holder
    /// could come in between.
    pub(crate) fn exclude(&self, _creation_id: u64) -> Result<bool, RegionError> {
        self.lock(&self.attached, FlockOperation::NonBlockingLockExclusive)
    }

    /// Gives all locks of a region back.
    pub(crate) fn detach(&self, _creation_id: u64) -> Result<(), RegionError> {
        self.lock(&self.attached, FlockOperation::Unlock)
            .map(|_| ())
    }

    /// Always true: the claim decides.
    pub(crate) fn try_lock_slot(&self, _creation_id: u64, _slot: u32) -> Result<bool, RegionError> {
        Ok(true)
    }

    /// There is nothing to give back.
    pub(crate) fn unlock_slot(&self, _creation_id: u64, _slot: u32) -> Result<(), RegionError> {
        Ok(())
    }

    /// Always unknown.
    pub(crate) fn probe_slot(
        &self,
        _creation_id: u64,
        _slot: u32,
    ) -> Result<LockState, RegionError> {
        Ok(LockState::Unknown)
    }

    /// Nobody can be asked about such a lock without taking it.
    pub(crate) fn usage(_site: &Site, _creation_id: u64) -> Usage {
        Usage::Unknown
    }

    /// False when the lock is another's.
    fn lock(&self, file: &File, operation: FlockOperation) -> Result<bool, RegionError> {
        match flock(file, operation) {
            Ok(()) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(e) => Err(RegionError::system(&self.path, "lock the file")(e)),
        }
    }
}
