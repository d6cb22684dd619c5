//! The table's header, and where everything lies in the file.
//!
//! Contract: the numbers here are the file format; `docs/layout.md` says the same in prose.
//!
//! ```text
//!      0  preamble of the region (substrate)                          64 B
//!     64  epoch line: read by every beat, written by the primary watchdog
//!    128  watchdog line: lease, period, recorded deaths
//!    192  doorbell line: doorbell, claims
//!    256  occupancy: summary words, then a bit per slot, each rounded up to 64 B
//!         slots 64 B each │ identities 128 B each │ verdicts 64 B each
//! ```

use bumpless_substrate::region::{Format, Region};
use bumpless_substrate::sync::{AtomicU32, AtomicU64};

use crate::epoch::EpochWord;
use crate::identity_line::IdentityLine;
use crate::slot::Slot;
use crate::verdict_line::VerdictLine;

/// The most slots a table can have: the lease word names a slot with 16 bits.
pub const CAPACITY_MAX: usize = 1 << 16;

/// Bit 0 of the doorbell: set by who is about to sleep on it; a registration then wakes the word.
pub const DOORBELL_WAITED_ON: u32 = 1;

bumpless_substrate::shared_struct! {
    /// Lines 1 to 3 of the file.
    pub struct TableHeader[size = 192, align = 64] {
        /// Line 1. Writer: the primary watchdog (tick), whoever replaces the table (SUPERSEDED).
        0 => pub epoch: EpochWord,
        /// Zero.
        8 => spare_epoch: [AtomicU64; 7],
        /// Line 2. `slot:16 | generation:28 | term:20`. Writer: watchdogs, by CAS.
        64 => pub lease: AtomicU64,
        /// The primary watchdog's planned interval, ns; 0 = none promised. Writer: it.
        72 => pub period_ns: AtomicU64,
        /// Rises whenever a death was recorded; tells the scan to look at verdict lines. Writer:
        /// whoever records one.
        80 => pub deaths_hint: AtomicU64,
        /// The primary watchdog's grace, epochs; 0 = none said. For people. Writer: it.
        88 => pub grace_epochs: AtomicU64,
        /// Zero.
        96 => spare_watchdog: [AtomicU64; 4],
        /// Line 3. Futex: rises by two at each registration; bit 0 = somebody sleeps on it. Writer:
        /// registrants; bit 0: sleepers, and cleared by the registrant that wakes them.
        128 => pub doorbell: AtomicU32,
        /// Rises by one before each claim, behind the slot's occupancy bit; tells the scan to go
        /// through the occupancy. Writer: registrants.
        132 => pub claims: AtomicU32,
        /// Zero.
        136 => spare_door: [AtomicU64; 7],
    }
}

/// Where the parts of a table of one capacity lie, in bytes from the start of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    pub summary: u64,
    pub summary_words: u32,
    pub occupancy: u64,
    pub occupancy_words: u32,
    pub slots: u64,
    pub identities: u64,
    pub verdicts: u64,
    pub end: u64,
}

/// Where [`TableHeader`] lies.
pub(crate) const HEADER: u64 = 64;

impl Places {
    pub(crate) fn of(capacity: u32) -> Self {
        let line = |bytes: u64| bytes.next_multiple_of(64);
        let occupancy_words = capacity.div_ceil(64);
        let summary_words = occupancy_words.div_ceil(64);
        let summary = HEADER + size_of::<TableHeader>() as u64;
        let occupancy = summary + line(u64::from(summary_words) * 8);
        let slots = occupancy + line(u64::from(occupancy_words) * 8);
        let identities = slots + u64::from(capacity) * size_of::<Slot>() as u64;
        let verdicts = identities + u64::from(capacity) * size_of::<IdentityLine>() as u64;
        let end = verdicts + u64::from(capacity) * size_of::<VerdictLine>() as u64;
        Self {
            summary,
            summary_words,
            occupancy,
            occupancy_words,
            slots,
            identities,
            verdicts,
            end,
        }
    }
}

/// The file format of a heartbeat table.
pub(crate) const FORMAT: Format = Format {
    kind: *b"HBTB",
    version: 1,
    record_size: 64,
    max_capacity: CAPACITY_MAX as u32,
    region_len: |capacity| Places::of(capacity).end,
    revived: clear_keepers,
};

/// No process of another boot keeps a certificate: the words say "disarmed", so that a free byte lock
/// alone proves the owners gone.
fn clear_keepers(region: &Region) {
    let places = Places::of(region.capacity());
    // The copy was checked to be a whole table before it is revived.
    for slot in region
        .slice::<Slot>(places.slots, region.capacity())
        .into_iter()
        .flatten()
    {
        slot.disarm();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_are_the_documented_ones() {
        let one = Places::of(1);
        assert_eq!((one.summary, one.occupancy, one.slots), (256, 320, 384));
        assert_eq!((one.identities, one.verdicts, one.end), (448, 576, 640));
        let most = Places::of(CAPACITY_MAX as u32);
        assert_eq!((most.summary_words, most.occupancy_words), (16, 1024));
        assert_eq!(most.end, 256 + 128 + 8192 + 65_536 * 256);
    }
}
