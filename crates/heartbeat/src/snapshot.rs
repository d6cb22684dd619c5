//! What an observer sees of a slot.
//!
//! Contract: plain copies; nothing in them refers to the mapping.

use crate::unit::UnitSet;

/// What the owner of a slot is for; a label for people and policies, no protocol depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SlotRole {
    /// 0: does units of work.
    #[default]
    Worker,
    /// 1: gives work out.
    Coordinator,
    /// 2: watches the others.
    Watchdog,
    /// Any other number, meaning what its users agree on.
    Other(u16),
}

impl From<u16> for SlotRole {
    fn from(number: u16) -> Self {
        match number {
            0 => Self::Worker,
            1 => Self::Coordinator,
            2 => Self::Watchdog,
            other => Self::Other(other),
        }
    }
}

impl From<SlotRole> for u16 {
    fn from(role: SlotRole) -> Self {
        match role {
            SlotRole::Worker => 0,
            SlotRole::Coordinator => 1,
            SlotRole::Watchdog => 2,
            SlotRole::Other(other) => other,
        }
    }
}

/// A consistent look at one owner's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatSnapshot {
    /// The owner's process id in its own pid namespace.
    pub pid: u32,
    /// Which claim of the slot this is; (creation id, slot, generation, unit) is a unit's name.
    pub generation: u32,
    /// The table's epoch at the owner's last beat.
    pub last_seen_epoch: u64,
    /// The units in flight: marked and neither completed nor acknowledged.
    pub in_flight_bitmap: UnitSet,
    /// What the owner is for.
    pub role: SlotRole,
    /// The slot's own grace in epochs; 0 = the watchdog's.
    pub grace_epochs: u16,
    /// Whether the owner has lost the slot.
    pub is_fenced: bool,
}

/// The three answers of [`HeartbeatTable::observe`](crate::HeartbeatTable::observe).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// Nobody owns the slot.
    Vacant,
    /// A consistent look.
    Consistent(HeartbeatSnapshot),
    /// An owner is changing, or died while changing, the slot.
    InTransition {
        /// Its process id, as the claim word says.
        pid: u32,
    },
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_role_survives_its_number() {
        for number in 0..=u16::MAX {
            assert_eq!(u16::from(SlotRole::from(number)), number);
        }
    }
}
