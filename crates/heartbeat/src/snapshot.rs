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
    #[inline]
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

/// The keeper word of an owner without a kernel death certificate. No thread id has this value.
pub const NO_KEEPER: u32 = 0x3fff_ffff;

/// Set by the kernel in the keeper word (`FUTEX_OWNER_DIED` of `linux/futex.h`).
const OWNER_DIED: u32 = 0x4000_0000;

/// What the kernel says of an owner: the tier in which its death is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Certificate {
    /// The kernel will mark the slot when the owner ends.
    Armed,
    /// The kernel has marked the slot: the owner ended, or executed another program.
    Died,
    /// The owner has no certificate (a sandbox denies the call): byte lock and pid decide.
    None,
    /// The owner is giving the slot back, or is of another boot: the byte lock decides.
    Disarmed,
}

impl Certificate {
    /// What the keeper word says. Any bit pattern says something.
    #[must_use]
    #[inline]
    pub const fn of(word: u32) -> Self {
        match word {
            0 => Self::Disarmed,
            NO_KEEPER => Self::None,
            word if word & OWNER_DIED != 0 => Self::Died,
            _ => Self::Armed,
        }
    }

    /// Whether the word is a thread's id, with or without waiters: armed. Damage that [`of`](Self::of) calls
    /// armed is none.
    #[must_use]
    #[inline]
    pub(crate) const fn names_a_thread(word: u32) -> bool {
        // Without the top bit, which says that somebody waits: 0, NO_KEEPER and all above fall out.
        (word << 1).wrapping_sub(2) < (NO_KEEPER - 1) << 1
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
    /// What the kernel says of the owner.
    pub certificate: Certificate,
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
    fn a_thread_that_arms_is_told_from_everything_else_by_one_comparison() {
        for word in [1, 2, 4711, NO_KEEPER - 1] {
            for waiters in [0, 1 << 31] {
                assert!(Certificate::names_a_thread(word | waiters), "{word:#x}");
                assert_eq!(Certificate::of(word | waiters), Certificate::Armed);
            }
        }
        for word in [
            0,
            NO_KEEPER,
            OWNER_DIED,
            OWNER_DIED | 1,
            0xc000_0001,
            1 << 31,
        ] {
            assert!(!Certificate::names_a_thread(word), "{word:#x}");
        }
    }

    #[test]
    fn every_role_survives_its_number() {
        for number in 0..=u16::MAX {
            assert_eq!(u16::from(SlotRole::from(number)), number);
        }
    }
}
