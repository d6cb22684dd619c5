//! How late something was, how often: powers of two of a nanosecond.

/// Counts by magnitude. Bucket `n` holds values from `2^(n-1)` up to, but without, `2^n` ns; bucket 0
/// holds 0.
///
/// ```
/// use bumpless_standby::drive::Histogram;
///
/// let mut late = Histogram::default();
/// late.note(900);
/// late.note(70_000);
/// assert_eq!((late.count(), late.max_ns()), (2, 70_000));
/// assert_eq!(late.quantile_ns(0.5), 1_024);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    buckets: [u64; 65],
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: [0; 65],
            max_ns: 0,
        }
    }
}

impl Histogram {
    /// Counts one value; unit: ns.
    pub fn note(&mut self, value_ns: u64) {
        let bucket = (u64::BITS - value_ns.leading_zeros()) as usize;
        self.buckets[bucket] += 1;
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The greatest.
    #[must_use]
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// A bound that the given part of all values is below: the end of the bucket, at most twice the
    /// value; 0 when nothing was counted.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> u64 {
        let wanted = (self.count() as f64 * part.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in (0u32..).zip(self.buckets) {
            seen += count;
            if seen >= wanted {
                return 1u64
                    .checked_shl(bucket)
                    .unwrap_or(u64::MAX)
                    .min(self.bound());
            }
        }
        0
    }

    /// The end of every bucket in use, with its count, the lowest first.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0u32..)
            .zip(self.buckets)
            .filter(|(_, count)| *count > 0)
            .map(|(bucket, count)| (1u64.checked_shl(bucket).unwrap_or(u64::MAX), count))
    }

    fn bound(&self) -> u64 {
        self.max_ns
            .checked_next_power_of_two()
            .unwrap_or(u64::MAX)
            .max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_range_have_buckets() {
        let mut histogram = Histogram::default();
        histogram.note(0);
        histogram.note(u64::MAX);
        assert_eq!(histogram.count(), 2);
        assert_eq!(histogram.quantile_ns(1.0), u64::MAX);
        assert_eq!(
            histogram.buckets().collect::<Vec<_>>(),
            [(1, 1), (u64::MAX, 1)]
        );
    }

    #[test]
    fn nothing_counted_has_no_quantile() {
        assert_eq!(Histogram::default().quantile_ns(0.99), 0);
    }

    #[test]
    fn a_quantile_bounds_its_part_of_the_values() {
        let mut histogram = Histogram::default();
        for value_ns in 1..=1000 {
            histogram.note(value_ns);
        }
        assert_eq!(histogram.quantile_ns(0.5), 512);
        assert_eq!(histogram.quantile_ns(0.99), 1024);
    }
}
