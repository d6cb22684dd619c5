//! The leader's seat: who leads, in which term, in one word; and the upper part of the term in another.
//!
//! Contract: every change of leadership is one compare-and-swap of the seat. The term rises by exactly
//! one at each hand-over, is never lowered and never comes again: it has 64 bits, of which the seat
//! holds the lowest and [`LeaderLine`] counts the *half laps* of those (the term without all but the
//! top one of them). The word of half laps lags behind by one at most, because whoever is about to hand
//! the seat over first makes it agree with the term that it found. So it is known by the parity of
//! its own lowest bit and the seat's highest term bit.
//!
//! ```text
//!   seat:  63       48 47               20    19       18    17        0
//!         ┌───────────┬───────────────────┬────────┬────────┬───────────┐
//!         │ slot:16   │ generation:28     │ CLOSED │ WAITED │ term:18   │
//!         └───────────┴───────────────────┴────────┴────────┴───────────┘
//!   generation 0: nobody leads; the term is the last one's (0: nobody ever led)
//!
//!   Nobody ──hand over (term + 1)──▶ Held ──vacate──▶ Nobody          any ──close──▶ CLOSED, for good
//!                                    │  ▲
//!                                    └──┘ hand over (term + 1)
//!
//!   term:  63                            17 16        0
//!         ┌────────────────────────────────┬───────────┐      half laps is at most one below the
//!         │ half laps                      │           │      number in the upper field
//!         └────────────────────────────────┴───────────┘
//!                                  │ 18 bits in the seat│
//! ```
//! A hand-over whose caller stood still for a whole lap (262,144 hand-overs) can still succeed: then
//! what it found (nobody, or a leader that is gone for good) is there again, and so the hand-over is
//! as right as it was. To make half laps lag by two, half a lap of hand-overs in a row would have to
//! be such ones, by as many threads, each stopped in that one place.
//!
//! WAITED lies in the seat so that the CAS which changes the leader also takes over the duty to wake who
//! sleeps, with no third word to order against.

use core::fmt;

use bumpless_substrate::claim::GENERATION_MAX;
use bumpless_substrate::sync::{AtomicU32, AtomicU64, Ordering};

/// How many bits of the term the seat holds. The models go round in laps of four.
pub const SEAT_TERM_BITS: u32 = if cfg!(bumpless_loom) { 2 } else { 18 };

const TERM_MASK: u64 = (1 << SEAT_TERM_BITS) - 1;
const HALF_LAP_SHIFT: u32 = SEAT_TERM_BITS - 1;
const WAITED: u64 = 1 << 18;
const CLOSED: u64 = 1 << 19;
const GENERATION_SHIFT: u32 = 20;
const SLOT_SHIFT: u32 = 48;

/// How often a look is repeated because half a lap went by during it.
const LOOK_TRIES: u32 = 8;

/// One who stands, or leads: which owner of which slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The slot's index, below 65,536.
    pub slot: u32,
    /// Which owner of the slot; not 0.
    pub generation: u32,
}

/// The value of a seat. Any bit pattern is one.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seat(u64);

impl Seat {
    fn new(holder: Option<Candidate>, term: u64) -> Self {
        let held = holder.map_or(0, |Candidate { slot, generation }| {
            u64::from(slot & 0xffff) << SLOT_SHIFT
                | u64::from(generation & GENERATION_MAX) << GENERATION_SHIFT
        });
        Self(held | term & TERM_MASK)
    }

    fn holder(self) -> Option<Candidate> {
        let generation = (self.0 >> GENERATION_SHIFT) as u32 & GENERATION_MAX;
        let slot = (self.0 >> SLOT_SHIFT) as u32;
        (generation != 0).then_some(Candidate { slot, generation })
    }

    /// The whole term, when half laps are as found or one more.
    fn term(self, half_laps: u64) -> u64 {
        let low = self.0 & TERM_MASK;
        let is_behind = (low >> HALF_LAP_SHIFT) ^ (half_laps & 1);
        half_laps.wrapping_add(is_behind) << HALF_LAP_SHIFT | low & (TERM_MASK >> 1)
    }

    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
}

/// What one look at the seat shows: who leads, and in which term. Equal when both are.
#[derive(Clone, Copy)]
pub struct Reign {
    seat: Seat,
    half_laps: u64,
}

impl Reign {
    /// Who leads, as the seat says; whether it lives is for the table to say.
    #[must_use]
    pub fn holder(self) -> Option<Candidate> {
        self.seat.holder()
    }

    /// The term: of the leader, or of the last one. 0: nobody ever led.
    #[must_use]
    pub fn term(self) -> u64 {
        self.seat.term(self.half_laps)
    }

    /// Whether the election is over: another region has taken its place.
    #[must_use]
    pub fn is_closed(self) -> bool {
        self.seat.has(CLOSED)
    }
}

impl PartialEq for Reign {
    fn eq(&self, other: &Self) -> bool {
        (self.holder(), self.term()) == (other.holder(), other.term())
    }
}

impl fmt::Debug for Reign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let closed = if self.is_closed() { ", closed" } else { "" };
        write!(
            f,
            "Reign({:?}, term {}{closed})",
            self.holder(),
            self.term()
        )
    }
}

bumpless_substrate::shared_struct! {
    /// Line 1 of an election's file; seat and half laps in the [module's text](self).
    pub struct LeaderLine[size = 64, align = 64] {
        /// Who leads. CAS: whoever hands over, steps down or goes to sleep. Read by all.
        0 => seat: AtomicU64,
        /// The term's upper part. CAS: whoever is about to hand over.
        8 => half_laps: AtomicU64,
        /// Futex: rises at each change that somebody sleeps on. Writer: who makes the change.
        16 => changes: AtomicU32,
        /// Zero.
        20 => spare_changes: AtomicU32,
        /// Creation id of the table. Written before the file has a name, read by who opens it.
        24 => table_id: AtomicU64,
        /// Zero.
        32 => spare: [AtomicU64; 4],
    }
}

impl LeaderLine {
    /// Who leads, in which term. Cost: three loads.
    #[must_use]
    pub fn look(&self) -> Reign {
        // Acquire, each: pairs with the Release of `catch_up` (who sees half laps sees a seat at least
        // as new as the one that they were counted for) and of `exchange` (who sees a seat sees half
        // laps that lag by one at most). If both looks at half laps agree, the seat between them is
        // of that half lap or of the next.
        let mut half_laps = self.half_laps.load(Ordering::Acquire);
        let mut seat = Seat(self.seat.load(Ordering::Acquire));
        for _ in 0..LOOK_TRIES {
            let again = self.half_laps.load(Ordering::Acquire);
            if again == half_laps {
                break;
            }
            half_laps = again;
            // Acquire: as above.
            seat = Seat(self.seat.load(Ordering::Acquire));
        }
        Reign { seat, half_laps }
    }

    /// As [`look`](Self::look), for people, also on a mapping that may only be read: a hand-over in between
    /// may leave the term half a lap off.
    #[must_use]
    pub fn peek(&self) -> Reign {
        // Relaxed, both: nothing is decided on them.
        let half_laps = self.half_laps.load(Ordering::Relaxed);
        let seat = Seat(self.seat.load(Ordering::Relaxed));
        Reign { seat, half_laps }
    }

    /// Whether this is an election of that table, over or not.
    #[must_use]
    pub fn belongs_to(&self, table_id: u64) -> bool {
        // Relaxed: written before the file had a name.
        self.table_id.load(Ordering::Relaxed) == table_id
    }

    /// Seats `to` in the next term, if all is still as `seen`. Cost: one locked CAS.
    #[must_use]
    pub fn hand_over(&self, seen: Reign, to: Candidate) -> bool {
        if seen.is_closed() {
            return false;
        }
        self.catch_up(seen);
        let next = Seat::new(Some(to), seen.term().wrapping_add(1));
        self.exchange(seen, next)
    }

    /// Leaves the seat empty, if all is still as `seen`; the term stays.
    pub fn vacate(&self, seen: Reign) -> bool {
        !seen.is_closed() && self.exchange(seen, Seat::new(None, seen.term()))
    }

    /// Ends this election for good, and says how it stood.
    pub fn close(&self) -> Reign {
        // Release pairs with the Acquire of `look`, as in `exchange`.
        let before = Seat(self.seat.fetch_or(CLOSED, Ordering::Release));
        if before.has(WAITED) {
            self.announce();
        }
        self.look()
    }

    /// Asks whoever makes the next change to wake the sleepers, if all is still as `seen`.
    #[must_use]
    pub fn ask_to_be_woken(&self, seen: Reign) -> bool {
        let asked = Seat(seen.seat.0 | WAITED);
        // Relaxed, both: a request on its own; the change that answers it is a CAS of this word.
        asked == seen.seat
            || self
                .seat
                .compare_exchange(seen.seat.0, asked.0, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// The word to sleep on, and its value. To be read before the look that finds nothing new: a change
    /// after that look then finds the request to wake, and changes the value.
    #[must_use]
    pub fn changes(&self) -> (&AtomicU32, u32) {
        // Acquire pairs with the Release of `announce`: who sees the count sees the change.
        (&self.changes, self.changes.load(Ordering::Acquire))
    }

    /// Begins where an earlier election of this name ended. Only before the file has a name.
    pub fn begin(&self, table_id: u64, term: u64) {
        // Relaxed: published with the file.
        self.table_id.store(table_id, Ordering::Relaxed);
        let half_laps = term >> HALF_LAP_SHIFT;
        self.half_laps.store(half_laps, Ordering::Relaxed);
        self.seat.store(Seat::new(None, term).0, Ordering::Relaxed);
    }

    /// Whether this is an election of that table, and not over.
    #[must_use]
    pub fn is_of(&self, table_id: u64) -> bool {
        self.belongs_to(table_id) && !self.look().is_closed()
    }

    /// Makes half laps agree with the term that was found.
    fn catch_up(&self, seen: Reign) {
        let half_laps = seen.term() >> HALF_LAP_SHIFT;
        if half_laps != seen.half_laps {
            // Release pairs with the Acquire of `look`. Relaxed on failure: somebody else did it.
            let _ = self.half_laps.compare_exchange(
                seen.half_laps,
                half_laps,
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
    }

    fn exchange(&self, seen: Reign, to: Seat) -> bool {
        // Release pairs with the Acquire of `look`: half laps before the term that needs them, and what
        // a leader did before it left the seat. Relaxed on failure: the caller looks again.
        let swapped =
            self.seat
                .compare_exchange(seen.seat.0, to.0, Ordering::Release, Ordering::Relaxed);
        if swapped.is_ok() && seen.seat.has(WAITED) {
            self.announce();
        }
        swapped.is_ok()
    }

    fn announce(&self) {
        // Release pairs with the Acquire of `changes`.
        self.changes.fetch_add(1, Ordering::Release);
        #[cfg(not(bumpless_loom))]
        bumpless_substrate::futex::wake(&self.changes, u32::MAX);
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_substrate::layout::Shared;

    use super::*;

    const LOWEST: Candidate = Candidate {
        slot: 0,
        generation: 1,
    };
    const HIGHEST: Candidate = Candidate {
        slot: 0xffff,
        generation: GENERATION_MAX,
    };

    #[test]
    fn the_packing_is_the_documented_one() {
        let seat = Seat::new(Some(HIGHEST), u64::MAX);
        assert_eq!(seat.0, 0xffff_ffff_fff3_ffff);
        assert_eq!(seat.holder(), Some(HIGHEST));
        assert_eq!(Seat::new(Some(LOWEST), 5).0, 0x0010_0005);
        assert_eq!(Seat::new(None, 5).0, 5);
    }

    #[test]
    fn each_hand_over_is_the_next_term_and_an_empty_seat_keeps_it() {
        let line = LeaderLine::zeroed();
        let empty = line.look();
        assert_eq!((empty.holder(), empty.term()), (None, 0));
        assert!(line.hand_over(empty, HIGHEST));
        let held = line.look();
        assert_eq!((held.holder(), held.term()), (Some(HIGHEST), 1));
        assert!(!line.hand_over(empty, LOWEST), "no longer as seen");
        assert!(line.vacate(held));
        let empty = line.look();
        assert_eq!((empty.holder(), empty.term()), (None, 1));
        assert!(line.hand_over(empty, LOWEST));
        assert_eq!(line.look().term(), 2);
    }

    #[test]
    fn the_term_goes_on_beyond_the_bits_of_the_seat() {
        let lap = 1 << SEAT_TERM_BITS;
        for start in [lap / 2, lap, 5 * lap / 2, 1 << 40] {
            let line = LeaderLine::zeroed();
            line.begin(7, start - 2);
            for term in start - 1..start + 3 {
                assert!(line.hand_over(line.look(), LOWEST));
                assert_eq!(line.look().term(), term);
            }
        }
    }

    #[test]
    fn a_request_to_be_woken_changes_neither_leader_nor_term_and_is_answered_once() {
        let line = LeaderLine::zeroed();
        assert!(line.hand_over(line.look(), LOWEST));
        let (_, before) = line.changes();
        assert_eq!(before, 0, "nobody sleeps");
        let held = line.look();
        assert!(line.ask_to_be_woken(held));
        assert_eq!(line.look(), held);
        assert!(line.ask_to_be_woken(line.look()), "asked already");
        assert!(!line.vacate(held), "the word is another");
        assert!(line.vacate(line.look()));
        assert!(line.hand_over(line.look(), HIGHEST));
        assert_eq!(line.changes().1, 1);
    }

    #[test]
    fn a_closed_election_changes_no_more_and_its_successor_goes_on() {
        let (line, next) = (LeaderLine::zeroed(), LeaderLine::zeroed());
        line.begin(7, 41);
        assert!(line.hand_over(line.look(), LOWEST));
        let before = line.look();
        assert!(line.is_of(7) && !line.is_of(8));
        assert_eq!(line.close().term(), 42);
        assert!(!line.is_of(7));
        assert!(!line.hand_over(before, HIGHEST) && !line.hand_over(line.look(), HIGHEST));
        assert!(!line.vacate(before) && !line.vacate(line.look()));
        next.begin(8, line.close().term());
        assert!(next.hand_over(next.look(), HIGHEST));
        assert_eq!(next.look().term(), 43);
    }
}
