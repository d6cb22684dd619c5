//! One slot: the owner's cache line, and every operation on it, on references.
//!
//! Contract: all fields are atomic, zero bytes are a free slot, and each operation is correct
//! whatever other processes do in between, including die. The same methods run in the mapped file
//! and, on the heap, in the loom models.
//!
//! ```text
//!  at  0        8        16                              48       56       60     62
//!      ┌────────┬────────┬───────────────────────────────┬────────┬────────┬──────┬──────┐
//!      │ claim  │ epoch  │ work[0] work[1] work[2] work[3]│ seq    │ keeper │ role │ grace│
//!      └────────┴────────┴───────────────────────────────┴────────┴────────┴──────┴──────┘
//!
//!  who    claim: owner, next claimer (CAS)      epoch: owner (plain store)
//!         work: owner and peers (CAS)           seq, role, grace, keeper: owner
//!
//!  life   claim ─ fill ─ publish ─ { beat, mark, complete }* ─ unregister
//!                                        │ fence (peer)
//!                                        ▼
//!                                  acknowledge* (peer) ─ unregister, or recycled once proven gone
//! ```
//! A slot is fenced word 0 first; that word is the decision, and `beat` stops at it. So a watchdog
//! that dies half way leaves a slot that becomes late, and the next scan finishes the fence.

use bumpless_substrate::claim::{Claim, ClaimState, ClaimWord};
use bumpless_substrate::seqlock::SeqLock;
use bumpless_substrate::sync::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use bumpless_substrate::work::{Work, WorkError, WorkWord};

use crate::epoch::{Beat, TableEpoch};
use crate::identity_line::{IdentityLine, Label, Registration};
pub use crate::outcome::{AcknowledgedUnits, Claimable, FenceOutcome, SlotError};
use crate::snapshot::{Certificate, NO_KEEPER, SlotRole};
use crate::unit::{Unit, UnitSet};

mod observing;

/// How many work words a slot has. Models make do with a first one and another one.
pub const WORK_WORDS: usize = if cfg!(bumpless_loom) { 2 } else { 4 };

bumpless_substrate::shared_struct! {
    /// The owner's line; layout and writers in the [module's text](self).
    pub struct Slot[size = 64, align = 64] {
        /// Who owns the slot. CAS: owner, next claimer. Read by all.
        0 => claim: ClaimWord,
        /// The last beat: generation and epoch. Stored by the owner, read by watchdogs.
        8 => epoch: AtomicU64,
        /// Units in flight and the fence. CAS: owner and peers.
        16 => work: [WorkWord; WORK_WORDS],
        /// Version of role, grace and the identity line. Written by the owner.
        48 => seq: SeqLock,
        /// [`NO_KEEPER`], or the robust-futex word. Written by the owner and the kernel.
        56 => keeper: AtomicU32,
        /// [`SlotRole`]. Written by the owner, read by observers.
        60 => role: AtomicU16,
        /// This slot's own grace in epochs; 0 = the watchdog's. Owner, or a policy by CAS.
        62 => grace: AtomicU16,
    }
}

/// Where the keeper word lies in a slot.
#[cfg(not(bumpless_loom))]
pub(crate) const KEEPER_OFFSET: u64 = core::mem::offset_of!(Slot, keeper) as u64;

/// The owner's operations. `live` is the claim that [`Slot::publish`] returned.
impl Slot {
    /// Stores `epoch` as the owner's last beat. Cost: two relaxed loads, one relaxed store.
    ///
    /// # Errors
    /// [`SlotError::Stale`], [`SlotError::Fenced`]; the epoch is then not stored.
    #[inline]
    pub fn beat(&self, live: Claim, epoch: u64) -> Result<(), SlotError> {
        if self.beats(live, TableEpoch::of(epoch)) {
            Ok(())
        } else {
            Err(self.not_owned(live))
        }
    }

    /// As [`beat`](Self::beat), without the reason, and not in a table that was replaced: whether the epoch
    /// was stored.
    #[inline(always)]
    pub fn beats(&self, live: Claim, now: TableEpoch) -> bool {
        // Relaxed throughout: claim and fence are decided by their values; that the store may land
        // after a fence or a release is harmless (the slot is judged by work and claim words, and
        // the beat carries the generation).
        // Both flags are the top bit of their words: one test.
        let is_over = self.work[0].peek().is_fenced() | now.is_superseded();
        if self.claim.peek() != live || is_over {
            return false;
        }
        let beat = Beat::new(live.generation(), now.epoch());
        self.epoch.store(beat.bits(), Ordering::Relaxed);
        true
    }

    /// Puts `unit` in flight. Cost: one load and one locked CAS.
    ///
    /// # Errors
    /// [`SlotError::Stale`], [`SlotError::Fenced`], [`SlotError::AlreadyMarked`],
    /// [`SlotError::Contended`].
    #[inline]
    pub fn mark(&self, live: Claim, unit: Unit) -> Result<(), SlotError> {
        self.work[unit.word()]
            .mark(live.generation(), unit.bit())
            .map_err(|error| self.owners_error(live, error))
    }

    /// Commits `unit`. Cost: one load and one locked CAS.
    ///
    /// # Errors
    /// [`SlotError::Stale`], [`SlotError::Fenced`] (the unit is the reclaimer's),
    /// [`SlotError::NotMarked`], [`SlotError::Contended`].
    #[inline]
    pub fn complete(&self, live: Claim, unit: Unit) -> Result<(), SlotError> {
        self.work[unit.word()]
            .complete(live.generation(), unit.bit())
            .map_err(|error| self.owners_error(live, error))
    }

    /// Gives the slot back: fences the own words, takes back the death certificate by `disarm`, then
    /// releases the claim. Returns the units that were in flight; they are handed back like a dead owner's.
    ///
    /// One thread of the owner at a time, and not beside [`claim`](Self::claim) of the same slot in
    /// the same process: the table holds its local lock over both.
    ///
    /// # Errors
    /// [`SlotError::Stale`]: nothing was changed.
    pub fn unregister(&self, live: Claim, disarm: impl FnOnce()) -> Result<UnitSet, SlotError> {
        if self.claim.peek() != live {
            return Err(self.not_owned(live));
        }
        for word in &self.work {
            word.fence_own();
        }
        disarm();
        self.claim
            .release(live)
            .map_err(|found| SlotError::Stale { found })?;
        Ok(self.units(live.generation()))
    }

    /// Changes the role under the sequence lock. One thread of the owner at a time.
    pub fn set_role(&self, role: SlotRole) {
        // Relaxed: inside the sequence lock.
        self.seq
            .write(|| self.role.store(role.into(), Ordering::Relaxed));
    }

    /// Changes the label under the sequence lock. One thread of the owner at a time.
    pub fn set_label(&self, line: &IdentityLine, label: Label) {
        self.seq.write(|| line.set_label(label));
    }

    /// Changes the slot's own grace; 0 = the watchdog's.
    pub fn set_grace(&self, grace_epochs: u16) {
        // Relaxed: a number on its own, used by the next scan.
        self.grace.store(grace_epochs, Ordering::Relaxed);
    }

    fn owners_error(&self, live: Claim, error: WorkError) -> SlotError {
        match error {
            WorkError::AlreadyMarked => SlotError::AlreadyMarked,
            WorkError::NotMarked => SlotError::NotMarked,
            WorkError::Contended { .. } => SlotError::Contended,
            WorkError::Fenced | WorkError::NotFenced | WorkError::Generation { .. } => {
                self.not_owned(live)
            }
        }
    }

    #[cold]
    fn not_owned(&self, live: Claim) -> SlotError {
        let found = self.claim.peek();
        if found == live {
            SlotError::Fenced
        } else {
            SlotError::Stale { found }
        }
    }
}

/// The claimer's operations.
impl Slot {
    /// The claim, ordered before what is read afterwards.
    #[must_use]
    pub fn claimed_by(&self) -> Claim {
        self.claim.load()
    }

    /// Takes the slot; see [`ClaimWord::claim`]. Only when it is [`claimable`](Self::claimable), or
    /// was made so by [`recycle`](Self::recycle), and the slot's byte lock is held.
    ///
    /// # Errors
    /// The claim found instead.
    pub fn claim(&self, seen: Claim, pid: u32) -> Result<Claim, Claim> {
        self.claim.claim(seen, pid)
    }

    /// Writes everything that belongs to the new owner, while the claim is CLAIMING.
    pub fn fill(&self, claiming: Claim, identity: &IdentityLine, registration: &Registration) {
        let generation = claiming.generation();
        self.seq.write(|| {
            // Relaxed: inside the sequence lock, and published by `publish`.
            self.role
                .store(registration.profile.role.into(), Ordering::Relaxed);
            self.grace
                .store(registration.profile.grace_epochs, Ordering::Relaxed);
            identity.fill(generation, registration);
        });
        // Relaxed, as the words below: published by `publish`.
        let beat = Beat::new(generation, registration.epoch);
        self.epoch.store(beat.bits(), Ordering::Relaxed);
        for word in &self.work {
            word.open(generation);
        }
    }

    /// Makes the filled slot LIVE; the claim returned is the owner's handle.
    ///
    /// # Errors
    /// The claim found instead: the region is damaged.
    pub fn publish(&self, claiming: Claim) -> Result<Claim, Claim> {
        self.claim.publish(claiming)
    }

    /// Says that the owner has no death certificate. Only while the claim is CLAIMING.
    pub fn keep_without_certificate(&self) {
        // Relaxed: published by `publish`.
        self.keeper.store(NO_KEEPER, Ordering::Relaxed);
    }

    /// Says that no certificate is armed. Only before a revived file is published.
    pub fn disarm(&self) {
        // Relaxed: published with the file.
        self.keeper.store(0, Ordering::Relaxed);
    }

    /// Whether the slot, at claim `seen`, holds nothing that a next owner would destroy: every word
    /// fenced and empty. A word of an older generation counts as fenced: its claimer died before it
    /// wrote it.
    #[must_use]
    pub fn claimable(&self, seen: Claim) -> Claimable {
        if seen.state() == Some(ClaimState::Free) {
            return Claimable::Yes;
        }
        let mut left = UnitSet::EMPTY;
        for (index, word) in self.work.iter().enumerate() {
            let work = word.load();
            let current = work.generation() == seen.generation();
            if work.generation() > seen.generation()
                || (current && !work.is_fenced())
                || (!current && work.units() != 0)
            {
                return Claimable::Damaged(work);
            }
            left = left.with_word(index, work.units());
        }
        if left.is_empty() {
            Claimable::Yes
        } else {
            Claimable::UnitsLeft(left)
        }
    }

    /// Fences the words of an owner that is *proven gone* and says whether its slot may be claimed.
    #[must_use]
    pub fn recycle(&self, seen: Claim) -> Claimable {
        for word in &self.work {
            if word.peek().generation() == seen.generation()
                && word.fence(seen.generation()).is_err()
            {
                return Claimable::Damaged(word.peek());
            }
        }
        self.claimable(seen)
    }
}

/// The peers' operations: watchdogs and observers.
impl Slot {
    /// The claim with no ordering: the scan's filter.
    #[must_use]
    #[inline]
    pub fn peek_claim(&self) -> Claim {
        self.claim.peek()
    }

    /// The last beat with no ordering.
    #[must_use]
    #[inline]
    pub fn peek_beat(&self) -> Beat {
        // Relaxed: a filter; the fence's CAS is the truth.
        Beat::from_bits(self.epoch.load(Ordering::Relaxed))
    }

    /// Word 0, the decision: whether the owner of `generation` is fenced. No ordering.
    #[must_use]
    #[inline]
    pub fn peek_decision(&self, generation: u32) -> Option<Work> {
        Some(self.work[0].peek()).filter(|work| work.generation() == generation)
    }

    /// The work words, with no ordering.
    #[must_use]
    #[inline]
    pub fn peek_work(&self) -> [Work; WORK_WORDS] {
        core::array::from_fn(|index| self.work[index].peek())
    }

    /// What the kernel says of the owner. One load, with no ordering: who acts on `Died` looks at the
    /// claim again behind an acquire fence.
    #[must_use]
    #[inline]
    pub fn certificate(&self) -> Certificate {
        // Relaxed: a filter.
        Certificate::of(self.keeper.load(Ordering::Relaxed))
    }

    /// Whether the kernel will mark the slot when the owner ends, and has not yet. One comparison.
    #[must_use]
    #[inline]
    pub fn is_certified(&self) -> bool {
        // Relaxed: a filter.
        Certificate::names_a_thread(self.keeper.load(Ordering::Relaxed))
    }

    /// The robust-futex word, to sleep on until the owner dies.
    #[must_use]
    pub fn keeper_word(&self) -> &AtomicU32 {
        &self.keeper
    }

    /// What the owner is for, with no ordering.
    #[must_use]
    #[inline]
    pub fn peek_role(&self) -> SlotRole {
        // Relaxed: a label for people.
        self.role.load(Ordering::Relaxed).into()
    }

    /// The slot's own grace in epochs; 0 = the watchdog's.
    #[must_use]
    #[inline]
    pub fn grace_epochs(&self) -> u16 {
        // Relaxed: a number on its own.
        self.grace.load(Ordering::Relaxed)
    }

    /// The second look before a fence: the claim, behind an acquire fence over all that was read.
    #[must_use]
    #[inline]
    pub fn still_claimed_as(&self, seen: Claim) -> bool {
        // Pairs with the release fence in `SeqLock::begin`, which the next owner passes behind its
        // claim and before it writes: what was read before belongs to `seen` if the word still says so.
        fence(Ordering::Acquire);
        self.claim.peek() == seen
    }

    /// Takes all words from the owner of `generation`, word 0 first. Repeating it finishes a half.
    #[must_use]
    pub fn fence(&self, generation: u32) -> FenceOutcome {
        let mut units = UnitSet::EMPTY;
        for (index, word) in self.work.iter().enumerate() {
            match word.fence(generation) {
                Ok(work) => units = units.with_word(index, work.units()),
                Err(WorkError::Generation { .. }) => return FenceOutcome::Moved,
                Err(_) => return FenceOutcome::LostToOwner,
            }
        }
        FenceOutcome::Fenced(units)
    }

    /// The units of `generation` that its words hold.
    #[must_use]
    pub fn units(&self, generation: u32) -> UnitSet {
        let mut units = UnitSet::EMPTY;
        for (index, word) in self.work.iter().enumerate() {
            let work = word.load();
            if work.generation() == generation {
                units = units.with_word(index, work.units());
            }
        }
        units
    }

    /// Takes over those of `units` that are still there, and the notice that the owner of
    /// `generation` was fenced. Each unit, and the notice, goes to exactly one caller. Words of
    /// another generation, and unfenced ones, are left alone.
    pub fn acknowledge(&self, generation: u32, units: UnitSet) -> AcknowledgedUnits {
        let mut taken = AcknowledgedUnits::default();
        // Word 0, with the notice, last: a reclaimer that dies between is heard of again.
        for (index, word) in self.work.iter().enumerate().rev() {
            let (bits, notice) = (units.word(index), index == 0);
            if bits == 0 && !notice {
                continue;
            }
            if let Ok(acknowledged) = word.acknowledge(generation, bits, notice) {
                taken.units = taken.units.with_word(index, acknowledged.units);
                taken.notice |= acknowledged.notice;
            }
        }
        taken
    }
}
