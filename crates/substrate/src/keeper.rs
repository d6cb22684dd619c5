//! Kernel death certificates: a word in shared memory that the kernel marks when a process ends.
//!
//! Contract: while a word is armed it holds the keeper thread's id and WAITERS. When the process
//! ends, in whatever way, or executes another program, the kernel replaces the id by OWNER_DIED and
//! wakes one sleeper of the word, before it tears the address space down. A word that is not armed
//! is never written by the kernel.
//!
//! How: the kernel keeps a list of robust futexes for each thread (`set_robust_list(2)`) and walks it
//! when the thread ends. A *keeper* thread, which does nothing but live as long as the process, owns
//! such a list. The list's nodes lie in a private shadow of the region, each at the place of its word,
//! so that the kernel finds the word at a constant distance from the node and nothing of the list
//! lies in memory that others write.
//!
//! ```text
//!   head ──▶ node of word 7 ──▶ node of word 2 ──▶ head        (private memory, an address each)
//!                 │                  │ + distance
//!                 ▼                  ▼
//!            word 7 in region   word 2 in region
//!
//!   arm:     pending = node │ word = id, WAITERS │ node.next = head.next │ head.next = node │ pending = 0
//!   disarm:  pending = node │ previous.next = node.next │ word = 0 │ pending = 0
//! ```
//! The kernel also looks at `pending`, so a process that dies between two of these steps is marked if
//! its word names it, and only then. Every step is a release store: the kernel, which may walk the list
//! on another core while the last instructions of a dying process still run, sees them in order.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::io::Errno;

use crate::fork_guard::ForkGuard;
use crate::region::{Region, RegionError};
use crate::sync::Ordering;

mod list;
mod signals;

use list::List;
use signals::SignalsBlocked;

/// Set by the kernel in an armed word when its owner ended.
pub const OWNER_DIED: u32 = 0x4000_0000;

/// Set in an armed word from the start: the kernel then wakes a sleeper.
pub const WAITERS: u32 = 0x8000_0000;

/// The bits of an armed word that name the keeper thread, in the owner's pid namespace.
pub const KEEPER_MASK: u32 = 0x3fff_ffff;

/// How many words one keeper can arm: the kernel walks no further.
pub const ARMED_MAX: usize = 2_048;

/// The keeper thread's stack; it only waits.
const STACK_LEN: usize = 64 * 1024;

/// Why a word could not be armed.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// The keeper thread could not be started.
    #[error("start the keeper thread: {0}")]
    Start(std::io::Error),
    /// The kernel keeps no robust list for us: some sandboxes deny the call, and the portable tier has
    /// none.
    #[error("set_robust_list: {0}")]
    Denied(Errno),
    /// A keeper can arm only so many words.
    #[error("{found} words are armed: the limit for one process and region is {limit}")]
    TooMany {
        /// How many are armed.
        found: usize,
        /// [`ARMED_MAX`].
        limit: usize,
    },
    /// The caller is a fork child: the keeper is its parent's.
    #[error("the keeper belongs to the parent of this fork child")]
    Forked,
    /// There is no such word in the region, or its offset is no multiple of 8.
    #[error("arm the word at offset {offset}: {limit} bytes, and a multiple of 8")]
    NoSuchWord {
        /// The offset given.
        offset: u64,
        /// The region's length.
        limit: u64,
    },
    /// The region cannot be used.
    #[error(transparent)]
    Region(#[from] RegionError),
}

/// The keeper thread of one region in this process.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use bumpless_substrate::region::{Access, Format, Region};
/// # let format = Format { kind: *b"DEMO", version: 1, record_size: 64, max_capacity: 64,
/// #     region_len: |capacity| 64 + 64 * u64::from(capacity), revived: |_| () };
/// # let folder = tempfile::tempdir()?;
/// # let (region, _) = Region::create(&folder.path().join("demo"), &format, 4, Access::Private, |_| ())?;
/// # let region = std::sync::Arc::new(region);
/// use bumpless_substrate::keeper::{Keeper, KeeperError, WAITERS};
/// use bumpless_substrate::sync::{AtomicU32, Ordering};
///
/// let keeper = match Keeper::start(&region) {
///     Err(KeeperError::Denied(_)) => return Ok(()), // without certificates, then
///     started => started?,
/// };
/// keeper.arm(64)?; // the word at offset 64
/// let word: &AtomicU32 = region.at(64)?;
/// assert_eq!(word.load(Ordering::Relaxed), keeper.id() | WAITERS);
/// keeper.disarm(64)?;
/// assert_eq!(word.load(Ordering::Relaxed), 0);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Keeper {
    list: Arc<List>,
    /// Offsets of the armed words, the last one last: each one's node leads to that of the one before it. Held
    /// over each change of the list.
    armed: Mutex<Vec<u64>>,
    id: u32,
    guard: ForkGuard,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// Starts the thread, with all signals blocked. Cost: a thread of 64 KiB stack.
    ///
    /// # Errors
    /// [`KeeperError::Start`], [`KeeperError::Denied`].
    pub fn start(region: &Arc<Region>) -> Result<Self, KeeperError> {
        let list = Arc::new(List::new(region)?);
        let (stop, stopped) = channel::<()>();
        let (report, reported) = channel();
        let lists = Arc::clone(&list);
        let masked = SignalsBlocked::new();
        let thread = std::thread::Builder::new()
            .name("bumpless-keeper".to_owned())
            .stack_size(STACK_LEN)
            .spawn(move || {
                let registered = lists.register_this_thread();
                let keeps = registered.is_ok();
                // Nobody listens only if the caller is gone, and then the channel below ends too.
                let _ = report.send(registered);
                if keeps {
                    // Ends with the sender's drop.
                    let _ = stopped.recv();
                }
            })
            .map_err(KeeperError::Start)?;
        drop(masked);
        let registered = reported
            .recv()
            .map_err(|_| KeeperError::Denied(Errno::SRCH))?;
        let id = match registered {
            Ok(id) => id,
            Err(errno) => {
                // It has nothing more to do.
                let _ = thread.join();
                return Err(KeeperError::Denied(errno));
            }
        };
        Ok(Self {
            list,
            armed: Mutex::default(),
            id,
            guard: ForkGuard::new(),
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The thread's id, as armed words show it.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Arms the word at `offset`, which must belong to this process from before this call until after
    /// [`disarm`](Self::disarm): the kernel takes any word that holds the id of a thread for that
    /// thread's, and ids repeat in other pid namespaces.
    ///
    /// Only while the process owns a lock whose loss its peers can see: a process that is killed in
    /// here may leave the word armed and unmarked, and must never come to call itself alive.
    ///
    /// # Errors
    /// [`KeeperError::TooMany`], [`KeeperError::Forked`], [`KeeperError::NoSuchWord`].
    pub fn arm(&self, offset: u64) -> Result<(), KeeperError> {
        let mut armed = self.changing()?;
        let (word, node, address) = self.list.place(offset)?;
        if armed.len() >= ARMED_MAX {
            return Err(KeeperError::TooMany {
                found: armed.len(),
                limit: ARMED_MAX,
            });
        }
        let head = &self.list.head;
        // Release, each: in this order for the kernel that walks the list (see the module's text).
        head.pending.store(address, Ordering::Release);
        word.store(self.id | WAITERS, Ordering::Release);
        if !armed.contains(&offset) {
            armed.push(offset);
            // Relaxed: written under the lock that we hold.
            node.store(head.next.load(Ordering::Relaxed), Ordering::Release);
            head.next.store(address, Ordering::Release);
        }
        head.pending.store(0, Ordering::Release);
        Ok(())
    }

    /// Disarms the word at `offset` and clears it. A word that is not armed is left alone.
    ///
    /// # Errors
    /// [`KeeperError::Forked`], [`KeeperError::NoSuchWord`].
    pub fn disarm(&self, offset: u64) -> Result<(), KeeperError> {
        let mut armed = self.changing()?;
        let (word, node, address) = self.list.place(offset)?;
        let Some(index) = armed.iter().rposition(|armed| *armed == offset) else {
            return Ok(());
        };
        armed.remove(index);
        let head = &self.list.head;
        // Release, each: as in `arm`.
        head.pending.store(address, Ordering::Release);
        // Relaxed: written under the lock that we hold.
        let next = node.load(Ordering::Relaxed);
        // The one that was armed after it is there now.
        self.list
            .link(armed.get(index))
            .store(next, Ordering::Release);
        word.store(0, Ordering::Release);
        head.pending.store(0, Ordering::Release);
        Ok(())
    }

    fn changing(&self) -> Result<MutexGuard<'_, Vec<u64>>, KeeperError> {
        if self.guard.is_forked() {
            return Err(KeeperError::Forked);
        }
        // A thread cannot panic between the set's change and the list's.
        Ok(self.armed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Keeper {
    /// Ends the thread and waits for it: only then may the region be unmapped, or the kernel would
    /// write into whatever is mapped there later.
    fn drop(&mut self) {
        let (stop, thread) = (self.stop.take(), self.thread.take());
        if self.guard.is_forked() {
            // There is no such thread in a fork child, and nobody to be told.
            core::mem::forget((stop, thread));
            return;
        }
        drop(stop);
        if let Some(thread) = thread {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

// In the portable tier there is no keeper to test; that it is refused, a test in `tests/it` shows.
#[cfg(all(test, not(bumpless_portable)))]
mod tests {
    use super::*;
    use crate::region::{Access, Format};
    use crate::sync::AtomicU32;

    const WORDS: Format = Format {
        kind: *b"KEEP",
        version: 1,
        record_size: 8,
        max_capacity: 4_096,
        region_len: |capacity| 64 + 8 * u64::from(capacity),
        revived: |_| (),
    };

    fn region(folder: &tempfile::TempDir) -> Arc<Region> {
        let path = folder.path().join("words");
        let (region, _) =
            Region::create(&path, &WORDS, 4_096, Access::Private, |_| ()).expect("a region");
        Arc::new(region)
    }

    fn offset(word: u64) -> u64 {
        64 + 8 * word
    }

    /// The words that the kernel would find.
    fn walk(keeper: &Keeper) -> Vec<u64> {
        let offsets = keeper.list.walk();
        offsets
            .into_iter()
            .map(|offset| (offset - 64) / 8)
            .collect()
    }

    #[test]
    fn the_list_holds_exactly_the_armed_words_whatever_the_order_of_disarming() {
        let folder = tempfile::tempdir().expect("a folder");
        let region = region(&folder);
        let keeper = Keeper::start(&region).expect("a keeper");
        for word in 0..5 {
            keeper.arm(offset(word)).expect("armed");
        }
        assert_eq!(walk(&keeper), [4, 3, 2, 1, 0]);
        for (word, left) in [(2, vec![4, 3, 1, 0]), (4, vec![3, 1, 0]), (0, vec![3, 1])] {
            keeper.disarm(offset(word)).expect("disarmed");
            assert_eq!(walk(&keeper), left);
            let word: &AtomicU32 = region.at(offset(word)).expect("a word");
            assert_eq!(word.load(Ordering::Relaxed), 0);
        }
        keeper.arm(offset(3)).expect("armed twice");
        assert_eq!(walk(&keeper), [3, 1]);
    }

    #[test]
    fn the_limit_of_the_kernels_walk_is_an_error_with_both_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        let keeper = Keeper::start(&region(&folder)).expect("a keeper");
        for word in 0..ARMED_MAX as u64 {
            keeper.arm(offset(word)).expect("armed");
        }
        let error = keeper
            .arm(offset(ARMED_MAX as u64))
            .expect_err("one too many");
        assert!(
            error
                .to_string()
                .contains("2048 words are armed: the limit"),
            "{error}"
        );
        keeper.disarm(offset(7)).expect("disarmed");
        keeper.arm(offset(ARMED_MAX as u64)).expect("room again");
    }

    #[test]
    fn a_thread_that_ends_with_armed_words_marks_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let region = region(&folder);
        let keeper = Keeper::start(&region).expect("a keeper");
        keeper.arm(offset(9)).expect("armed");
        drop(keeper);
        let word: &AtomicU32 = region.at(offset(9)).expect("a word");
        assert_eq!(word.load(Ordering::Relaxed), OWNER_DIED | WAITERS);
    }

    #[test]
    fn words_that_are_none_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let keeper = Keeper::start(&region(&folder)).expect("a keeper");
        for offset in [63, 68, 64 + 8 * 4_096, u64::MAX - 7] {
            let error = keeper.arm(offset).expect_err("no such word");
            assert!(matches!(error, KeeperError::NoSuchWord { .. }), "{error}");
        }
    }
}
