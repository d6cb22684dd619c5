//! A count of units by name, so that two processes can compare a million of them in one line.
//!
//! Contract: two tallies of the same names in any order are equal; a name that is missing, doubled or
//! another one makes them differ, but for one chance in 2^64.

use std::fmt;

use bumpless_heartbeat::UnitSet;

use crate::child::Answer;

/// How many units, and the sum of a hash of their names.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    count: u64,
    sum: u64,
}

impl Tally {
    /// Counts the units of one owner of a slot.
    pub fn add(&mut self, slot: u32, generation: u32, units: UnitSet) {
        for unit in units.iter() {
            let name = u64::from(slot) << 40 ^ u64::from(generation) << 8 ^ u64::from(unit.index());
            self.count += 1;
            self.sum = self.sum.wrapping_add(mixed(name));
        }
    }

    pub fn count(self) -> u64 {
        self.count
    }

    /// The answer of a child that has the same tally.
    pub fn as_answer(self) -> Answer {
        Answer::Done(self.to_string())
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} units, {:016x}", self.count, self.sum)
    }
}

/// The finaliser of splitmix64: every bit of the name moves about half of the bits.
pub fn mixed(name: u64) -> u64 {
    let z = name.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
