//! What is known of one worker's beats: its intervals in epochs, and how long the next may be.
//!
//! Contract: a value, changed by one interval at a time; no time, no table. The estimate is of intervals
//! like those of the last [`WINDOW`] to twice as many beats, and says nothing before [`SAMPLES_MIN`].
//!
//! The idea is that of the accrual detectors (N. Hayashibara, X. Défago, R. Yared, T. Katayama: *The φ
//! accrual failure detector*, SRDS 2004): not "is it late", but "how improbable is such a silence", and a
//! threshold on the probability. There the intervals are taken for normally distributed. Here they are
//! whole numbers, mostly 1, of workers that stop now and then for a page of disk or a garbage collection:
//! the normal's tail is far too thin for that. So the tail is estimated by itself, as hydrologists do (J.
//! Pickands: *Statistical inference using extreme order statistics*, Annals of Statistics 3, 1975): above a
//! high quantile the excesses are taken for geometrically distributed, with the mean that they have. A
//! tail that is thicker still is covered by the longest interval of the window, below which no estimate
//! goes.
//!
//! ```text
//!   P(interval > u + y)  ≈  p · q^y      u: at most one in 64 lies above it
//!                                        p: how many lie above,       (k + 1) / (n + 1)
//!                                        q: from their mean excess,   (s - k + 1) / (s + 4)
//! ```
//! Both fractions are tilted to the safe side, with the weight of a few beats; so of a worker that never
//! missed an epoch something is known as well.

/// So many intervals make half of what is remembered.
pub const WINDOW: u32 = 1_024;

/// Fewer intervals say nothing.
pub const SAMPLES_MIN: u32 = 128;

/// Lengths that are told apart: 1 to this; longer ones count as this, and as the longest.
const LENGTHS: usize = 128;

/// Above the quantile lie at most one in so many.
const TAIL_SHARE: u32 = 64;

/// The intervals of one worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BeatIntervals {
    now: Window,
    before: Window,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Window {
    /// By length - 1.
    counts: [u16; LENGTHS],
    samples: u32,
    longest: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            counts: [0; LENGTHS],
            samples: 0,
            longest: 0,
        }
    }
}

impl BeatIntervals {
    /// Takes in one interval: from the epoch of a beat to that of the next one that was seen. 0 is none.
    pub fn note(&mut self, interval_epochs: u64) {
        let Some(place) = interval_epochs.checked_sub(1) else {
            return;
        };
        if self.now.samples >= WINDOW {
            self.before = std::mem::take(&mut self.now);
        }
        let place = usize::try_from(place).map_or(LENGTHS - 1, |place| place.min(LENGTHS - 1));
        self.now.counts[place] += 1;
        self.now.samples += 1;
        self.now.longest = self.now.longest.max(interval_epochs);
    }

    /// How many intervals are remembered.
    #[must_use]
    pub fn samples(&self) -> u32 {
        self.now.samples + self.before.samples
    }

    /// The shortest grace, in epochs, that an interval exceeds with at most this probability; `None` while
    /// too little is known.
    #[must_use]
    pub fn grace_epochs(&self, probability: f64) -> Option<u64> {
        let samples = self.samples();
        if samples < SAMPLES_MIN {
            return None;
        }
        let (mut above, mut threshold) = (samples, 0);
        for place in 0..LENGTHS {
            if above * TAIL_SHARE <= samples {
                break;
            }
            above -= self.count(place);
            threshold = place + 1;
        }
        let excess: u64 = (threshold..LENGTHS)
            .map(|place| u64::from(self.count(place)) * (place + 1 - threshold) as u64)
            .sum();
        let share = f64::from(above + 1) / f64::from(samples + 1);
        let ratio = (excess - u64::from(above) + 1) as f64 / (excess + 4) as f64;
        let further = ((probability / share).ln() / ratio.ln()).max(0.0).ceil();
        let estimate = (threshold as u64).saturating_add(further as u64);
        Some(estimate.max(self.now.longest).max(self.before.longest))
    }

    fn count(&self, place: usize) -> u32 {
        u32::from(self.now.counts[place]) + u32::from(self.before.counts[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(intervals: impl IntoIterator<Item = u64>) -> BeatIntervals {
        let mut known = BeatIntervals::default();
        intervals.into_iter().for_each(|epochs| known.note(epochs));
        known
    }

    #[test]
    fn nothing_is_said_of_a_few_intervals_and_something_of_a_worker_that_never_missed_one() {
        assert_eq!(of([1; 127]).grace_epochs(1e-3), None);
        let punctual = of([1; 1_000]);
        assert_eq!(punctual.grace_epochs(1e-3), Some(1));
        assert_eq!(punctual.grace_epochs(1e-6), Some(6));
    }

    #[test]
    fn the_longest_interval_counts_until_it_is_out_of_the_window() {
        let mut known = of([1; 500]);
        known.note(900);
        assert_eq!(known.grace_epochs(1e-3), Some(900));
        (0..2 * WINDOW).for_each(|_| known.note(1));
        assert!(known.grace_epochs(1e-3) < Some(5));
        assert!(known.samples() <= 2 * WINDOW);
    }

    #[test]
    fn no_interval_is_too_long_and_zero_is_none() {
        let mut known = of([u64::MAX; 140]);
        known.note(0);
        assert_eq!(known.samples(), 140);
        assert_eq!(known.grace_epochs(1e-9), Some(u64::MAX));
    }

    #[test]
    fn a_smaller_probability_never_gives_a_shorter_grace() {
        let known = of((0..2_000_u64).map(|n| 1 + n % 7 % 3 * (n % 5)));
        let graces: Vec<_> = (1..12)
            .map(|tens| known.grace_epochs(0.1_f64.powi(tens)))
            .collect();
        assert!(graces.is_sorted(), "{graces:?}");
    }
}
