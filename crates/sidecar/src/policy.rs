//! What decides: a policy looks at an instance's statistics, and may answer with another tag.
//!
//! Contract: a policy runs in the scanner, never in an observed call. Its answer is a tag in the
//! instance's header, which the instance takes over at its next call. One that panics is switched off
//! for its instance, and for no other. It must not ask the sidecar that asks it: that waits for its answer.

use crate::stats::InstanceStats;

/// Looks at what was observed, and may ask for a change.
///
/// ```
/// use bumpless_sidecar::{InstanceStats, Policy};
///
/// /// Asks for tag 1 once more than a tenth of all operations were contended.
/// struct OnContention;
///
/// impl Policy for OnContention {
///     fn decide(&mut self, stats: &InstanceStats, _tag: u32) -> Option<u32> {
///         (stats.contended() * 10 > stats.observed()).then_some(1)
///     }
/// }
/// assert_eq!(OnContention.decide(&InstanceStats::default(), 0), None);
/// ```
pub trait Policy: Send {
    /// The tag that the instance should have, or `None` to leave the one it has, which is `tag`.
    fn decide(&mut self, stats: &InstanceStats, tag: u32) -> Option<u32>;
}

/// Always wants the same tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedPolicy(
    /// The tag.
    pub u32,
);

/// Never wants another tag: the instance is observed, and not steered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NoMigrationPolicy;

impl Policy for FixedPolicy {
    fn decide(&mut self, _: &InstanceStats, tag: u32) -> Option<u32> {
        (tag != self.0).then_some(self.0)
    }
}

impl Policy for NoMigrationPolicy {
    fn decide(&mut self, _: &InstanceStats, _: u32) -> Option<u32> {
        None
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_policy_asks_once_and_then_has_what_it_wants() {
        let stats = InstanceStats::default();
        assert_eq!(FixedPolicy(4).decide(&stats, 0), Some(4));
        assert_eq!(FixedPolicy(4).decide(&stats, 4), None);
        assert_eq!(NoMigrationPolicy.decide(&stats, 4), None);
    }
}
