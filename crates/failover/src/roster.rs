//! Whom a scan has to look at, and what it remembers of each.
//!
//! Contract: no owner is passed by. Whoever claims a slot has set the slot's bit, and then counted the claim
//! in the header, before the slot is anything but free. So as long as the count stands still, no word of the
//! occupancy can have got a bit that was not there when all words were gone through, and the words found then
//! are all that there are. Of a large table's words that takes longer than looking at a few owners does. A
//! count that is somebody's damage is made good by the round, now and then.
//!
//! ```text
//!   count read ─ as before ──────────────▶ the words known, as they are now
//!        │
//!        └─ another one, or the round ──▶ all words gone through: those with a bit are known from now on
//! ```

use bumpless_heartbeat::occupancy::Occupancy;

use crate::judge::Seen;

/// Slots in a word of the occupancy.
pub const WORD: usize = 64;

/// What is remembered of a word's owners, by slot.
pub type Owners = [Seen; WORD];

/// The words with owners, and everything remembered.
#[derive(Debug)]
pub struct Roster {
    /// The count of claims before all words were gone through last; `None` before the first time.
    claims: Option<u32>,
    /// Where their owners are remembered, of the words that had a bit set then, in rising order.
    known: Vec<Known>,
    /// The same of every word that ever had one, by word.
    places: Vec<Option<u32>>,
    /// Kept when a word empties: an owner is another one by its claim.
    owners: Vec<Owners>,
}

/// A word with owners.
#[derive(Debug, Clone, Copy)]
struct Known {
    word: u32,
    place: u32,
    /// Those of its owners whom this scan has still to judge.
    left: u64,
}

impl Roster {
    /// Nobody is known yet, of a table with so many slots.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let words = capacity.div_ceil(WORD);
        Self {
            claims: None,
            known: Vec::with_capacity(words),
            places: vec![None; words],
            // Memory that is not touched costs nothing, and no scan has to ask for more.
            owners: Vec::with_capacity(words),
        }
    }

    /// Learns which words have owners: at once if there was no claim since the last time, unless it is a
    /// `round`.
    #[inline]
    pub fn update(&mut self, occupancy: Occupancy<'_>, round: bool) {
        let claims = occupancy.claims();
        if round || self.claims != Some(claims) {
            self.go_through(occupancy);
            self.claims = Some(claims);
        }
    }

    #[cold]
    #[inline(never)]
    fn go_through(&mut self, occupancy: Occupancy<'_>) {
        let Self {
            known,
            places,
            owners,
            ..
        } = self;
        known.clear();
        occupancy.for_each_word(|first, _| {
            let word = first / WORD as u32;
            let Some(place) = places.get_mut(word as usize) else {
                return;
            };
            let place = *place.get_or_insert_with(|| {
                owners.push([Seen::default(); WORD]);
                owners.len() as u32 - 1
            });
            known.push(Known {
                word,
                place,
                left: 0,
            });
        });
    }

    /// Does `look` for each word with owners: with its index, the bits set now, and what is remembered; it
    /// tells whom it leaves to be judged, and whether it has left anybody is told in the end. Bits beyond the
    /// capacity are somebody's damage, and not taken away here.
    #[inline(always)]
    pub fn look_at_each_word(
        &mut self,
        occupancy: Occupancy<'_>,
        mut look: impl FnMut(u32, u64, &mut Owners) -> u64,
    ) -> bool {
        let mut any = 0;
        for known in &mut self.known {
            let bits = occupancy.word(known.word);
            if let Some(owners) = self.owners.get_mut(known.place as usize) {
                known.left = look(known.word, bits, owners);
                any |= known.left;
            }
        }
        any != 0
    }

    /// Does `judge` for each word in which somebody was left.
    #[inline]
    pub fn judge_the_left(&mut self, mut judge: impl FnMut(u32, u64, &mut Owners)) {
        for known in self.known.iter().filter(|known| known.left != 0) {
            if let Some(owners) = self.owners.get_mut(known.place as usize) {
                judge(known.word, known.left, owners);
            }
        }
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_heartbeat::epoch::Beat;
    use bumpless_substrate::layout::Shared;
    use bumpless_substrate::sync::{AtomicU32, AtomicU64, Ordering};

    use super::*;

    const WORDS: usize = 6;

    /// The occupancy of a table.
    struct Bits {
        claims: AtomicU32,
        summary: [AtomicU64; 1],
        words: [AtomicU64; WORDS],
    }

    impl Bits {
        fn zeroed() -> Self {
            Self {
                claims: Shared::zeroed(),
                summary: Shared::zeroed(),
                words: Shared::zeroed(),
            }
        }

        fn occupancy(&self) -> Occupancy<'_> {
            let capacity = (WORDS * WORD) as u32;
            Occupancy::new(&self.summary, &self.words, &self.claims, capacity)
        }

        /// What a scan meets, and leaves an epoch behind for the first slot of each word.
        fn met(&self, roster: &mut Roster, round: bool) -> Vec<(u32, u64, u64)> {
            let mut met = Vec::new();
            roster.update(self.occupancy(), round);
            roster.look_at_each_word(self.occupancy(), |_, bits, _| bits);
            roster.judge_the_left(|word, bits, owners| {
                met.push((word, bits, owners[0].beat.epoch()));
                owners[0].beat = Beat::new(0, u64::from(word) + 1);
            });
            met
        }
    }

    fn roster() -> Roster {
        Roster::new(WORDS * WORD)
    }

    #[test]
    fn every_claim_is_met_by_the_next_scan_in_the_order_of_slots() {
        let (bits, mut roster) = (Bits::zeroed(), roster());
        assert_eq!(bits.met(&mut roster, false), []);
        bits.occupancy().set(130);
        assert_eq!(bits.met(&mut roster, false), [(2, 0b100, 0)]);
        bits.occupancy().set(3);
        bits.occupancy().set(131);
        let met = bits.met(&mut roster, false);
        assert_eq!(met, [(0, 0b1000, 0), (2, 0b1100, 3)]);
    }

    #[test]
    fn a_word_that_empties_is_passed_by_and_its_memory_is_kept() {
        let (bits, mut roster) = (Bits::zeroed(), roster());
        bits.occupancy().set(64);
        assert_eq!(bits.met(&mut roster, false), [(1, 1, 0)]);
        bits.occupancy().clear(64);
        for round in [false, true] {
            assert_eq!(bits.met(&mut roster, round), []);
        }
        bits.occupancy().set(64);
        assert_eq!(bits.met(&mut roster, false), [(1, 1, 2)]);
    }

    #[test]
    fn a_count_that_is_damaged_hides_nobody_beyond_the_round() {
        let (bits, mut roster) = (Bits::zeroed(), roster());
        assert_eq!(bits.met(&mut roster, false), []);
        bits.occupancy().set(7);
        bits.claims.store(0, Ordering::Relaxed);
        assert_eq!(bits.met(&mut roster, false), []);
        assert_eq!(bits.met(&mut roster, true), [(0, 1 << 7, 0)]);
    }
}
