//! What the operations on a slot come to, where that is more than done or not.
//!
//! Contract: small plain values; the table's error says the same with names and paths.

use bumpless_substrate::claim::Claim;
use bumpless_substrate::work::Work;

use crate::unit::UnitSet;

/// Why an owner's operation did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotError {
    /// The caller's claim is not the slot's any more.
    Stale {
        /// What the claim word says now.
        found: Claim,
    },
    /// The owner was fenced.
    Fenced,
    /// The unit is in flight already.
    AlreadyMarked,
    /// The unit is not in flight.
    NotMarked,
    /// Other threads of this owner won every compare-and-swap.
    Contended,
}

/// What a peer's fence came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FenceOutcome {
    /// Every word is fenced; these units are the reclaimer's.
    Fenced(UnitSet),
    /// The owner won a word each time: it lives. If word 0 was fenced before that, the owner stops
    /// beating, and the next scan finishes the fence.
    LostToOwner,
    /// The slot has another generation: nothing was changed.
    Moved,
}

/// What one acknowledgement took over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AcknowledgedUnits {
    /// The units that this call, and no other, took.
    pub units: UnitSet,
    /// Whether this call, and no other, acknowledged that the owner was fenced.
    pub notice: bool,
}

/// Whether the next claimer may take the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimable {
    /// It may.
    Yes,
    /// These units wait for an acknowledgement.
    UnitsLeft(UnitSet),
    /// A word contradicts the claim; the slot is quarantined.
    Damaged(Work),
}
