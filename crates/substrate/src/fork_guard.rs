//! Knowing that one is a fork child: one load.
//!
//! Contract: a guard is true in the process that made it, and in no fork child of it. What a child
//! inherits it must leave alone: the slots, locks and certificates are its parent's.
//!
//! The kernel wipes the guard's page in a fork child (`MADV_WIPEONFORK`, since Linux 4.14). Where it
//! does not, the process id is compared instead, which costs a system call (about 50 times as much).
//! A vfork child shares its parent's memory and cannot be told apart until it executes a program.

use core::num::NonZeroU32;
use core::ptr::NonNull;

use memmap2::{MmapOptions, MmapRaw};
use rustix::mm::{Advice, madvise};

use crate::locks::our_pid;
use crate::sync::{AtomicU32, Ordering};

const PAGE_LEN: usize = 4096;

/// Tells a process from its fork children.
///
/// ```
/// use bumpless_substrate::fork_guard::ForkGuard;
/// let guard = ForkGuard::new();
/// assert!(!guard.is_forked());
/// let three = std::num::NonZeroU32::new(3).unwrap();
/// let guard = ForkGuard::with_token(three);
/// assert_eq!(guard.holds(three), guard.is_cheap());
/// ```
#[derive(Debug)]
pub struct ForkGuard {
    /// The token; 0 in a fork child, and where that cannot be had.
    word: NonNull<AtomicU32>,
    /// Keeps the word's page mapped.
    _page: Option<MmapRaw>,
    is_cheap: bool,
    made_by: u32,
}

/// What a guard without a page points to: no process has it.
static NOBODY: AtomicU32 = AtomicU32::new(0);

// SAFETY: the word is an atomic, and the mapping neither moves nor ends before the guard is dropped.
unsafe impl Send for ForkGuard {}
// SAFETY: as for `Send`.
unsafe impl Sync for ForkGuard {}

impl ForkGuard {
    /// A guard of the calling process, whose token is 1.
    #[must_use]
    pub fn new() -> Self {
        Self::with_token(NonZeroU32::MIN)
    }

    /// As [`new`](Self::new), with a number that [`holds`](Self::holds) compares.
    #[must_use]
    pub fn with_token(token: NonZeroU32) -> Self {
        let page = MmapOptions::new().len(PAGE_LEN).map_anon();
        let page = page.map(MmapRaw::from).ok();
        let wiped = page.as_ref().filter(|page| wipe_on_fork(page).is_some());
        let word = wiped.and_then(|page| NonNull::new(page.as_mut_ptr().cast()));
        let guard = Self {
            word: word.unwrap_or(NonNull::from(&NOBODY)),
            is_cheap: word.is_some(),
            _page: page,
            made_by: our_pid(),
        };
        if guard.is_cheap {
            // Relaxed: read by this process, or wiped.
            guard.word().store(token.get(), Ordering::Relaxed);
        }
        guard
    }

    /// Whether the caller is a fork child of the process that made the guard.
    #[must_use]
    #[inline]
    pub fn is_forked(&self) -> bool {
        if self.is_cheap {
            // Relaxed: the kernel wiped the page before the child ran.
            self.word().load(Ordering::Relaxed) == 0
        } else {
            our_pid() != self.made_by
        }
    }

    /// Whether the guard is known, by one load, to have been made with `token` by the calling process.
    /// False in a fork child, for any other token, and always where the check is not
    /// [cheap](Self::is_cheap), which has to be asked for by [`is_forked`](Self::is_forked) then.
    #[must_use]
    #[inline(always)]
    pub fn holds(&self, token: NonZeroU32) -> bool {
        // Relaxed: as in `is_forked`. A wiped page has no token's value.
        self.word().load(Ordering::Relaxed) == token.get()
    }

    /// Whether the check is one load; if not, the kernel cannot wipe pages on fork.
    #[must_use]
    pub fn is_cheap(&self) -> bool {
        self.is_cheap
    }

    #[inline(always)]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: the start of the mapping that `_page` keeps, which is aligned for it, or a static.
        unsafe { self.word.as_ref() }
    }
}

impl Default for ForkGuard {
    fn default() -> Self {
        Self::new()
    }
}

/// Asks the kernel to wipe the page in fork children.
fn wipe_on_fork(map: &MmapRaw) -> Option<()> {
    // SAFETY: the whole of a private anonymous mapping of ours, which nobody refers to yet; the
    // advice changes what a fork child sees, not what we see.
    unsafe { madvise(map.as_mut_ptr().cast(), map.len(), Advice::LinuxWipeOnFork) }.ok()
}
