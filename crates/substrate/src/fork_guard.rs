//! Knowing that one is a fork child: one load.
//!
//! Contract: a guard is true in the process that made it, and in no fork child of it. What a child
//! inherits it must leave alone: the slots, locks and certificates are its parent's.
//!
//! The kernel wipes the guard's page in a fork child (`MADV_WIPEONFORK`, since Linux 4.14). Where it
//! does not, the process id is compared instead, which costs a system call (about 50 times as much).
//! A vfork child shares its parent's memory and cannot be told apart until it executes a program.

use core::ptr::NonNull;

use memmap2::{MmapOptions, MmapRaw};
use rustix::mm::{Advice, madvise};

use crate::locks::our_pid;
use crate::sync::{AtomicU64, Ordering};

const PAGE_LEN: usize = 4096;

/// Tells a process from its fork children.
///
/// ```
/// let guard = bumpless_substrate::fork_guard::ForkGuard::new();
/// assert!(!guard.is_forked());
/// ```
#[derive(Debug)]
pub struct ForkGuard {
    page: Option<WipedPage>,
    made_by: u32,
}

/// A private page whose first word is 1, and 0 in a fork child.
#[derive(Debug)]
struct WipedPage {
    word: NonNull<AtomicU64>,
    /// Keeps the page mapped.
    _map: MmapRaw,
}

// SAFETY: the word is an atomic, and the mapping neither moves nor ends before the page is dropped.
unsafe impl Send for WipedPage {}
// SAFETY: as for `Send`.
unsafe impl Sync for WipedPage {}

impl ForkGuard {
    /// A guard of the calling process.
    #[must_use]
    pub fn new() -> Self {
        Self {
            page: wiped_page(),
            made_by: our_pid(),
        }
    }

    /// Whether the caller is a fork child of the process that made the guard.
    #[must_use]
    #[inline]
    pub fn is_forked(&self) -> bool {
        match &self.page {
            // Relaxed: the kernel wiped the page before the child ran.
            Some(page) => page.get().load(Ordering::Relaxed) == 0,
            None => our_pid() != self.made_by,
        }
    }

    /// Whether the check is one load; if not, the kernel cannot wipe pages on fork.
    #[must_use]
    pub fn is_cheap(&self) -> bool {
        self.page.is_some()
    }
}

impl Default for ForkGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl WipedPage {
    #[inline]
    fn get(&self) -> &AtomicU64 {
        // SAFETY: `word` is the start of the mapping that `_map` keeps; a page is aligned for it.
        unsafe { self.word.as_ref() }
    }
}

fn wiped_page() -> Option<WipedPage> {
    let map = MmapRaw::from(MmapOptions::new().len(PAGE_LEN).map_anon().ok()?);
    wipe_on_fork(&map)?;
    let page = WipedPage {
        word: NonNull::new(map.as_mut_ptr().cast())?,
        _map: map,
    };
    // Relaxed: read by this process, or wiped.
    page.get().store(1, Ordering::Relaxed);
    Some(page)
}

/// Asks the kernel to wipe the page in fork children.
fn wipe_on_fork(map: &MmapRaw) -> Option<()> {
    // SAFETY: the whole of a private anonymous mapping of ours, which nobody refers to yet; the
    // advice changes what a fork child sees, not what we see.
    unsafe { madvise(map.as_mut_ptr().cast(), map.len(), Advice::LinuxWipeOnFork) }.ok()
}
