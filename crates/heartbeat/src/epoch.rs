//! Epochs: the table's clock, which only a watchdog ticks, and a slot's last beat on it.
//!
//! Contract: an epoch has 48 bits; at one tick per millisecond it lasts 8,900 years, and at its end
//! it stops rather than wraps. The header's word carries SUPERSEDED in its top bit, so that the one
//! load which every beat makes anyway also tells that the table was replaced. A slot's word carries
//! the low 16 bits of the generation that wrote it, so that the late store of a former owner is no
//! beat of the present one: below the epoch, so that a beat is the header's word, shifted, whatever its
//! top bits say.
//!
//! ```text
//!   header:  63           62..48  47                0      slot:  63               16 15         0
//!           ┌────────────┬───────┬───────────────────┐           ┌───────────────────┬────────────┐
//!           │ SUPERSEDED │   0   │ epoch             │           │ epoch             │ generation │
//!           └────────────┴───────┴───────────────────┘           └───────────────────┴────────────┘
//! ```

use bumpless_substrate::sync::{AtomicU64, Ordering};

/// The last epoch: the table's clock stops there.
pub const EPOCH_MAX: u64 = (1 << 48) - 1;

const SUPERSEDED: u64 = 1 << 63;

/// Below the epoch in a slot's word.
const GENERATION_BITS: u32 = 16;

bumpless_substrate::shared_struct! {
    /// The table's clock: written by the primary watchdog, read by every beat.
    pub struct EpochWord[size = 8, align = 8] {
        /// Epochs; top bit SUPERSEDED.
        0 => word: AtomicU64,
    }
}

/// One epoch, in the difference of two beats.
pub const ONE_EPOCH: u64 = 1 << GENERATION_BITS;

/// What the header's word says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableEpoch(u64);

impl TableEpoch {
    /// This epoch, of a table that was not replaced.
    #[must_use]
    pub const fn of(epoch: u64) -> Self {
        Self(epoch & EPOCH_MAX)
    }

    /// The epoch, without the flag.
    #[must_use]
    #[inline]
    pub const fn epoch(self) -> u64 {
        self.0 & EPOCH_MAX
    }

    /// Whether another file has taken the table's place.
    #[must_use]
    #[inline(always)]
    pub const fn is_superseded(self) -> bool {
        self.0 & SUPERSEDED != 0
    }
}

impl EpochWord {
    /// The table's epoch now.
    #[must_use]
    #[inline(always)]
    pub fn now(&self) -> TableEpoch {
        // Relaxed: the value is compared, nothing is read through it.
        TableEpoch(self.word.load(Ordering::Relaxed))
    }

    /// One tick from `seen`, if nobody else ticked since; the new epoch. At [`EPOCH_MAX`] it stays.
    ///
    /// # Errors
    /// What was found instead: another watchdog ticks.
    pub fn tick(&self, seen: TableEpoch) -> Result<TableEpoch, TableEpoch> {
        let next = if seen.epoch() == EPOCH_MAX {
            seen.0
        } else {
            seen.0 + 1
        };
        // Relaxed: the epoch orders nothing; verdicts rest on the slots' own words.
        self.word
            .compare_exchange(seen.0, next, Ordering::Relaxed, Ordering::Relaxed)
            .map(|_| TableEpoch(next))
            .map_err(TableEpoch)
    }

    /// Tells every later beat that the table was replaced. Never taken back.
    pub fn supersede(&self) {
        // Relaxed: a flag on its own.
        self.word.fetch_or(SUPERSEDED, Ordering::Relaxed);
    }
}

/// A slot's last beat: which generation beat, and at which epoch. Any bit pattern is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat(u64);

impl Beat {
    /// The beat of `generation` at `epoch`.
    #[must_use]
    #[inline(always)]
    pub const fn new(generation: u32, epoch: u64) -> Self {
        Self((epoch & EPOCH_MAX) << GENERATION_BITS | generation as u16 as u64)
    }

    /// As found in a slot.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits of the word.
    #[must_use]
    #[inline(always)]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The beat of the same generation at another epoch.
    #[must_use]
    #[inline(always)]
    pub const fn at(self, epoch: u64) -> Self {
        Self::new(self.0 as u16 as u32, epoch)
    }

    /// The epoch of the beat, whoever made it.
    #[must_use]
    #[inline(always)]
    pub const fn epoch(self) -> u64 {
        self.0 >> GENERATION_BITS
    }

    /// How far this beat is behind `due`: [`ONE_EPOCH`] for each epoch, and below that what their
    /// generations differ by. Modulo 2^64: one that is ahead is further behind than any.
    #[must_use]
    #[inline(always)]
    pub const fn behind(self, due: Self) -> u64 {
        due.0.wrapping_sub(self.0)
    }

    /// The epoch of the beat, if `generation` made it.
    #[must_use]
    #[inline]
    pub const fn epoch_of(self, generation: u32) -> Option<u64> {
        if self.0 as u16 == generation as u16 {
            Some(self.epoch())
        } else {
            None
        }
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_substrate::layout::Shared;

    use super::*;

    #[test]
    fn a_tick_is_exactly_one_and_needs_the_epoch_it_saw() {
        let word = EpochWord::zeroed();
        let seen = word.now();
        assert_eq!(word.tick(seen).unwrap().epoch(), 1);
        assert_eq!(word.tick(seen).unwrap_err().epoch(), 1);
    }

    #[test]
    fn superseded_is_masked_and_survives_ticks() {
        let word = EpochWord::zeroed();
        word.supersede();
        let now = word.tick(word.now()).unwrap();
        assert!(now.is_superseded() && word.now().is_superseded());
        assert_eq!(now.epoch(), 1);
    }

    #[test]
    fn the_clock_stops_at_its_end() {
        let word = EpochWord::zeroed();
        word.word.store(EPOCH_MAX, Ordering::Relaxed);
        assert_eq!(word.tick(word.now()).unwrap().epoch(), EPOCH_MAX);
    }

    #[test]
    fn the_beat_of_another_generation_is_no_beat() {
        let beat = Beat::new(0x1_0005, 99);
        assert_eq!(beat.epoch_of(5), Some(99));
        assert_eq!(beat.epoch_of(6), None);
        assert_eq!(beat.at(7), Beat::new(5, 7));
        assert_eq!(beat.at(u64::MAX).epoch(), EPOCH_MAX);
    }

    #[test]
    fn only_a_beat_of_the_same_generation_is_whole_epochs_behind() {
        let due = Beat::new(5, 99);
        assert_eq!(Beat::new(5, 99).behind(due), 0);
        assert_eq!(Beat::new(5, 90).behind(due), 9 * ONE_EPOCH);
        for other in [4, 6, 0, u32::from(u16::MAX)] {
            for epoch in [0, 98, 99, 100] {
                let behind = Beat::new(other, epoch).behind(due);
                assert!(!behind.is_multiple_of(ONE_EPOCH), "{other} {epoch}");
            }
        }
        let ahead = Beat::new(5, 100).behind(due);
        assert!(ahead / ONE_EPOCH > EPOCH_MAX / 2, "{ahead}");
    }
}
