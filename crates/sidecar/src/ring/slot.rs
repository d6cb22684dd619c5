//! One place of a ring: a stamp, and the words of a record.
//!
//! ```text
//!   stamp = check:32 | low 32 bits of (position + 1)
//!   write:  words, relaxed ── stamp, release
//!   read:   stamp ── acquire fence ── words ── the check of the words and of the whole position fits?
//! ```
//! Contract: what is read is what was written for that position, or it is said not to be. Two producers
//! may write one place at the same time: one that stood still for so long that its place was given to a
//! later record. Whatever mixture they leave, its check does not fit. (One in 2^32 mixtures fits by chance;
//! there is one only if a producer stands still inside a push for a whole turn of the ring.)

use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU64, Ordering, fence};

/// A place for a record of `P` words.
pub trait Slot<const P: usize>: Shared {
    /// Its stamp.
    fn stamp(&self) -> &AtomicU64;
    /// Its words.
    fn words(&self) -> &[AtomicU64; P];
}

bumpless_substrate::shared_struct! {
    /// A place for an observation. Writers: producers. Readers: the consumer, and whoever looks.
    pub struct ObservationSlot[size = 32, align = 32] {
        /// `check:32 | low half of position + 1`; 0: nothing was ever written.
        0 => stamp: AtomicU64,
        /// The observation.
        8 => words: [AtomicU64; 3],
    }
}

impl Slot<3> for ObservationSlot {
    #[inline]
    fn stamp(&self) -> &AtomicU64 {
        &self.stamp
    }

    #[inline]
    fn words(&self) -> &[AtomicU64; 3] {
        &self.words
    }
}

bumpless_substrate::shared_struct! {
    /// A place for an event: two lines, fetched as a pair. Writers: producers. Readers: whoever looks.
    pub struct EventSlot[size = 128, align = 128] {
        /// `check:32 | low half of position + 1`; 0: nothing was ever written.
        0 => stamp: AtomicU64,
        /// The event.
        8 => words: [AtomicU64; 15],
    }
}

impl Slot<15> for EventSlot {
    #[inline]
    fn stamp(&self) -> &AtomicU64 {
        &self.stamp
    }

    #[inline]
    fn words(&self) -> &[AtomicU64; 15] {
        &self.words
    }
}

/// What was found at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<const P: usize> {
    /// The record of the position.
    Whole([u64; P]),
    /// The stamp of the position and words that are not its own: a late producer wrote over them, or one
    /// of the next turn does.
    Torn,
    /// Another position's stamp: the record is not finished, or gone already.
    Other,
}

/// Odd, and without a pattern: 2^64 divided by the golden ratio, and the constants of a well-known finalizer.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const OF_POSITION: u64 = 0xff51_afd7_ed55_8ccd;
const LAST: u64 = 0xc4ce_b9fe_1a85_ec53;

/// The stamp of a record at a position. The words are mixed apart from the position, so that this is done
/// by the time the position is reserved.
#[inline(always)]
fn stamp_of<const P: usize>(position: u64, words: &[u64; P]) -> u64 {
    let of_words = words.iter().fold(0_u64, |mixed, word| {
        mixed.rotate_left(23) ^ word.wrapping_mul(SPREAD)
    });
    let mixed = of_words ^ position.wrapping_mul(OF_POSITION);
    let spread = (mixed ^ mixed >> 32).wrapping_mul(LAST);
    // The upper half depends on all bits of the words and of the position.
    spread & !u64::from(u32::MAX) | u64::from(position.wrapping_add(1) as u32)
}

/// Writes the record of a position that the caller has reserved. Cost: no locked instruction.
#[inline(always)]
pub fn write<const P: usize>(slot: &impl Slot<P>, position: u64, words: &[u64; P]) {
    for (word, value) in slot.words().iter().zip(words) {
        // Relaxed: the stamp publishes them.
        word.store(*value, Ordering::Relaxed);
    }
    // Release pairs with the acquire fence behind the stamp in `read`.
    slot.stamp()
        .store(stamp_of(position, words), Ordering::Release);
}

/// Looks for the record of a position. Loads and fences only: the mapping may be read-only.
#[inline]
pub fn read<const P: usize>(slot: &impl Slot<P>, position: u64) -> Found<P> {
    // Relaxed, and a fence behind: a mapping for reading only allows no acquire load.
    let stamp = slot.stamp().load(Ordering::Relaxed);
    // Pairs with the release of the stamp in `write`.
    fence(Ordering::Acquire);
    if stamp as u32 != position.wrapping_add(1) as u32 {
        return Found::Other;
    }
    // Relaxed: whatever they are, the check tells.
    let words: [u64; P] = core::array::from_fn(|index| slot.words()[index].load(Ordering::Relaxed));
    if stamp == stamp_of(position, &words) {
        Found::Whole(words)
    } else {
        Found::Torn
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_at_its_position_and_at_no_other() {
        let slot = ObservationSlot::zeroed();
        assert_eq!(read(&slot, 0), Found::Other);
        for position in [
            0,
            7,
            u64::from(u32::MAX) - 1,
            u64::from(u32::MAX),
            u64::MAX >> 1,
        ] {
            write(&slot, position, &[1, 2, 3]);
            assert_eq!(read(&slot, position), Found::Whole([1, 2, 3]));
            assert_eq!(read(&slot, position + 1), Found::Other);
            // The same low half.
            assert_eq!(read(&slot, position ^ 1 << 32), Found::Torn);
        }
    }

    /// The formula of `docs/layout.md`, worked out elsewhere.
    #[test]
    fn the_stamp_is_the_documented_one() {
        assert_eq!(stamp_of(5, &[1, 2, 3]), 0xd18c_d10b_0000_0006);
    }

    #[test]
    fn every_changed_bit_of_a_record_is_noticed() {
        let slot = EventSlot::zeroed();
        let words: [u64; 15] = core::array::from_fn(|index| index as u64 * 0x0101_0101);
        for bit in 0..15 * 64 {
            write(&slot, 40, &words);
            slot.words[bit / 64].fetch_xor(1 << (bit % 64), Ordering::Relaxed);
            assert_eq!(read(&slot, 40), Found::Torn, "bit {bit}");
        }
    }

    #[test]
    fn every_mixture_of_two_records_is_noticed() {
        let slot = ObservationSlot::zeroed();
        let late = |position: u64| [position << 32 | 7, 0, position % 3];
        for position in 0..10_000_u64 {
            let next = position + 1024;
            for mask in 1..7_usize {
                write(&slot, next, &late(next));
                for (index, word) in late(position).iter().enumerate() {
                    if mask >> index & 1 == 1 {
                        slot.words[index].store(*word, Ordering::Relaxed);
                    }
                }
                let is_same =
                    (0..3).all(|i| mask >> i & 1 == 0 || late(position)[i] == late(next)[i]);
                let found = read(&slot, next);
                assert_eq!(
                    found == Found::Whole(late(next)),
                    is_same,
                    "{position} {mask}"
                );
                assert!(is_same || found == Found::Torn);
            }
        }
    }
}
