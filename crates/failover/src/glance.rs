//! The first look of a scan: passes over the owners of whom nothing more needs to be asked.
//!
//! Contract: passes over exactly such owners as [`judge`](crate::judge::judge) says nothing about and that
//! it has seen before: LIVE, with an armed certificate, at most one epoch behind (no grace is less), and
//! leaves behind in [`Seen`] what it would. Everybody else is judged. Three loads from each line, and code
//! small enough to stay in registers: it is what a scan of many living owners costs.

use bumpless_heartbeat::epoch::Beat;
use bumpless_heartbeat::slot::Slot;

use crate::judge::Seen;

/// Owners in a word of the occupancy hint.
const WORD: usize = 64;

/// Passes over the owners in time among those of `bits`, the slots from `first` on; the bits of the others,
/// and how many epochs the former are behind at most. `now` is the epoch after the tick.
#[inline(never)]
pub fn pass_over(
    slots: &[Slot],
    seen: &mut [Seen],
    first: usize,
    bits: u64,
    now: u64,
) -> (u64, u64) {
    let (mut others, mut largest_lag) = (0, 0);
    let end = slots.len().min(seen.len()).min(first + WORD);
    let (Some(slots), Some(seen)) = (slots.get(first..end), seen.get_mut(first..end)) else {
        return (bits, 0);
    };
    let mut look = |slot: &Slot, seen: &mut Seen, bit: u64| match lag_in_time(slot, seen, now) {
        // Zero or one, so "or" is the larger one.
        Some(lag) => largest_lag |= lag,
        None => others |= bit,
    };
    if bits == u64::MAX {
        let mut bit = 1;
        for (slot, seen) in slots.iter().zip(seen) {
            look(slot, seen, bit);
            bit <<= 1;
        }
    } else {
        let mut rest = bits;
        while rest != 0 {
            let index = rest.trailing_zeros() as usize;
            if let (Some(slot), Some(seen)) = (slots.get(index), seen.get_mut(index)) {
                look(slot, seen, rest & rest.wrapping_neg());
            }
            rest &= rest - 1;
        }
    }
    (others, largest_lag)
}

/// How many epochs the owner is behind, if it is passed over.
#[inline]
fn lag_in_time(slot: &Slot, seen: &mut Seen, now: u64) -> Option<u64> {
    let claim = slot.peek_claim();
    // Of another generation, or ahead of the scan: more than one.
    let due = Beat::new(claim.generation(), now).bits();
    let behind = due.wrapping_sub(slot.peek_beat().bits());
    if claim != seen.claim || behind > 1 || !slot.is_certified() {
        return None;
    }
    seen.epoch = seen.epoch.max(now - behind);
    Some(now.saturating_sub(seen.epoch))
}
