//! What was observed of one instance, as a plain value.
//!
//! Contract: every observation that a ring delivered, and every operation that it tallied, is in exactly
//! one count; the ring's own counts say how many more there were. Who tallies is known by samples, one in
//! 256. Counts never fall. Which operation has which number is the instance's to
//! say (see its `Op` type); numbers beyond [`OPS_MAX`] share one place, the last.

use crate::observation::{Observation, TALLIED_OP};

/// How many kinds of operations are told apart.
pub const OPS_MAX: usize = 32;

/// So many producers are told apart; of more it is known that there were more.
pub const PRODUCERS_MAX: usize = 64;

/// Powers of two of nanoseconds that the histogram tells apart: the last holds all from 2^30 ns on.
pub const LATENCY_BUCKETS: usize = 32;

/// How long timed operations took. One operation in 256 is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Latency {
    /// How many were timed.
    pub timed: u64,
    /// The sum of their durations; unit: ns.
    pub sum_ns: u64,
    /// The longest; unit: ns.
    pub max_ns: u64,
    /// Bucket n counts durations from 2^(n-1) to 2^n - 1 ns; bucket 0 those of 0 ns.
    pub log2_ns: [u64; LATENCY_BUCKETS],
}

/// One kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpStats {
    /// How often it was observed.
    pub count: u64,
    /// How often it retried, or found that the thing was another's.
    pub contended: u64,
    /// How long it took.
    pub latency: Latency,
}

/// Who observed: exact up to [`PRODUCERS_MAX`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Producers {
    /// In rising order.
    known: Vec<u32>,
    is_more: bool,
}

/// What was observed of one instance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstanceStats {
    ops: [OpStats; OPS_MAX],
    /// The threads that pushed.
    pub producers: Producers,
    /// Of the first operation, those that were tallied.
    pub tallied: u64,
    /// Observations that found the ring full.
    pub dropped: u64,
    /// Observations that their producer did not finish: it died inside.
    pub skipped: u64,
    /// Changes of the tag that a policy got.
    pub migrations: u64,
    /// Policies of this instance that panicked: 0 or 1.
    pub policies_off: u64,
    /// Events that the instance's sink did not take, as it panicked.
    pub events_lost: u64,
    /// When the last scan looked; unit: ns of the caller's monotonic clock. 0: never.
    pub scanned_ns: u64,
}

impl InstanceStats {
    /// One kind of operation, by the number of the instance's `Op` type.
    #[must_use]
    pub fn op(&self, kind: impl Into<u16>) -> &OpStats {
        &self.ops[place(kind.into())]
    }

    /// All kinds that were observed, by number.
    pub fn ops(&self) -> impl Iterator<Item = (u16, &OpStats)> {
        let kinds = 0_u16..;
        kinds.zip(&self.ops).filter(|(_, op)| op.count > 0)
    }

    /// How many operations were delivered or tallied.
    #[must_use]
    pub fn observed(&self) -> u64 {
        self.ops
            .iter()
            .fold(0, |sum, op| sum.saturating_add(op.count))
    }

    /// How many of them were contended.
    #[must_use]
    pub fn contended(&self) -> u64 {
        self.ops.iter().map(|op| op.contended).sum()
    }

    /// Takes in one observation.
    pub fn add(&mut self, observation: &Observation) {
        let op = &mut self.ops[place(observation.op_kind)];
        // What was tallied in shared memory may be any number.
        let is_one = observation.flags & Observation::TALLIED == 0;
        op.count = op.count.saturating_add(u64::from(is_one));
        op.contended += u64::from(observation.flags & Observation::CONTENDED != 0);
        if let Some(latency_ns) = observation.latency() {
            op.latency.add(latency_ns);
        }
        self.producers.add(observation.producer_id);
    }
}

impl InstanceStats {
    /// Takes in how many operations the ring has tallied by now.
    pub(crate) fn add_tallied(&mut self, tallied: u64) {
        // What comes from shared memory may be any number, and counts never fall.
        let more = tallied.saturating_sub(self.tallied);
        let op = &mut self.ops[place(TALLIED_OP)];
        op.count = op.count.saturating_add(more);
        self.tallied += more;
    }
}

fn place(kind: u16) -> usize {
    usize::from(kind).min(OPS_MAX - 1)
}

impl Latency {
    /// Takes in one duration.
    pub fn add(&mut self, latency_ns: u64) {
        self.timed += 1;
        // What comes from shared memory may be any number.
        self.sum_ns = self.sum_ns.saturating_add(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
        let bits = (u64::BITS - latency_ns.leading_zeros()) as usize;
        self.log2_ns[bits.min(LATENCY_BUCKETS - 1)] += 1;
    }

    /// The mean; `None` before the first. Unit: ns.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.timed)
    }

    /// The upper end of the bucket in which the quantile lies, `per_mille` thousandths of all being at or
    /// below it; `None` before the first. Unit: ns.
    #[must_use]
    pub fn quantile_ns(&self, per_mille: u64) -> Option<u64> {
        let wanted = self.timed.saturating_mul(per_mille).div_ceil(1_000).max(1);
        let mut seen = 0;
        let bucket = self.log2_ns.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(((1_u64 << bucket) - 1).min(self.max_ns))
    }
}

impl Producers {
    /// How many there were; with `is_more`, at least so many and one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// Whether there were more than are told apart.
    #[must_use]
    pub fn is_more(&self) -> bool {
        self.is_more
    }

    /// Those that are known, in rising order.
    #[must_use]
    pub fn known(&self) -> &[u32] {
        &self.known
    }

    fn add(&mut self, producer_id: u32) {
        let Err(place) = self.known.binary_search(&producer_id) else {
            return;
        };
        if self.known.len() < PRODUCERS_MAX {
            self.known.insert(place, producer_id);
        } else {
            self.is_more = true;
        }
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_of_their_highest_bit() {
        let mut latency = Latency::default();
        for latency_ns in [0, 1, 2, 3, 4, 1 << 30, u64::MAX] {
            latency.add(latency_ns);
        }
        assert_eq!(latency.log2_ns[..4], [1, 1, 2, 1]);
        assert_eq!(latency.log2_ns[LATENCY_BUCKETS - 1], 2);
        assert_eq!((latency.timed, latency.max_ns), (7, u64::MAX));
        assert_eq!(
            (latency.quantile_ns(500), latency.quantile_ns(1)),
            (Some(3), Some(0))
        );
        assert_eq!(Latency::default().quantile_ns(500), None);
    }

    #[test]
    fn producers_are_exact_up_to_the_limit_and_then_more() {
        let mut producers = Producers::default();
        for round in 0..2 {
            for id in (0..PRODUCERS_MAX as u32).rev() {
                producers.add(id * 3);
            }
            assert_eq!(
                (producers.count(), producers.is_more()),
                (PRODUCERS_MAX, false),
                "{round}"
            );
        }
        producers.add(1);
        assert_eq!(
            (producers.count(), producers.is_more()),
            (PRODUCERS_MAX, true)
        );
    }

    #[test]
    fn no_number_of_tallied_operations_is_too_great() {
        let mut stats = InstanceStats::default();
        stats.add_tallied(u64::MAX);
        stats.add(&Observation::default());
        stats.add(&Observation {
            op_kind: 1,
            ..Observation::default()
        });
        stats.add_tallied(3);
        assert_eq!((stats.observed(), stats.tallied), (u64::MAX, u64::MAX));
    }

    #[test]
    fn an_operation_that_this_version_does_not_know_is_counted_all_the_same() {
        let mut stats = InstanceStats::default();
        for op_kind in [3, 31, 32, u16::MAX] {
            stats.add(&Observation {
                op_kind,
                ..Observation::default()
            });
        }
        assert_eq!((stats.op(3_u16).count, stats.op(31_u16).count), (1, 3));
        assert_eq!(stats.observed(), 4);
    }
}
