//! How a caller names a slot: by [`Handle`] if it owns it, by index if it looks.
//!
//! Contract: a handle is the exact claim word of one ownership in one table. Of another table,
//! another generation, or after release it is an error, never somebody else's slot.

use core::fmt;
#[cfg(not(bumpless_loom))]
use core::num::NonZeroU32;
use core::num::NonZeroU64;

use bumpless_substrate::claim::Claim;

/// The proof of one registration: needed to beat, mark, complete and unregister. `Copy`: any thread
/// of the process may use it, and after one of them unregistered the others get `StaleHandle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) live: Claim,
    /// The table's tag, and below it the slot's index: one load for both.
    pub(crate) place: NonZeroU64,
}

impl Handle {
    /// The owner of `slot` in the table with this tag.
    #[cfg(not(bumpless_loom))]
    pub(crate) fn new(live: Claim, table: NonZeroU32, slot: u32) -> Self {
        let place = NonZeroU64::from(table).get() << 32 | u64::from(slot);
        // Never the other value: the tag is not 0.
        let place = NonZeroU64::new(place).unwrap_or(NonZeroU64::MAX);
        Self { live, place }
    }

    /// The index of the slot.
    #[must_use]
    #[inline(always)]
    pub const fn slot(self) -> usize {
        self.index() as usize
    }

    #[inline(always)]
    pub(crate) const fn index(self) -> u32 {
        self.place.get() as u32
    }

    /// The table's tag: the low half of its creation id, as a rule.
    #[cfg(not(bumpless_loom))]
    #[inline(always)]
    pub(crate) const fn table(self) -> Option<NonZeroU32> {
        NonZeroU32::new((self.place.get() >> 32) as u32)
    }

    /// Which claim of the slot this is.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.live.generation()
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} (generation {})", self.slot(), self.generation())
    }
}

/// What names a slot to look at.
pub trait SlotIndex {
    /// The slot's index, which may lie beyond the table.
    fn slot_index(&self) -> usize;
}

impl SlotIndex for usize {
    #[inline]
    fn slot_index(&self) -> usize {
        *self
    }
}

impl SlotIndex for u32 {
    #[inline]
    fn slot_index(&self) -> usize {
        *self as usize
    }
}

impl SlotIndex for Handle {
    #[inline]
    fn slot_index(&self) -> usize {
        self.slot()
    }
}
