//! What a ring knows besides its places: three lines, each with its own writers.
//!
//! ```text
//!  tail = position:63 | ASLEEP:1          how many places were ever reserved
//!  head = skipped:32 | position:32        how many the consumer is done with, and of them not delivered
//! ```
//! Contract: what a consumer delivered and what it skipped are one word, so that the counts are exact
//! wherever it is killed. The head's position is the low half of a number that is behind the tail by the
//! ring's capacity at most, so the whole number is known with the tail.

use bumpless_substrate::sync::{AtomicU32, AtomicU64, Ordering, fence};

bumpless_substrate::shared_struct! {
    /// The lines of a ring.
    pub struct Lines[size = 192, align = 64] {
        /// `position:63 | ASLEEP:1`. Writers: producers, by CAS; the consumer, which sets ASLEEP by CAS.
        0 => pub tail: AtomicU64,
        /// 0: lossless, 1: flight recorder. Writer: the creator. Readers: who opens it, once.
        8 => pub mode: AtomicU64,
        /// Zero.
        16 => spare_0: [AtomicU64; 6],
        /// `skipped:32 | position:32`. Writer: the consumer. Readers: producers, and whoever counts.
        64 => pub head: AtomicU64,
        /// Zero.
        72 => spare_1: [AtomicU64; 7],
        /// Records that found no place. Writers: producers, by addition.
        128 => pub dropped: AtomicU64,
        /// Futex; rises when something came while the consumer was asleep. Writers: producers.
        136 => pub doorbell: AtomicU32,
        /// Zero.
        140 => spare_2: AtomicU32,
        /// Operations that were counted here instead of one by one in records. Writers: producers, by
        /// addition. Readers: whoever counts.
        144 => pub tallied: AtomicU64,
        /// Zero.
        152 => spare_3: [AtomicU64; 5],
    }
}

/// The tail's lowest bit: the consumer sleeps, and whoever clears it rings.
const ASLEEP: u64 = 1;

/// The tail, as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail(pub u64);

impl Tail {
    /// How many places were reserved.
    #[must_use]
    #[inline]
    pub const fn position(self) -> u64 {
        self.0 >> 1
    }

    /// Whether the consumer sleeps.
    #[must_use]
    #[inline]
    pub const fn is_asleep(self) -> bool {
        self.0 & ASLEEP != 0
    }

    /// With one more place reserved, and nobody asleep.
    #[must_use]
    #[inline]
    pub const fn after(self) -> Self {
        Self(self.position().wrapping_add(1) << 1)
    }

    /// With the consumer asleep.
    #[must_use]
    pub const fn asleep(self) -> Self {
        Self(self.0 | ASLEEP)
    }
}

/// The head, as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// Low half of the number of places that the consumer is done with.
    pub position: u32,
    /// How many of them were not delivered; wraps.
    pub skipped: u32,
}

impl Head {
    const fn of(word: u64) -> Self {
        Self {
            position: word as u32,
            skipped: (word >> 32) as u32,
        }
    }

    const fn word(self) -> u64 {
        (self.skipped as u64) << 32 | self.position as u64
    }

    /// How many places lie between it and the tail.
    #[must_use]
    #[inline]
    pub const fn pending(self, tail: Tail) -> u32 {
        (tail.position() as u32).wrapping_sub(self.position)
    }
}

/// The counts of a ring at one moment: exact, also after the death of whoever wrote them.
/// `pushed = delivered + skipped + pending`, and what was tried is `pushed + dropped`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingCounts {
    /// Records that got a place.
    pub pushed: u64,
    /// Records that got none, as the ring was full.
    pub dropped: u64,
    /// Places of which the consumer delivered nothing, as their producer did not finish in time; wraps at
    /// 2^32. 0 for a flight recorder: there each reader has its own count.
    pub skipped: u64,
    /// Places that the consumer has not come to; 0 for a flight recorder.
    pub pending: u64,
}

impl RingCounts {
    /// Records that a consumer took out.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.pushed
            .wrapping_sub(self.pending)
            .wrapping_sub(self.skipped)
    }
}

/// How often counts are read again while they change.
const COUNT_TRIES: u32 = 8;

impl Lines {
    /// The tail.
    #[inline]
    pub fn tail(&self) -> Tail {
        // Relaxed: what is at a place, its stamp says.
        Tail(self.tail.load(Ordering::Relaxed))
    }

    /// The tail, at least as new as whatever made the places say what was read of them before.
    pub fn tail_after_reading(&self) -> Tail {
        // Pairs with the release fence of a producer behind its reservation.
        fence(Ordering::Acquire);
        self.tail()
    }

    /// Reserves the place at the tail; who succeeds wakes the consumer if it slept.
    ///
    /// # Errors
    /// The tail found, when it is not `seen`.
    #[inline]
    pub fn reserve(&self, seen: Tail) -> Result<(), Tail> {
        // Acquire pairs with the release in `fall_asleep`: the bell is rung behind the sleeper's look at it.
        let reserved = self.tail.compare_exchange(
            seen.0,
            seen.after().0,
            Ordering::Acquire,
            Ordering::Relaxed,
        );
        reserved.map_err(Tail)?;
        // Pairs with the acquire fence in `tail_after_reading`: who sees a word that is written from now
        // on sees the reservation. No instruction on x86-64.
        fence(Ordering::Release);
        Ok(())
    }

    /// Says that the consumer, which is at `seen`, sleeps; false when something came.
    pub fn fall_asleep(&self, seen: Tail) -> bool {
        // Release pairs with the acquire in `reserve`. Relaxed on failure: nothing was decided.
        seen.is_asleep()
            || self
                .tail
                .compare_exchange(
                    seen.0,
                    seen.asleep().0,
                    Ordering::Release,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// The head.
    #[inline]
    pub fn head(&self) -> Head {
        // Acquire pairs with the release in `set_head`: a place is written behind its last reading.
        Head::of(self.head.load(Ordering::Acquire))
    }

    /// Sets the head; the consumer only.
    pub fn set_head(&self, head: Head) {
        // Release pairs with the acquire in `head`: places are read before they are given back.
        self.head.store(head.word(), Ordering::Release);
    }

    /// Counts a record that got no place.
    #[cold]
    #[inline(never)]
    pub fn count_dropped(&self) {
        // Relaxed: a number.
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an operation without a record of it.
    #[inline(always)]
    pub fn tally(&self) {
        // Relaxed: a number.
        self.tallied.fetch_add(1, Ordering::Relaxed);
    }

    /// How many operations were counted without records.
    #[inline(always)]
    pub fn tallied(&self) -> u64 {
        // Relaxed: a number.
        self.tallied.load(Ordering::Relaxed)
    }

    /// The counts of a ring with a consumer.
    pub fn counts(&self) -> RingCounts {
        let mut counts = RingCounts::default();
        for _ in 0..COUNT_TRIES {
            // Relaxed, here and below, and fences: the mapping may be read-only. The tail is read between
            // two looks at the head: if they are equal, both were there at one moment.
            let before = self.head.load(Ordering::Relaxed);
            // Orders the looks; pairs with the release in `set_head`.
            fence(Ordering::Acquire);
            let tail = self.tail();
            fence(Ordering::Acquire);
            let after = self.head.load(Ordering::Relaxed);
            let head = Head::of(after);
            counts = RingCounts {
                pushed: tail.position(),
                dropped: self.dropped.load(Ordering::Relaxed),
                skipped: head.skipped.into(),
                pending: head.pending(tail).into(),
            };
            if before == after {
                break;
            }
        }
        counts
    }
}
