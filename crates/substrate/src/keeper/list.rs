//! The list of robust futexes that the kernel walks when its thread ends: what it reads, and where it lies.
//!
//! Contract: head and nodes do not move and are not freed before the thread has ended; a node leads to a node or
//! to the head, never elsewhere. Linking and unlinking, and their order, are the [keeper's](super).

use std::sync::Arc;

use memmap2::{MmapOptions, MmapRaw};
use rustix::io::Errno;

use super::KeeperError;
use crate::region::Region;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The head of the kernel's list: `struct robust_list_head` of `linux/futex.h`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Head {
    /// Address of the first node, or of this field when the list is empty.
    pub(super) next: AtomicU64,
    /// What the kernel adds to a node's address to find its word.
    distance: AtomicU64,
    /// Address of the node that is being linked or unlinked, or 0.
    pub(super) pending: AtomicU64,
}

/// What the kernel reads; kept until the keeper thread has ended.
#[derive(Debug)]
pub(super) struct List {
    pub(super) head: Box<Head>,
    /// As long as the region; only the pages of nodes in use are ever touched.
    shadow: MmapRaw,
    region: Arc<Region>,
}

impl List {
    pub(super) fn new(region: &Arc<Region>) -> Result<Self, KeeperError> {
        let len = usize::try_from(region.region_len()).unwrap_or(usize::MAX);
        let shadow = MmapOptions::new()
            .len(len)
            .map_anon()
            .map_err(KeeperError::Start)?;
        let shadow = MmapRaw::from(shadow);
        // Only its address: shadow and region are parallel, so the first word stands for all.
        let first: &AtomicU32 = region.at(0)?;
        let distance = (first.as_ptr().addr() as u64).wrapping_sub(shadow.as_ptr().addr() as u64);
        let head = Box::new(Head {
            next: AtomicU64::new(0),
            distance: AtomicU64::new(distance),
            pending: AtomicU64::new(0),
        });
        // Relaxed: no thread has seen it yet.
        head.next.store(head.address(), Ordering::Relaxed);
        Ok(Self {
            head,
            shadow,
            region: Arc::clone(region),
        })
    }

    /// Without robust lists.
    #[cfg(bumpless_portable)]
    pub(super) fn register_this_thread(&self) -> Result<u32, Errno> {
        Err(Errno::NOSYS)
    }

    /// Makes this list the calling thread's; its thread id.
    #[cfg(not(bumpless_portable))]
    pub(super) fn register_this_thread(&self) -> Result<u32, Errno> {
        let head: *const Head = &raw const *self.head;
        // SAFETY: the head is a `robust_list_head` on the heap that does not move; it and every node
        // it will lead to live until the thread has ended, because the thread holds this list.
        let answer = unsafe { libc::syscall(libc::SYS_set_robust_list, head, size_of::<Head>()) };
        if answer != 0 {
            let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
            return Err(Errno::from_raw_os_error(errno));
        }
        Ok(rustix::thread::gettid()
            .as_raw_nonzero()
            .get()
            .unsigned_abs())
    }

    /// The word at `offset`, its node, and the node's address.
    #[inline]
    pub(super) fn place(&self, offset: u64) -> Result<(&AtomicU32, &AtomicU64, u64), KeeperError> {
        let limit = self.region.region_len();
        if !offset.is_multiple_of(8) || offset.checked_add(8).is_none_or(|end| end > limit) {
            return Err(KeeperError::NoSuchWord { offset, limit });
        }
        let word = self.region.at(offset)?;
        let node = self.node(offset);
        Ok((word, node, node.as_ptr().addr() as u64))
    }

    /// The node at `offset`, which `place` has accepted.
    #[inline]
    fn node(&self, offset: u64) -> &AtomicU64 {
        let place = self.shadow.as_mut_ptr().wrapping_add(offset as usize);
        // SAFETY: `place` checked that 8 bytes at `offset`, a multiple of 8, lie within the region,
        // whose length the shadow has (see `new`); a mapping starts at a page, so the place is
        // aligned; the shadow is private, lives as long as `self`, and is only used through atomics.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    /// The offsets of the words that the kernel would find, by walking the list as it does.
    #[cfg(all(test, not(bumpless_portable)))]
    pub(super) fn walk(&self) -> Vec<u64> {
        let shadow = self.shadow.as_mut_ptr().addr() as u64;
        let mut found = Vec::new();
        // Relaxed, both: nobody changes the list meanwhile.
        let mut next = self.head.next.load(Ordering::Relaxed);
        while next != self.head.address() {
            found.push(next - shadow);
            next = self.node(next - shadow).load(Ordering::Relaxed);
        }
        found
    }

    /// The link in the node at an offset that `place` has accepted; without one, in the head.
    #[inline]
    pub(super) fn link(&self, offset: Option<&u64>) -> &AtomicU64 {
        offset.map_or(&self.head.next, |offset| self.node(*offset))
    }
}

impl Head {
    fn address(&self) -> u64 {
        let address: *const Self = self;
        address.expose_provenance() as u64
    }
}
