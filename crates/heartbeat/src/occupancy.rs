//! Which slots may be in use: a bit per slot, and a summary bit per word of them.
//!
//! Contract: a *hint* for registering and scanning. A slot that is not free has its bit set: it is set
//! before the claim, while the slot's byte lock is held, and cleared by the owner before it drops
//! that lock, so the next claimer's setting comes after (where slots have no locks, bits stay set). A
//! set bit on a free slot is harmless. A
//! summary bit is set after its word and never cleared: clearing it would need a second look, and a
//! process that dies between clearing and looking would hide a living slot. Behind both, and still
//! before the claim, the claim is counted: as long as the count stands still no bit has been set that a
//! scan does not know of, and it need not go through a large table's words.
//!
//! ```text
//!   bit set ─ summary bit set ─ claim counted ─ claim CAS      (byte lock held)
//!   released ─ bit cleared, if nothing is left behind          (byte lock held)
//! ```

use bumpless_substrate::sync::{AtomicU32, AtomicU64, Ordering};

/// The two levels and the count of claims, borrowed from the mapping.
#[derive(Debug, Clone, Copy)]
pub struct Occupancy<'a> {
    summary: &'a [AtomicU64],
    words: &'a [AtomicU64],
    claims: &'a AtomicU32,
    capacity: u32,
}

impl<'a> Occupancy<'a> {
    /// Puts the two levels together; `words` has a bit for each of `capacity` slots.
    #[must_use]
    pub fn new(
        summary: &'a [AtomicU64],
        words: &'a [AtomicU64],
        claims: &'a AtomicU32,
        capacity: u32,
    ) -> Self {
        Self {
            summary,
            words,
            claims,
            capacity,
        }
    }

    /// Says that `slot` is about to be claimed. Only with its byte lock held.
    pub fn set(self, slot: u32) {
        let word = slot / 64;
        if let Some(bits) = self.words.get(word as usize) {
            // Relaxed: a hint. A scan that misses the bit meets it next time; nothing is lost
            // meanwhile, because a slot's units live in the slot. x86 and the claim's CAS on the same
            // path make it visible before LIVE in practice; no verdict needs it.
            bits.fetch_or(1 << (slot % 64), Ordering::Relaxed);
        }
        if let Some(bits) = self.summary.get((word / 64) as usize) {
            let bit = 1 << (word % 64);
            // Relaxed: as above. Loaded first: the line is shared by all registrants.
            if bits.load(Ordering::Relaxed) & bit == 0 {
                bits.fetch_or(bit, Ordering::Relaxed);
            }
        }
        // Release pairs with `claims`: who sees this claim counted sees both bits.
        self.claims.fetch_add(1, Ordering::Release);
    }

    /// How many claims were announced, modulo 2^32. Whoever finds the same number again, and went through
    /// the words after it was read first, knows of every word that has a bit set.
    #[must_use]
    #[inline]
    pub fn claims(self) -> u32 {
        // Acquire pairs with the addition in `set`.
        self.claims.load(Ordering::Acquire)
    }

    /// The bits of one word, whose first slot is 64 times its index, as they are: also those beyond the
    /// capacity, which are somebody's damage.
    #[must_use]
    #[inline]
    pub fn word(self, index: u32) -> u64 {
        let found = self.words.get(index as usize);
        // Relaxed: a hint.
        found.map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// The bits of the word that begins with the slot `first` which stand for a slot. Others are
    /// somebody's damage.
    #[inline(always)]
    fn known(self, first: u32) -> u64 {
        match self.capacity.saturating_sub(first) {
            64.. => u64::MAX,
            few => (1 << few) - 1,
        }
    }

    /// Says that `slot` is free and empty. Only by its last owner, with its byte lock still held.
    pub fn clear(self, slot: u32) {
        if let Some(bits) = self.words.get((slot / 64) as usize) {
            // Release pairs with nothing but the byte lock: unlock and lock order it.
            bits.fetch_and(!(1 << (slot % 64)), Ordering::Release);
        }
    }

    /// The slots whose bit is set, in rising order.
    pub fn iter(self) -> impl Iterator<Item = u32> + 'a {
        let capacity = self.capacity;
        self.summary
            .iter()
            .zip(0_u32..)
            .flat_map(move |(summary, high)| {
                // Relaxed, both levels: a hint.
                bits(summary.load(Ordering::Relaxed)).flat_map(move |middle| {
                    let word = high * 64 + middle;
                    let found = self.words.get(word as usize);
                    bits(found.map_or(0, |word| word.load(Ordering::Relaxed)))
                        .map(move |low| word * 64 + low)
                        // Bits beyond the capacity are somebody's damage.
                        .filter(move |slot| *slot < capacity)
                })
            })
    }

    /// Does `work` for each word that has a bit set: with its first slot, and its bits. Passes over eight
    /// empty words at a time, for a scan of a large and almost empty table.
    #[inline]
    pub fn for_each_word(self, mut work: impl FnMut(u32, u64)) {
        for ((summary, words), high) in self.summary.iter().zip(self.words.chunks(64)).zip(0_u32..)
        {
            // Relaxed, both levels: a hint.
            let summary = summary.load(Ordering::Relaxed);
            let look = |word: &AtomicU64| word.load(Ordering::Relaxed);
            let (lines, rest) = words.as_chunks::<8>();
            for (line, low) in lines.iter().zip((0_u32..).step_by(8)) {
                let summary = summary >> low & 0xff;
                if summary != 0 && line.iter().fold(0, |any, word| any | look(word)) != 0 {
                    self.for_each_of_line(line, high * 64 + low, summary, &mut work);
                }
            }
            let low = lines.len() as u32 * 8;
            if !rest.is_empty() {
                self.for_each_of_line(rest, high * 64 + low, summary >> low, &mut work);
            }
        }
    }

    /// The same for up to eight words, of which the first has this index, and this bit of the summary.
    #[inline(always)]
    fn for_each_of_line(
        self,
        line: &[AtomicU64],
        first_word: u32,
        mut summary: u64,
        work: &mut impl FnMut(u32, u64),
    ) {
        for (word, index) in line.iter().zip(first_word..) {
            // Relaxed: a hint.
            let found = word.load(Ordering::Relaxed);
            if found != 0 && summary & 1 == 1 {
                let first = index * 64;
                let found = found & self.known(first);
                if found != 0 {
                    work(first, found);
                }
            }
            summary >>= 1;
        }
    }

    /// The slots whose bit was ever set, and others beside them: all of a word whose summary bit is set.
    pub fn iter_ever_set(self) -> impl Iterator<Item = u32> + 'a {
        let capacity = self.capacity;
        self.summary
            .iter()
            .zip(0_u32..)
            .flat_map(|(summary, high)| {
                // Relaxed: a hint.
                bits(summary.load(Ordering::Relaxed)).map(move |middle| high * 64 + middle)
            })
            .flat_map(|word| (word * 64)..(word * 64 + 64))
            .take_while(move |slot| *slot < capacity)
    }

    /// The slots whose bit is clear, in rising order. Passes over eight full words at a time.
    pub fn iter_clear(self) -> impl Iterator<Item = u32> + 'a {
        let capacity = self.capacity;
        // Relaxed: a hint.
        let clear = |word: &AtomicU64| !word.load(Ordering::Relaxed);
        self.words
            .chunks(8)
            .zip((0_u32..).step_by(8))
            .filter(move |(line, _)| line.iter().fold(0, |any, word| any | clear(word)) != 0)
            .flat_map(|(line, first)| line.iter().zip(first..))
            .flat_map(move |(word, high)| {
                bits(clear(word))
                    .map(move |low| high * 64 + low)
                    .take_while(move |slot| *slot < capacity)
            })
    }
}

fn bits(mut rest: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let index = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        (index < 64).then_some(index)
    })
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_substrate::layout::Shared;

    use super::*;

    #[test]
    fn set_bits_are_found_across_words_and_cleared_bits_are_not() {
        let claims = AtomicU32::zeroed();
        let summary = <[AtomicU64; 1]>::zeroed();
        let words = <[AtomicU64; 3]>::zeroed();
        let occupancy = Occupancy::new(&summary, &words, &claims, 130);
        for slot in [0, 63, 64, 129] {
            occupancy.set(slot);
        }
        occupancy.clear(63);
        assert_eq!(occupancy.claims(), 4, "counted when set, not when cleared");
        assert!(occupancy.iter().eq([0, 64, 129]));
        let met = [0, 1, 2, 3].map(|word| occupancy.word(word));
        assert_eq!(met, [1, 1, 0b10, 0]);
        let mut met = Vec::new();
        occupancy.for_each_word(|first, bits| met.push((first, bits)));
        assert_eq!(met, [(0, 1), (64, 1), (128, 0b10)]);
        assert!(occupancy.iter_ever_set().eq(0..130));
        assert_eq!(occupancy.iter_clear().count(), 127);
        assert!(
            occupancy
                .iter_clear()
                .all(|slot| slot < 130 && ![0, 64, 129].contains(&slot))
        );
    }

    #[test]
    fn whole_lines_and_the_words_behind_them_are_met_where_the_summary_says_so() {
        let claims = AtomicU32::zeroed();
        let summary = <[AtomicU64; 2]>::zeroed();
        let words = <[AtomicU64; 75]>::zeroed();
        let occupancy = Occupancy::new(&summary, &words, &claims, 75 * 64);
        let slots = [0, 7 * 64, 8 * 64 + 63, 63 * 64, 71 * 64, 74 * 64 + 5];
        for slot in slots {
            occupancy.set(slot);
        }
        // Set without its summary bit: a claimer that has come so far only.
        words[9].store(1, Ordering::Relaxed);
        let mut met = Vec::new();
        occupancy.for_each_word(|first, bits| met.push(first + bits.trailing_zeros()));
        assert_eq!(met, slots);
        assert!(occupancy.iter().eq(slots));
    }

    #[test]
    fn the_only_clear_bits_are_found_in_and_behind_full_lines() {
        let claims = AtomicU32::zeroed();
        let summary = <[AtomicU64; 1]>::zeroed();
        let words = <[AtomicU64; 20]>::zeroed();
        let occupancy = Occupancy::new(&summary, &words, &claims, 20 * 64);
        (0..20 * 64).for_each(|slot| occupancy.set(slot));
        assert_eq!(occupancy.iter_clear().count(), 0);
        let slots = [0, 8 * 64 - 1, 12 * 64 + 5, 19 * 64 + 63];
        slots.iter().for_each(|slot| occupancy.clear(*slot));
        assert!(occupancy.iter_clear().eq(slots));
    }

    #[test]
    fn bits_beyond_the_capacity_are_ignored() {
        let claims = AtomicU32::zeroed();
        let summary = <[AtomicU64; 1]>::zeroed();
        let words = <[AtomicU64; 1]>::zeroed();
        summary[0].store(u64::MAX, Ordering::Relaxed);
        words[0].store(u64::MAX, Ordering::Relaxed);
        let occupancy = Occupancy::new(&summary, &words, &claims, 3);
        assert!(occupancy.iter().eq([0, 1, 2]));
        let mut met = Vec::new();
        occupancy.for_each_word(|first, bits| met.push((first, bits)));
        assert_eq!(met, [(0, 0b111)]);
        assert_eq!(occupancy.word(0), u64::MAX, "as it is");
        assert!(occupancy.iter_ever_set().eq([0, 1, 2]));
        assert_eq!(occupancy.iter_clear().count(), 0);
    }
}
