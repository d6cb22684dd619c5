//! Who keeps a full table's slots: the text of `TableFull`.
//!
//! Contract: the oldest registrations first, at most [`SHOWN_MAX`] of them, each with what keeps its
//! slot from being given to somebody else.

use core::fmt;

use crate::unit::UnitSet;

/// How many slots the text names.
pub const SHOWN_MAX: usize = 8;

/// Why a slot could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// Its owner lives, or nothing proves that it does not.
    Owned,
    /// Somebody is claiming it, or holds its lock.
    Locked,
    /// Its owner is gone, but these units of it are not acknowledged.
    Units(UnitSet),
    /// It reached the highest generation.
    Retired,
    /// Its words contradict each other: quarantined.
    Damaged,
}

/// One slot of a full table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupant {
    /// The slot's index.
    pub slot: u32,
    /// The owner's process id, as the claim word says.
    pub pid: u32,
    /// The epoch at which it registered.
    pub registered_epoch: u64,
    /// What keeps the slot.
    pub obstacle: Obstacle,
}

/// The slots of a full table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupants {
    /// How many slots the table has.
    pub capacity: u32,
    /// The oldest of them.
    pub oldest: Vec<Occupant>,
}

impl Occupants {
    /// Keeps the oldest of `found`.
    #[must_use]
    pub fn new(capacity: u32, mut found: Vec<Occupant>) -> Self {
        found.sort_by_key(|occupant| (occupant.registered_epoch, occupant.slot));
        found.truncate(SHOWN_MAX);
        Self {
            capacity,
            oldest: found,
        }
    }
}

impl fmt::Display for Occupants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "all {} slots are taken", self.capacity)?;
        for (index, occupant) in self.oldest.iter().enumerate() {
            let Occupant {
                slot,
                pid,
                obstacle,
                ..
            } = occupant;
            f.write_str(if index == 0 { "; oldest: " } else { "; " })?;
            match obstacle {
                Obstacle::Owned => write!(f, "slot {slot}: pid {pid}")?,
                Obstacle::Locked => write!(f, "slot {slot}: pid {pid}, locked")?,
                Obstacle::Units(units) => {
                    write!(
                        f,
                        "slot {slot}: dead, {} units not acknowledged",
                        units.len()
                    )?;
                }
                Obstacle::Retired => write!(f, "slot {slot}: retired")?,
                Obstacle::Damaged => write!(f, "slot {slot}: damaged, quarantined")?,
            }
        }
        Ok(())
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_the_capacity_and_the_oldest_owners() {
        let occupant = |slot, registered_epoch, obstacle| Occupant {
            slot,
            pid: 70 + slot,
            registered_epoch,
            obstacle,
        };
        let units = Obstacle::Units(UnitSet::from_bits(0b1111));
        let full = Occupants::new(
            64,
            vec![occupant(1, 9, Obstacle::Owned), occupant(3, 2, units)],
        );
        assert_eq!(
            full.to_string(),
            "all 64 slots are taken; oldest: slot 3: dead, 4 units not acknowledged; slot 1: pid 71"
        );
    }
}
