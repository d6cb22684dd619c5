//! One slot with its two lines, and what the table and the watchdog do with them.
//!
//! The table itself lives in a mapping and does not exist under loom; `register` and `hand_back` call
//! the slot's methods in the order of `HeartbeatTable::claim_locked` (register.rs) and of the
//! watchdog. Without the byte lock: what it excludes must not be needed for the slot's words.

use std::sync::Arc;

use bumpless_heartbeat::identity_line::{IdentityLine, Registration};
use bumpless_heartbeat::slot::{Claimable, FenceOutcome, Slot, SlotError};
use bumpless_heartbeat::verdict_line::VerdictLine;
use bumpless_heartbeat::{HeartbeatSnapshot, Label, Observed, OwnerIdentity, Profile, SlotRole};
use bumpless_heartbeat::{Unit, UnitSet};
use bumpless_substrate::claim::{Claim, ClaimState};
use bumpless_substrate::layout::Shared;

/// The first owner.
pub const A: u32 = 100;
/// Who wants the slot next.
pub const B: u32 = 101;
/// Who also wants it.
pub const C: u32 = 102;

/// A slot, its cold line and its peers' line.
#[derive(Debug)]
pub struct Cells {
    pub slot: Slot,
    pub identity: IdentityLine,
    pub verdict: VerdictLine,
}

/// Whether the owners that a registrant finds are proven gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owners {
    /// Nothing is known.
    Unproven,
    /// Those of these generations are gone, later ones live: what the byte lock and the second look
    /// at the claim keep apart in the table.
    GoneUpTo(u32),
}

impl Owners {
    fn are_gone(self, claim: Claim) -> bool {
        matches!(self, Self::GoneUpTo(generation) if claim.generation() <= generation)
    }
}

/// What a watchdog's round took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandedBack {
    pub units: UnitSet,
    pub notice: bool,
    pub recorded: bool,
}

/// Why a registrant did not get the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    Owned(Claim),
    Lost(Claim),
    Units(UnitSet),
    Damaged,
}

pub fn unit(number: u32) -> Unit {
    Unit::try_from(number).unwrap()
}

pub fn units(numbers: &[u32]) -> UnitSet {
    numbers.iter().map(|number| unit(*number)).collect()
}

/// What the owner of a generation says of itself: every field is of that generation alone.
fn registration(generation: u32) -> Registration {
    let number = u64::from(generation);
    Registration {
        profile: Profile {
            role: SlotRole::Other(10 + generation as u16),
            grace_epochs: generation as u16,
            label: Label::new(&generation.to_string()).unwrap(),
        },
        epoch: first_epoch(generation),
        start_ticks: 1_000 + number,
        pid_namespace: 2_000 + number,
        time_namespace: 3_000 + number,
    }
}

/// The epoch at which the owner of a generation registers.
pub const fn first_epoch(generation: u32) -> u64 {
    generation as u64 * 100
}

impl Cells {
    pub fn free() -> Arc<Self> {
        let (slot, identity, verdict) = (Slot::zeroed(), IdentityLine::zeroed(), Shared::zeroed());
        Arc::new(Self {
            slot,
            identity,
            verdict,
        })
    }

    /// Owned by A in generation 1, with these units in flight.
    pub fn owned(in_flight: &[u32]) -> (Arc<Self>, Claim) {
        let cells = Self::free();
        let live = cells.register(A, Owners::Unproven).unwrap();
        for number in in_flight {
            cells.slot.mark(live, unit(*number)).unwrap();
        }
        (cells, live)
    }

    /// Given back by A, empty.
    pub fn released() -> Arc<Self> {
        let (cells, live) = Self::owned(&[]);
        assert!(cells.give_back(live).unwrap().is_empty());
        cells
    }

    /// One attempt to get the slot, as `HeartbeatTable::claim_locked` makes it.
    pub fn register(&self, pid: u32, owners: Owners) -> Result<Claim, Obstacle> {
        let seen = self.slot.claimed_by();
        let claimable = match seen.state() {
            Some(ClaimState::Free | ClaimState::Released) => self.slot.claimable(seen),
            Some(_) if owners.are_gone(seen) => {
                self.verdict.record_death(seen);
                self.slot.recycle(seen)
            }
            _ => return Err(Obstacle::Owned(seen)),
        };
        self.take(seen, pid, claimable)
    }

    /// The claim of `seen`, and all that follows.
    pub fn take(&self, seen: Claim, pid: u32, claimable: Claimable) -> Result<Claim, Obstacle> {
        self.take_arming(seen, pid, claimable, |cells| {
            cells.slot.keep_without_certificate()
        })
    }

    /// As [`take`](Self::take), with what arms the certificate.
    pub fn take_arming(
        &self,
        seen: Claim,
        pid: u32,
        claimable: Claimable,
        arm: impl FnOnce(&Self),
    ) -> Result<Claim, Obstacle> {
        match claimable {
            Claimable::Yes => {}
            Claimable::UnitsLeft(units) => return Err(Obstacle::Units(units)),
            Claimable::Damaged(_) => return Err(Obstacle::Damaged),
        }
        let claiming = self.slot.claim(seen, pid).map_err(Obstacle::Lost)?;
        let registration = registration(claiming.generation());
        arm(self);
        self.slot.fill(claiming, &self.identity, &registration);
        Ok(self
            .slot
            .publish(claiming)
            .expect("nobody else changes a CLAIMING slot"))
    }

    /// As `HeartbeatTable::unregister` does it, with a certificate to take back.
    pub fn give_back(&self, live: Claim) -> Result<UnitSet, SlotError> {
        self.slot.unregister(live, || self.slot.disarm())
    }

    /// A watchdog's round over the slot of an owner that is proven gone or gave back: verdict,
    /// report, acknowledgement.
    pub fn hand_back(&self, owners: Owners) -> HandedBack {
        let claim = self.slot.claimed_by();
        let is_owned = matches!(claim.state(), Some(ClaimState::Live | ClaimState::Claiming));
        if claim == Claim::FREE || (is_owned && !owners.are_gone(claim)) {
            return HandedBack::default();
        }
        let generation = claim.generation();
        let fenced = match self.slot.fence(generation) {
            FenceOutcome::Fenced(units) => units,
            // A claimer that died before it opened the words has none; or the slot has moved on.
            FenceOutcome::Moved => UnitSet::EMPTY,
            FenceOutcome::LostToOwner => panic!("a dead owner won"),
        };
        let recorded = is_owned && self.verdict.record_death(claim);
        let taken = self.slot.acknowledge(generation, fenced);
        HandedBack {
            units: taken.units,
            notice: taken.notice,
            recorded,
        }
    }

    /// Fences generation 1 as often as one scan after the other would, while its owner lives.
    pub fn fence_in_scans(&self) -> UnitSet {
        for _ in 0..SCANS_MAX {
            match self.slot.fence(1) {
                FenceOutcome::Fenced(units) => return units,
                FenceOutcome::LostToOwner => {}
                FenceOutcome::Moved => panic!("nobody else claims"),
            }
        }
        panic!("the owner changed its words without end");
    }
}

/// The owners here make fewer changes than would beat this many fences.
const SCANS_MAX: usize = 4;

/// Panics unless every field is of one and the same owner.
pub fn check_whole(snapshot: &HeartbeatSnapshot) {
    let wanted = registration(snapshot.generation);
    let first = first_epoch(snapshot.generation);
    assert_eq!(
        snapshot.role, wanted.profile.role,
        "another owner's role: {snapshot:?}"
    );
    assert_eq!(
        snapshot.grace_epochs, wanted.profile.grace_epochs,
        "{snapshot:?}"
    );
    let beaten = first..first + 100;
    assert!(
        beaten.contains(&snapshot.last_seen_epoch),
        "another owner's beat: {snapshot:?}"
    );
    let owners = A..=C;
    assert!(
        owners.contains(&snapshot.pid),
        "another owner's pid: {snapshot:?}"
    );
}

/// Panics unless the cold line is all of one owner, or still all zero.
pub fn check_one_owner(identity: &OwnerIdentity) {
    let generation = identity.generation;
    let zero = Registration::default();
    let wanted = if generation == 0 {
        zero
    } else {
        registration(generation)
    };
    assert_eq!(
        identity.registration, wanted,
        "a mix of owners, generation {generation}"
    );
}

/// The name of what an observer saw; panics on a mix of owners, or if it names nobody.
pub fn named(observed: Observed) -> &'static str {
    match observed {
        Observed::Vacant => "vacant",
        Observed::Consistent(snapshot) => {
            check_whole(&snapshot);
            if snapshot.generation == 1 {
                "the first owner"
            } else {
                "the next owner"
            }
        }
        Observed::InTransition { pid } => {
            assert!((A..=C).contains(&pid), "in transition by nobody: pid {pid}");
            "in transition"
        }
    }
}
