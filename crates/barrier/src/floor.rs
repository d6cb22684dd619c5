//! The protocol: everybody's words and the gate, on references, with the table as an argument.
//!
//! Contract: each operation is correct whatever others do in between, including die: a word that a dead
//! member left is not counted, and what a dead releaser left half done any other one finishes. Nothing
//! here waits. The same methods run in the mapped file and, on the heap, in the models.
//!
//! ```text
//!   join ─ { arrive ─ look ─┬─ complete ── release ──┬─ past ──▶ released }* ─ leave
//!                           └─ not yet ─ sleep, look ┤
//!                                         time over: └─ withdraw ──▶ taken back, or released after all
//! ```

use crate::gate::{Gate, Stand};
use crate::presence::Presence;
use crate::word::{Arrival, ArrivalWord, Epoch, STALE_EPOCHS};

/// How often a member changes its own word against peers, who change it once in a quarter of the circle.
const CHANGE_TRIES: u32 = 4;

/// A dead member is told of in the epoch that it missed, and forgotten when it is so far behind.
const FORGOTTEN_EPOCHS: i64 = 2;

/// What the table knows.
pub trait Roll {
    /// The slots in which somebody may be registered, every one of a live owner among them.
    fn slots(&self) -> impl Iterator<Item = u32>;

    /// What has become of an owner of a slot.
    fn presence(&self, slot: u32, generation: u32) -> Presence;
}

/// What a waiter waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Every live member that is waited for in the epoch.
    All,
    /// So many live members.
    Quorum(u32),
}

/// A member that was not there when its epoch was released, or was not there yet when somebody gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absent {
    /// Its slot in the table.
    pub slot: u32,
    /// Which owner of the slot it is.
    pub generation: u32,
    /// What has become of it; [`Presence::Live`]: it has not arrived.
    pub presence: Presence,
}

/// Why an operation on the words did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloorError {
    /// The table has more slots than the barrier has words.
    NoSuchSlot,
    /// This owner of the slot is a member already.
    AlreadyMember,
    /// The word is not this member's, or says what it never wrote.
    NotMember {
        /// What it says.
        found: Arrival,
    },
    /// Peers changed the word between each look and its change: it is being damaged.
    Contended,
}

/// A member that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    slot: u32,
    generation: u32,
    /// The first epoch in which the member is waited for, if it takes this arrival back.
    first_owed: Epoch,
    /// The epoch in which it has arrived.
    target: Epoch,
}

impl Seat {
    /// The epoch in which it has arrived.
    #[must_use]
    pub fn target(&self) -> Epoch {
        self.target
    }
}

/// What a look at the members came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The epoch of the arrival is past.
    Past,
    /// The epoch that this names is complete: whoever sees that releases it.
    Complete(Stand),
    /// Somebody is missing.
    NotYet,
    /// The epoch is so far from that of the arrival as it never comes: gate or word are damaged.
    Damaged,
}

/// Gate and words, borrowed from the mapping.
#[derive(Debug, Clone, Copy)]
pub struct Floor<'a> {
    gate: &'a Gate,
    words: &'a [ArrivalWord],
}

impl<'a> Floor<'a> {
    /// Puts them together; `words` has one for each slot of the table.
    #[must_use]
    pub fn new(gate: &'a Gate, words: &'a [ArrivalWord]) -> Self {
        Self { gate, words }
    }

    /// The gate.
    #[must_use]
    pub fn gate(self) -> &'a Gate {
        self.gate
    }

    fn word(self, slot: u32) -> Result<&'a ArrivalWord, FloorError> {
        self.words.get(slot as usize).ok_or(FloorError::NoSuchSlot)
    }

    /// Makes the owner of a slot a member; the first epoch in which it is waited for.
    ///
    /// # Errors
    /// [`FloorError::NoSuchSlot`], [`FloorError::AlreadyMember`], [`FloorError::NotMember`] when the word
    /// is a later owner's, [`FloorError::Contended`].
    pub fn join(self, slot: u32, generation: u32) -> Result<Epoch, FloorError> {
        let word = self.word(slot)?;
        for _ in 0..CHANGE_TRIES {
            let found = word.load();
            match found.generation() {
                Some(other) if other == generation => return Err(FloorError::AlreadyMember),
                Some(other) if other > generation => return Err(FloorError::NotMember { found }),
                // Of an earlier owner of the slot, which is gone.
                _ => {}
            }
            let first = self.gate.look().epoch().next();
            if word
                .change(found, Arrival::joined(generation, first))
                .is_ok()
            {
                // If the epoch has moved on meanwhile, nobody has released the present one without
                // having seen the word: the change makes who has not fail.
                return Ok(first.or_later(self.gate.count_change().epoch()));
            }
        }
        Err(FloorError::Contended)
    }

    /// Arrives: in the present epoch for a quorum; for all, not before the first epoch in which the
    /// member is waited for.
    ///
    /// # Errors
    /// [`FloorError::NoSuchSlot`], [`FloorError::NotMember`], [`FloorError::Contended`].
    pub fn arrive(self, slot: u32, generation: u32, wanted: Wanted) -> Result<Seat, FloorError> {
        let word = self.word(slot)?;
        for _ in 0..CHANGE_TRIES {
            let found = word.load();
            let now = self.gate.look().epoch();
            let first_owed = found.first_owed();
            let is_ours = found.generation() == Some(generation);
            // Further ahead than it can be, unless a peer has just brought it up to date.
            if !is_ours || (first_owed.behind(now) < -1 && word.load() == found) {
                return Err(FloorError::NotMember { found });
            }
            let target = match wanted {
                Wanted::All => now.or_later(first_owed),
                Wanted::Quorum(_) => now,
            };
            if word
                .change(found, Arrival::arrived(generation, target))
                .is_ok()
            {
                self.gate.confirm();
                return Ok(Seat {
                    slot,
                    generation,
                    first_owed,
                    target,
                });
            }
        }
        Err(FloorError::Contended)
    }

    /// Looks at all members: whether the arrival's epoch is past, or can be released.
    ///
    /// An epoch before the arrival's, which a member that has just joined waits for, is complete only
    /// when nobody takes part in it at all: who does, waits for something else, and releases it itself.
    #[must_use]
    pub fn look(self, roll: &impl Roll, seat: &Seat, wanted: Wanted) -> Look {
        let stand = self.gate.look();
        let now = stand.epoch();
        match seat.target.behind(now) {
            1.. => return Look::Past,
            // The one that a new member waits for lies one ahead.
            -1..=0 => {}
            // Nobody takes part in those before, so they would all be released, one by one.
            _ => return Look::Damaged,
        }
        let is_early = seat.target != now;
        let (mut there, mut awaited) = (0, 0);
        for (slot, word) in self.occupied(roll) {
            let arrival = word.load();
            let Some(generation) = arrival.generation() else {
                continue;
            };
            let has_arrived = arrival.has_arrived_in(now);
            let is_owed = arrival.is_owed_in(now);
            // Of one that has arrived, only a quorum asks whether it lives.
            if !is_owed && !(has_arrived && (is_early || wanted != Wanted::All)) {
                continue;
            }
            let is_live = roll.presence(slot, generation) == Presence::Live;
            there += u32::from(has_arrived && is_live);
            awaited += u32::from(is_owed && is_live);
            let behind = arrival.epoch().behind(now);
            // Whoever lost these has seen the word change, which is what they are for.
            if !is_live && behind >= FORGOTTEN_EPOCHS {
                let _ = word.change(arrival, Arrival::NOBODY);
            } else if behind > STALE_EPOCHS {
                let _ = word.change(arrival, Arrival::joined(generation, now));
            }
        }
        let is_complete = match wanted {
            _ if is_early => awaited + there == 0,
            Wanted::All => awaited == 0,
            Wanted::Quorum(quorum) => there >= quorum,
        };
        if is_complete {
            Look::Complete(stand)
        } else {
            Look::NotYet
        }
    }

    /// Releases the epoch of a complete look, unless anything has changed since; whether anybody is to be
    /// woken.
    #[must_use]
    pub fn release(self, complete: Stand) -> bool {
        self.gate.release(complete) && self.gate.ring()
    }

    /// Takes an arrival back; false when its epoch was released before that.
    #[must_use]
    pub fn withdraw(self, seat: &Seat) -> bool {
        let (generation, target) = (seat.generation, seat.target);
        let again = Arrival::joined(generation, target.or_later(seat.first_owed));
        if let Ok(word) = self.word(seat.slot) {
            // Lost only to a peer that found this member gone or far behind: nothing is to be taken back.
            let _ = word.change(Arrival::arrived(generation, target), again);
        }
        target.behind(self.gate.count_change().epoch()) <= 0
    }

    /// Ends a membership; whether anybody is to be woken.
    #[must_use]
    pub fn leave(self, slot: u32, generation: u32) -> bool {
        let Ok(word) = self.word(slot) else {
            return false;
        };
        for _ in 0..CHANGE_TRIES {
            let found = word.load();
            if found.generation() != Some(generation) {
                return false;
            }
            if word.change(found, Arrival::NOBODY).is_ok() {
                self.gate.count_change();
                // Those who wait may have waited for this one alone.
                return self.gate.ring();
            }
        }
        false
    }

    /// The members that are waited for in `epoch` and have arrived neither in it nor in a later one.
    #[must_use]
    pub fn absent(self, roll: &impl Roll, epoch: Epoch) -> Vec<Absent> {
        let absent = self.occupied(roll).filter_map(|(slot, word)| {
            let arrival = word.load();
            let generation = arrival.generation().filter(|_| arrival.is_owed_in(epoch))?;
            Some(Absent {
                slot,
                generation,
                presence: roll.presence(slot, generation),
            })
        });
        absent.collect()
    }

    /// Who is a member, live or not.
    pub fn members(self, roll: &impl Roll) -> impl Iterator<Item = (u32, u32)> {
        self.occupied(roll)
            .filter_map(|(slot, word)| Some((slot, word.load().generation()?)))
    }

    fn occupied(self, roll: &impl Roll) -> impl Iterator<Item = (u32, &'a ArrivalWord)> {
        roll.slots()
            .filter_map(move |slot| Some((slot, self.word(slot).ok()?)))
    }
}
