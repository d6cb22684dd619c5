//! The epoch: a ballot that names its owner, so that no two nodes ever hold the same one.
//!
//! Contract: of two epochs the higher counter wins, of two equal counters the lower node id. A node
//! uses an epoch only after an [authority](crate::authority) granted it for good; no counter is ever
//! reached by wrapping.

use std::cmp::Reverse;
use std::fmt;

/// Which of the pair: small, fixed, unique in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u8);

/// One term of office. It rises at each takeover and fences every lower one.
///
/// ```
/// use bumpless_standby::{Epoch, NodeId};
///
/// let (low, high) = (NodeId(0), NodeId(1));
/// assert!(Epoch::new(2, high) > Epoch::new(1, low));
/// // Both asked at the same time: the lower id ranks higher.
/// assert!(Epoch::new(2, low) > Epoch::new(2, high));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch {
    counter: u64,
    owner: NodeId,
}

impl Epoch {
    /// Before the first term: below every other.
    pub const NONE: Self = Self {
        counter: 0,
        owner: NodeId(u8::MAX),
    };

    /// The highest counter that is ever granted.
    pub const COUNTER_MAX: u64 = u64::MAX - 2;

    /// The epoch of this owner with this counter.
    #[must_use]
    pub const fn new(counter: u64, owner: NodeId) -> Self {
        Self { counter, owner }
    }

    /// How many terms there were, at least; unit: takeovers.
    #[must_use]
    pub const fn counter(self) -> u64 {
        self.counter
    }

    /// The only node that may act under this epoch.
    #[must_use]
    pub const fn owner(self) -> NodeId {
        self.owner
    }

    /// The lowest epoch of `owner` above this one and above `counter`; `None` at the end of the counter.
    #[must_use]
    pub const fn next(self, counter: u64, owner: NodeId) -> Option<Self> {
        let highest = if self.counter > counter {
            self.counter
        } else {
            counter
        };
        if highest >= Self::COUNTER_MAX {
            return None;
        }
        Some(Self::new(highest + 1, owner))
    }

    /// Whether this one is further above `level` than a healthy pair can have got: at most `jump_max`
    /// counters are believed.
    #[must_use]
    pub const fn jumps_over(self, level: Self, jump_max: u64) -> bool {
        self.counter > level.counter.saturating_add(jump_max) || self.counter > Self::COUNTER_MAX
    }
}

impl Ord for Epoch {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.counter, Reverse(self.owner)).cmp(&(other.counter, Reverse(other.owner)))
    }
}

impl PartialOrd for Epoch {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NONE {
            return f.write_str("none");
        }
        write!(f, "{} of node {}", self.counter, self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ranks_below_no_epoch() {
        assert!(Epoch::new(0, NodeId(0)) > Epoch::NONE);
        assert!(Epoch::new(1, NodeId(u8::MAX)) > Epoch::NONE);
    }

    #[test]
    fn the_next_epoch_is_above_both_bounds_and_ends_before_the_counter_wraps() {
        let here = Epoch::new(7, NodeId(0));
        assert_eq!(here.next(3, NodeId(1)), Some(Epoch::new(8, NodeId(1))));
        assert_eq!(here.next(9, NodeId(1)), Some(Epoch::new(10, NodeId(1))));
        let last = Epoch::new(Epoch::COUNTER_MAX - 1, NodeId(0));
        assert_eq!(
            last.next(0, NodeId(1)),
            Some(Epoch::new(Epoch::COUNTER_MAX, NodeId(1)))
        );
        assert_eq!(last.next(Epoch::COUNTER_MAX, NodeId(1)), None);
        assert_eq!(Epoch::new(u64::MAX, NodeId(0)).next(0, NodeId(1)), None);
    }

    #[test]
    fn a_jump_is_measured_from_the_level_and_never_overflows() {
        let level = Epoch::new(5, NodeId(0));
        assert!(!Epoch::new(5 + 1024, NodeId(1)).jumps_over(level, 1024));
        assert!(Epoch::new(6 + 1024, NodeId(1)).jumps_over(level, 1024));
        assert!(Epoch::new(u64::MAX, NodeId(1)).jumps_over(level, u64::MAX));
    }
}
