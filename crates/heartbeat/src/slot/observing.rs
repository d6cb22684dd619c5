//! What an observer sees of a slot.
//!
//! Contract: what is returned belongs to one owner, and no field of it was half written; no write and no locked
//! operation, so that a read-only mapping will do; bounded tries, so that nobody waits for an owner that died
//! half way.

use bumpless_substrate::claim::{Claim, ClaimState};

use super::Slot;
use crate::identity_line::{IdentityLine, OwnerIdentity};
use crate::snapshot::{HeartbeatSnapshot, Observed};
use crate::unit::UnitSet;

/// The observers' operations.
impl Slot {
    /// What the slot shows, consistent within one owner, or who keeps it from being consistent.
    /// Bounded by `tries`; no write, no locked operation, allowed on a read-only mapping.
    #[must_use]
    pub fn observe(&self, tries: u32) -> Observed {
        for _ in 0..tries {
            let claim = self.claim.load();
            match claim.state() {
                Some(ClaimState::Free | ClaimState::Released) => return Observed::Vacant,
                Some(ClaimState::Live) => {}
                Some(ClaimState::Claiming) | None => break,
            }
            if let Some(snapshot) = self.look(claim) {
                return Observed::Consistent(snapshot);
            }
        }
        Observed::InTransition {
            pid: self.claim.peek().pid(),
        }
    }

    /// As [`observe`](Self::observe), if it is consistent. The first look is always inlined, and apart from
    /// the three answers: put together in memory and taken apart again they take as long as five snapshots.
    #[must_use]
    #[inline(always)]
    pub fn snapshot(&self, tries: u32) -> Option<HeartbeatSnapshot> {
        let claim = self.claim.load();
        if claim.is_live()
            && let Some(snapshot) = self.look(claim)
        {
            Some(snapshot)
        } else {
            self.snapshot_otherwise(tries)
        }
    }

    #[cold]
    #[inline(never)]
    fn snapshot_otherwise(&self, tries: u32) -> Option<HeartbeatSnapshot> {
        match self.observe(tries) {
            Observed::Consistent(snapshot) => Some(snapshot),
            Observed::Vacant | Observed::InTransition { .. } => None,
        }
    }

    /// One look at the slot of `claim`; `None` when it changed meanwhile.
    #[inline(always)]
    fn look(&self, claim: Claim) -> Option<HeartbeatSnapshot> {
        let fields = self.seq.read(1, || self.read(claim));
        if let Some(Some(snapshot)) = fields
            && self.claim.peek() == claim
        {
            Some(snapshot)
        } else {
            None
        }
    }

    /// One look at the fields of `claim`; `None` when a word is of another generation.
    #[inline(always)]
    fn read(&self, claim: Claim) -> Option<HeartbeatSnapshot> {
        let generation = claim.generation();
        let mut units = UnitSet::EMPTY;
        let mut fenced = false;
        for (index, word) in self.work.iter().enumerate() {
            let work = word.peek();
            if work.generation() != generation {
                return None;
            }
            units = units.with_word(index, work.units());
            fenced |= work.is_fenced();
        }
        Some(HeartbeatSnapshot {
            pid: claim.pid(),
            generation,
            last_seen_epoch: self.peek_beat().epoch_of(generation)?,
            in_flight_bitmap: units,
            role: self.peek_role(),
            grace_epochs: self.grace_epochs(),
            is_fenced: fenced,
            certificate: self.certificate(),
        })
    }

    /// What the owner says of itself: the cold line, once, if nobody is writing it.
    #[must_use]
    pub fn identity(&self, line: &IdentityLine, tries: u32) -> Option<OwnerIdentity> {
        self.seq
            .read(tries, || line.read(self.peek_role(), self.grace_epochs()))
    }
}
