//! Units of work in flight: [`Unit`], one of 128, and [`UnitSet`], any of them.
//!
//! Contract: a `Unit` is always below [`UNITS_PER_SLOT`]; a number that is not is a typed error at
//! the door, never a wrapped or wrong bit. What a unit means is for the user to say; its full name,
//! unique among hand-backs, is (creation id, slot, generation, unit).

use core::fmt;

use bumpless_substrate::work::UNITS_PER_WORD;

use crate::error::HeartbeatError;

/// How many units one slot can have in flight.
pub const UNITS_PER_SLOT: u32 = 128;

/// One unit of work: a number below [`UNITS_PER_SLOT`].
///
/// ```
/// use bumpless_heartbeat::Unit;
/// assert_eq!(Unit::try_from(127_u8).unwrap().index(), 127);
/// assert_eq!(Unit::try_from(128_u8).unwrap_err().to_string(), "unit 128: the limit is 127");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit(u8);

impl Unit {
    /// The unit's number, 0 to 127.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0 as u32
    }

    /// Which of the slot's work words holds it.
    pub(crate) const fn word(self) -> usize {
        (self.index() / UNITS_PER_WORD) as usize
    }

    /// Its bit in that word.
    pub(crate) const fn bit(self) -> u32 {
        1 << (self.index() % UNITS_PER_WORD)
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

macro_rules! unit_from {
    ($($int:ty),*) => {$(
        impl TryFrom<$int> for Unit {
            type Error = HeartbeatError;

            fn try_from(number: $int) -> Result<Self, HeartbeatError> {
                match u8::try_from(number) {
                    Ok(index) if u32::from(index) < UNITS_PER_SLOT => Ok(Self(index)),
                    // Saturates for the message only: beyond `i128` no integer type here reaches.
                    _ => Err(HeartbeatError::UnitOutOfRange {
                        unit: i128::try_from(number).unwrap_or(i128::MAX),
                    }),
                }
            }
        }
    )*};
}
unit_from!(u8, u16, u32, u64, usize, i32);

/// A set of units. `{:#x}` prints it as a bitmap, `{:?}` as a list.
///
/// ```
/// use bumpless_heartbeat::{Unit, UnitSet};
/// let set: UnitSet = [0_u8, 63, 127].into_iter().map(|n| Unit::try_from(n).unwrap()).collect();
/// assert_eq!((set.len(), format!("{set:?}")), (3, "{0, 63, 127}".to_owned()));
/// assert!(set.iter().map(Unit::index).eq([0, 63, 127]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UnitSet(u128);

impl UnitSet {
    /// No unit.
    pub const EMPTY: Self = Self(0);

    /// The set whose bit `n` is unit `n`.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Bit `n` is unit `n`.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether `unit` is one of them.
    #[must_use]
    pub const fn contains(self, unit: Unit) -> bool {
        self.0 >> unit.index() & 1 == 1
    }

    /// The set with `unit` in it.
    #[must_use]
    pub const fn with(self, unit: Unit) -> Self {
        Self(self.0 | 1 << unit.index())
    }

    /// The units, in rising order. Cost: a count of trailing zeros for each.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Unit> + Clone {
        Units {
            rest: self.0 as u64,
            high: (self.0 >> 64) as u64,
            base: 0,
        }
    }

    /// The part of the set that work word `index` holds.
    pub(crate) const fn word(self, index: usize) -> u32 {
        (self.0 >> (index as u32 * UNITS_PER_WORD)) as u32
    }

    /// The set with the units of work word `index` added.
    pub(crate) const fn with_word(self, index: usize, units: u32) -> Self {
        Self(self.0 | (units as u128) << (index as u32 * UNITS_PER_WORD))
    }
}

/// The units of a set that are still to come. Two words of 64, because one of 128 takes a branch and two
/// counts for each unit.
#[derive(Clone)]
struct Units {
    rest: u64,
    high: u64,
    base: u32,
}

impl Iterator for Units {
    type Item = Unit;

    #[inline]
    fn next(&mut self) -> Option<Unit> {
        if self.rest == 0 {
            if self.high == 0 {
                return None;
            }
            (self.rest, self.high, self.base) = (self.high, 0, 64);
        }
        let index = self.base + self.rest.trailing_zeros();
        self.rest &= self.rest - 1;
        Some(Unit(index as u8))
    }
}

impl FromIterator<Unit> for UnitSet {
    fn from_iter<I: IntoIterator<Item = Unit>>(units: I) -> Self {
        units.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Debug for UnitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Unit::index)).finish()
    }
}

impl fmt::LowerHex for UnitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_one_bit_of_one_word() {
        for number in 0..128_u32 {
            let unit = Unit::try_from(number).unwrap();
            let set = UnitSet::EMPTY.with_word(unit.word(), unit.bit());
            assert_eq!(set, UnitSet::EMPTY.with(unit));
            assert_eq!(set.word(unit.word()), unit.bit());
            assert!(set.iter().eq([unit]));
        }
    }

    #[test]
    fn numbers_that_are_no_unit_are_named_in_the_error() {
        for (result, number) in [
            (Unit::try_from(128_u8), 128_i128),
            (Unit::try_from(-1_i32), -1),
            (Unit::try_from(u64::MAX), i128::from(u64::MAX)),
        ] {
            assert_eq!(
                result.unwrap_err().to_string(),
                format!("unit {number}: the limit is 127")
            );
        }
    }
}
