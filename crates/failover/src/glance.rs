//! The first look of a scan: passes over the owners of whom nothing more needs to be asked.
//!
//! Contract: passes over exactly such owners as [`judge`](crate::judge::judge) says nothing about and that
//! it has seen before: LIVE, with an armed certificate, at most one epoch behind (no grace is less), and
//! leaves behind in [`Seen`] what it would. Everybody else is judged. Three loads from each line, and code
//! small enough to stay in registers: it is what a scan of many living owners costs.

use bumpless_heartbeat::epoch::ONE_EPOCH;
use bumpless_heartbeat::occupancy::Occupancy;
use bumpless_heartbeat::slot::Slot;

use crate::judge::Seen;
use crate::roster::{Owners, Roster, WORD};

/// Passes over the owners in time, and leaves the others to be judged. Whether there are any, and how many
/// epochs the former are behind at most. `now` is the epoch after the tick.
// A function of its own, so that the loops have the registers to themselves.
#[inline(never)]
pub fn pass_over(
    slots: &[Slot],
    occupancy: Occupancy<'_>,
    roster: &mut Roster,
    now: u64,
) -> (bool, u64) {
    let (words, rest) = slots.as_chunks::<WORD>();
    let mut largest_lag = 0;
    let any = roster.look_at_each_word(occupancy, |word, bits, owners| {
        let (others, lag) = match words.get(word as usize) {
            Some(slots) if bits == u64::MAX => pass_over_all(slots, owners, now),
            Some(slots) => pass_over_word(slots, owners, bits, now),
            None => pass_over_rest(rest, owners, bits, now),
        };
        largest_lag |= lag;
        others
    });
    (any, largest_lag / ONE_EPOCH)
}

/// The same for all owners of one word; the bits of the others, and how far the former are behind.
#[inline(always)]
fn pass_over_all(slots: &[Slot; WORD], owners: &mut Owners, now: u64) -> (u64, u64) {
    let mut look = Look::default();
    for (index, (slot, seen)) in slots.iter().zip(owners).enumerate() {
        look.at(slot, seen, index, now);
    }
    (look.others, look.largest_lag)
}

/// The same for those of `bits`, all in this word's `slots`.
#[inline(always)]
fn pass_over_word(slots: &[Slot], owners: &mut Owners, bits: u64, now: u64) -> (u64, u64) {
    let mut look = Look::default();
    let mut rest = bits;
    while rest != 0 {
        let index = rest.trailing_zeros() as usize;
        if let (Some(slot), Some(seen)) = (slots.get(index), owners.get_mut(index)) {
            look.at(slot, seen, index, now);
        }
        rest &= rest - 1;
    }
    (look.others, look.largest_lag)
}

/// The same for the last word of a table whose slots do not fill it.
#[inline(never)]
fn pass_over_rest(slots: &[Slot], owners: &mut Owners, bits: u64, now: u64) -> (u64, u64) {
    pass_over_word(slots, owners, bits, now)
}

/// What was found in a word.
#[derive(Default)]
struct Look {
    others: u64,
    largest_lag: u64,
}

impl Look {
    #[inline(always)]
    fn at(&mut self, slot: &Slot, seen: &mut Seen, index: usize, now: u64) {
        match lag_in_time(slot, seen, now) {
            // Nothing or one epoch, so "or" is the larger one.
            Some(lag) => self.largest_lag |= lag,
            None => {
                is_rare();
                self.others |= 1 << index;
            }
        }
    }
}

/// How far the owner is behind, if it is passed over.
#[inline(always)]
fn lag_in_time(slot: &Slot, seen: &mut Seen, now: u64) -> Option<u64> {
    let (claim, beat) = (slot.peek_claim(), slot.peek_beat());
    // As the claim is the one seen, so is the generation.
    let behind = beat.behind(seen.beat.at(now));
    // Of another generation, ahead of the scan, or more than one epoch behind: another bit is set.
    if claim != seen.claim || behind & !ONE_EPOCH != 0 || !slot.is_certified() {
        return None;
    }
    // Not below what was seen before: the scan has ticked since.
    seen.beat = beat;
    Some(behind)
}

/// Tells the compiler which way is the straight one.
#[cold]
fn is_rare() {}

#[cfg(test)]
mod tests {
    use bumpless_heartbeat::NO_KEEPER;
    use bumpless_heartbeat::epoch::Beat;
    use bumpless_substrate::claim::Claim;
    use bumpless_substrate::layout::Shared;
    use bumpless_substrate::sync::Ordering;

    use super::*;

    const ARMED: u32 = 0x8000_0001;
    const DIED: u32 = 0xc000_0001;
    const NOW: u64 = 100;

    /// An owner that was seen before, with this word of its keeper, whose last beat was at `epoch`.
    fn owner(keeper: u32, epoch: u64) -> (Slot, Seen) {
        let slot = Slot::zeroed();
        let claiming = slot.claim(Claim::FREE, 7).expect("free");
        let claim = slot.publish(claiming).expect("claiming");
        slot.keeper_word().store(keeper, Ordering::Relaxed);
        slot.beat(claim, epoch).expect("its owner");
        let beat = Beat::new(claim.generation(), 1);
        (slot, Seen { claim, beat })
    }

    /// Whether the owner is passed over, its lag, and the beat that is remembered.
    fn passed(slot: &Slot, seen: &mut Seen) -> (bool, u64, u64) {
        let mut owners = [Seen::default(); WORD];
        owners[0] = *seen;
        let (others, lag) = pass_over_word(core::slice::from_ref(slot), &mut owners, 1, NOW);
        *seen = owners[0];
        (others == 0, lag / ONE_EPOCH, seen.beat.epoch())
    }

    #[test]
    fn certified_owners_at_most_one_epoch_behind_are_passed_over_and_remembered() {
        for behind in [0, 1] {
            let (slot, mut seen) = owner(ARMED, NOW - behind);
            assert_eq!(passed(&slot, &mut seen), (true, behind, NOW - behind));
        }
    }

    #[test]
    fn everybody_else_is_judged_and_nothing_remembered() {
        for (keeper, epoch) in [
            (ARMED, NOW - 2),
            (ARMED, NOW + 1),
            (DIED, NOW),
            (NO_KEEPER, NOW),
            (0, NOW),
        ] {
            let (slot, mut seen) = owner(keeper, epoch);
            assert_eq!(
                passed(&slot, &mut seen),
                (false, 0, 1),
                "{keeper:#x} {epoch}"
            );
        }
        let (slot, _) = owner(ARMED, NOW);
        let mut never_seen = Seen::default();
        assert_eq!(passed(&slot, &mut never_seen), (false, 0, 0));
    }

    #[test]
    fn a_lower_beat_than_the_last_one_seen_is_judged_or_as_late_as_that_one() {
        let (slot, mut seen) = owner(ARMED, NOW - 2);
        seen.beat = seen.beat.at(NOW - 1);
        assert_eq!(passed(&slot, &mut seen), (false, 0, NOW - 1));
        slot.beat(seen.claim, NOW - 1).expect("its owner");
        assert_eq!(passed(&slot, &mut seen), (true, 1, NOW - 1));
    }

    #[test]
    fn slots_beyond_the_table_are_nobodys_and_a_full_word_is_gone_through() {
        let (slots, seen): (Vec<Slot>, Vec<Seen>) = (0..WORD).map(|_| owner(ARMED, NOW)).unzip();
        let slots: [Slot; WORD] = slots.try_into().expect("a word of them");
        let mut seen: Owners = seen.try_into().expect("a word of them");
        assert_eq!(pass_over_all(&slots, &mut seen, NOW), (0, 0));
        slots[63].keeper_word().store(DIED, Ordering::Relaxed);
        assert_eq!(pass_over_all(&slots, &mut seen, NOW), (1 << 63, 0));
        assert_eq!(pass_over_word(&slots[..5], &mut seen, 1 << 5, NOW), (0, 0));
    }
}
