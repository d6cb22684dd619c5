//! The occupancy of a table with two words of slots, without the table.

use std::sync::Arc;

use bumpless_heartbeat::occupancy::Occupancy;
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU32, AtomicU64};

/// Slots: two words.
pub const CAPACITY: u32 = 128;

/// The two levels for [`CAPACITY`] slots, and the count.
pub struct Bits {
    claims: AtomicU32,
    summary: [AtomicU64; 1],
    words: [AtomicU64; 2],
}

impl Bits {
    /// Nobody is there.
    pub fn zeroed() -> Arc<Self> {
        Arc::new(Self {
            claims: Shared::zeroed(),
            summary: Shared::zeroed(),
            words: Shared::zeroed(),
        })
    }

    /// As a table has it.
    pub fn occupancy(&self) -> Occupancy<'_> {
        Occupancy::new(&self.summary, &self.words, &self.claims, CAPACITY)
    }

    /// The slots whose bit is set.
    pub fn found(&self) -> Vec<u32> {
        self.occupancy().iter().collect()
    }
}
