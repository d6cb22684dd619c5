//! The protocol of a ring, on references to its words.
//!
//! ```text
//!   push    reserve: CAS tail (p, asleep) ─▶ (p + 1, 0)  ── words, relaxed ── stamp, release ── bell, if asleep
//!   drain   at head < tail:  stamp and check fit ─▶ deliver
//!                            check does not fit  ─▶ skip: a late producer wrote over it
//!                            another stamp       ─▶ in progress; for PATIENCE_NS ─▶ skip
//!   sleep   CAS tail (head, 0) ─▶ (head, ASLEEP): fails if something came
//!
//!    reserved, perhaps unfinished
//!        ├────────────┤
//!   ─────●────────────●─────────────────▶ position
//!       head         tail    head + capacity: full (lossless), or the oldest is overwritten (flight recorder)
//! ```
//! Contract: a push is one locked instruction and waits for nobody. A producer that dies, or stands still,
//! between reserving and stamping holds the consumer up for [`PATIENCE_NS`] and no longer; if it goes on
//! later, it can destroy a later record, which is then skipped, and cannot have a false one delivered. Each
//! reserved place is delivered or skipped once, unless the consumer dies between delivering and storing the
//! head: then the next one delivers again what its predecessor did not get to store.
//!
//! No value of any word makes a call loop without end or leave the places.

use bumpless_substrate::sync::Ordering;

use super::cursor::{Cursor, Vigil};
use super::lines::{Head, Lines, RingCounts, Tail};
use super::slot::{self, Found, Slot};

/// How long a consumer waits for a record that a producer has begun; unit: ns. Longer than a thread waits
/// for a core on a busy machine, short enough for people who wait for what comes behind it.
pub const PATIENCE_NS: u64 = 100_000_000;

/// How often a push tries while others reserve before it; then it is dropped, and counted.
const TRIES: u32 = 1 << 10;

/// After so many records a consumer gives places back.
const BATCH: u32 = 32;

/// What happens when there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Mode {
    /// The new record is dropped, and counted.
    Lossless = 0,
    /// The oldest record is overwritten.
    FlightRecorder = 1,
}

/// What came of draining.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drained {
    /// Records that were delivered.
    pub taken: u64,
    /// Records that were not, as nobody finished them in time, or somebody wrote over them.
    pub skipped: u64,
    /// Records that were overwritten before this consumer came; a flight recorder's only.
    pub overtaken: u64,
    /// Somebody else drains, here or in another process: nothing was done.
    pub is_elsewhere: bool,
}

/// A ring, wherever it lies.
#[derive(Debug)]
pub struct Ring<'m, const P: usize, S> {
    lines: &'m Lines,
    slots: &'m [S],
}

impl<'m, const P: usize, S: Slot<P>> Ring<'m, P, S> {
    /// The number of slots is a power of two; a ring without any takes nothing.
    #[must_use]
    #[inline]
    pub const fn new(lines: &'m Lines, slots: &'m [S]) -> Self {
        Self { lines, slots }
    }

    /// Records that fit.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    #[inline]
    fn slot(&self, position: u64) -> Option<&'m S> {
        let mask = self.slots.len().wrapping_sub(1);
        self.slots.get(position as usize & mask)
    }

    /// Writes a record; false when it was dropped, which is counted. `wake` is called if the consumer slept.
    /// Cost: one locked instruction, and a store for each word. Always inlined: the locked instruction waits
    /// for every store before it, those of a call's frame and arguments too, which cost more than all else
    /// here.
    #[inline(always)]
    pub fn push(&self, mode: Mode, words: &[u64; P], wake: impl FnOnce()) -> bool {
        let has_place = self.push_if_room(mode, words, wake);
        if !has_place {
            self.lines.count_dropped();
        }
        has_place
    }

    /// As [`push`](Self::push), and one that finds no place is not counted: for what nobody misses.
    #[inline(always)]
    pub fn push_if_room(&self, mode: Mode, words: &[u64; P], wake: impl FnOnce()) -> bool {
        let mut seen = self.lines.tail();
        if mode == Mode::Lossless && is_full(self.lines, self.slots.len(), seen) {
            return false;
        }
        if let Err(found) = self.lines.reserve(seen) {
            match reserve_again(self.lines, self.slots.len(), mode, found) {
                Some(reserved) => seen = reserved,
                None => return false,
            }
        }
        let position = seen.position();
        if let Some(slot) = self.slot(position) {
            slot::write(slot, position, words);
        }
        if seen.is_asleep() {
            wake();
        }
        true
    }

    /// Delivers what is there, at most as many records as fit; one consumer at a time. A record whose
    /// delivery panics counts as delivered.
    pub fn drain(
        &self,
        vigil: &mut Vigil,
        now_ns: u64,
        deliver: &mut dyn FnMut([u64; P]),
    ) -> Drained {
        let mut place = Place::new(self.lines, self.slots.len());
        let mut drained = Drained {
            skipped: place.skipped_before,
            ..Drained::default()
        };
        while let Some((position, slot)) = place.next().and_then(|p| Some((p, self.slot(p)?))) {
            match slot::read(slot, position) {
                Found::Whole(words) => {
                    place.go_on(0);
                    drained.taken += 1;
                    deliver(words);
                }
                Found::Other if !vigil.is_over(position, now_ns, PATIENCE_NS) => break,
                Found::Torn | Found::Other => {
                    place.go_on(1);
                    drained.skipped += 1;
                }
            }
        }
        drained
    }

    /// For a consumer that found nothing: asks to be woken by the next push; false when there is something.
    /// Who sleeps looks at the bell before it calls this.
    #[must_use]
    pub fn fall_asleep(&self) -> bool {
        let tail = self.lines.tail();
        self.lines.head().pending(tail) == 0 && self.lines.fall_asleep(tail)
    }

    /// As [`fall_asleep`](Self::fall_asleep), for a reader with a cursor.
    #[must_use]
    pub fn fall_asleep_at(&self, cursor: &Cursor) -> bool {
        let tail = self.lines.tail();
        cursor.next == tail.position() && self.lines.fall_asleep(tail)
    }

    /// Reads the next record behind the cursor, and takes nothing away. `None`: there is none for now. An
    /// unfinished record is waited for, over several calls, until it has been so for `patience_ns`.
    pub fn read(
        &self,
        cursor: &mut Cursor,
        now_ns: u64,
        patience_ns: u64,
    ) -> Option<(u64, [u64; P])> {
        let capacity = self.capacity();
        // Each turn goes past a record, or is overtaken.
        for _ in 0..capacity.saturating_mul(2) {
            let position = cursor.next;
            let behind = self
                .lines
                .tail_after_reading()
                .position()
                .checked_sub(position)?;
            if behind == 0 {
                return None;
            }
            if behind > capacity {
                cursor.overtaken += behind - capacity;
                cursor.next += behind - capacity;
                continue;
            }
            let found = slot::read(self.slot(position)?, position);
            if let Found::Whole(words) = found {
                cursor.next += 1;
                cursor.delivered += 1;
                return Some((position, words));
            }
            let tail = self.lines.tail_after_reading().position();
            if tail.wrapping_sub(position) > capacity {
                continue;
            }
            if found == Found::Other && !cursor.vigil.is_over(position, now_ns, patience_ns) {
                return None;
            }
            cursor.next += 1;
            cursor.skipped += 1;
        }
        None
    }

    /// How many places were ever reserved.
    #[must_use]
    #[inline]
    pub fn reserved(&self) -> u64 {
        self.lines.tail().position()
    }

    /// The counts.
    #[must_use]
    pub fn counts(&self, mode: Mode) -> RingCounts {
        match mode {
            Mode::Lossless => self.lines.counts(),
            Mode::FlightRecorder => RingCounts {
                pushed: self.reserved(),
                // Relaxed: a number.
                dropped: self.lines.dropped.load(Ordering::Relaxed),
                ..RingCounts::default()
            },
        }
    }
}

/// Whether the consumer has not given back the place at the tail.
#[inline(always)]
fn is_full(lines: &Lines, capacity: usize, seen: Tail) -> bool {
    // Of a head that is newer than `seen` the tail is newer too, and the reservation fails.
    lines.head().pending(seen).cast_signed() >= capacity as i32
}

/// Reserves a place while others do. `None`: there is none. Not a method: the ring
/// would have to be put into memory for it, in front of the locked instruction of every push.
#[cold]
#[inline(never)]
fn reserve_again(lines: &Lines, capacity: usize, mode: Mode, mut seen: Tail) -> Option<Tail> {
    for _ in 0..TRIES {
        if mode == Mode::Lossless && is_full(lines, capacity, seen) {
            break;
        }
        match lines.reserve(seen) {
            Ok(()) => return Some(seen),
            Err(found) => seen = found,
        }
    }
    None
}

/// Where a consumer is; gives places back now and then, and at the end, also when a delivery panics.
struct Place<'m> {
    lines: &'m Lines,
    head: Head,
    /// Places to come, as of the beginning.
    left: u32,
    position: u64,
    unstored: u32,
    skipped_before: u64,
}

impl<'m> Place<'m> {
    fn new(lines: &'m Lines, capacity: usize) -> Self {
        let (mut head, tail) = (lines.head(), lines.tail());
        let pending = head.pending(tail);
        // No producer goes further: somebody else wrote here. What lies beyond the capacity is gone.
        let lost = pending.saturating_sub(capacity as u32);
        head.position = head.position.wrapping_add(lost);
        head.skipped = head.skipped.wrapping_add(lost);
        let left = pending - lost;
        Self {
            lines,
            head,
            left,
            position: tail.position().wrapping_sub(left.into()),
            unstored: lost,
            skipped_before: lost.into(),
        }
    }

    fn next(&self) -> Option<u64> {
        (self.left > 0).then_some(self.position)
    }

    /// Past one place, of which so many were skipped: one or none. What is stored here ends before it: it
    /// has not been delivered yet.
    fn go_on(&mut self, skipped: u32) {
        if self.unstored >= BATCH {
            self.store();
        }
        self.head.position = self.head.position.wrapping_add(1);
        self.head.skipped = self.head.skipped.wrapping_add(skipped);
        self.position = self.position.wrapping_add(1);
        self.left -= 1;
        self.unstored = self.unstored.saturating_add(1);
    }

    fn store(&mut self) {
        if self.unstored > 0 {
            self.lines.set_head(self.head);
            self.unstored = 0;
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.store();
    }
}
