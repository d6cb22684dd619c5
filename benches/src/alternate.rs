//! The runner whose ratios count: A and B in turn, in short rounds.
//!
//! Contract: first each batch is made long enough to be timed and short enough that most fall between
//! two interruptions; then they alternate, the order turned round each time. The ratio of a round is
//! that of two batches which followed each other directly, so a slow phase of the machine meets both. Of
//! all rounds the middle ratio is told, and the distance between the quartiles as its spread.
//!
//! ```text
//!   ready ─▶ rounds ─▶ ratio, spread ─┬─ met, or missed by more than the spread ─▶ told
//!     ▲                               └─ hidden by a large spread ─┐ (three times)
//!     └────────────────────────────────────────────────────────────┘
//! ```

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::pair::{Batch, Goal, Pair, Stage};

/// How long a batch should take.
const BATCH_NS: f64 = 200_000.0;
/// Rounds of which a ratio is told.
const ROUNDS_MIN: usize = 7;
const ROUNDS_MAX: usize = 2_001;
/// Once more, when the spread hides the answer.
const TRIES_MORE: usize = 3;

/// What the rounds of one pair came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The pair's name.
    pub name: String,
    /// What A was compared with.
    pub beside: String,
    /// How the ratio should come out.
    pub goal: Goal,
    /// The middle one of the ratios, in the direction of the goal.
    pub ratio: f64,
    /// Between the quartiles of the ratios.
    pub spread: f64,
    /// The middle one of A's times, in nanoseconds.
    pub a_ns: f64,
    /// The middle one of B's times, in nanoseconds.
    pub b_ns: f64,
    /// How many ratios there were.
    pub rounds: usize,
}

impl Measured {
    /// Whether the goal is missed by more than the spread.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        self.goal.is_missed(self.ratio, self.spread)
    }
}

/// Does one pair for about as long as told; and again, when something else on the machine spread the ratios so
/// far that they do not tell whether the goal is missed. Then the run counts in which they are closest.
///
/// # Errors
/// What the pair found wrong.
pub fn measure(pair: &Pair, time: Duration) -> Result<Measured> {
    let mut best = measure_once(pair, time)?;
    for _ in 0..TRIES_MORE {
        if !best.goal.is_hidden(best.ratio, best.spread) {
            break;
        }
        let again = measure_once(pair, time)?;
        if again.spread / again.ratio < best.spread / best.ratio {
            best = again;
        }
    }
    Ok(best)
}

fn measure_once(pair: &Pair, time: Duration) -> Result<Measured> {
    let mut rounds = Rounds::of(time, pair.goal, &mut |stage| (pair.run)(stage))?;
    let [low, ratio, high] = quartiles(&mut rounds.ratios);
    Ok(Measured {
        name: pair.name.to_owned(),
        beside: pair.beside.to_owned(),
        goal: pair.goal,
        ratio,
        spread: high - low,
        a_ns: quartiles(&mut rounds.a_ns)[1],
        b_ns: quartiles(&mut rounds.b_ns)[1],
        rounds: rounds.ratios.len(),
    })
}

/// The rounds of one pair.
struct Rounds {
    time: Duration,
    goal: Goal,
    ratios: Vec<f64>,
    a_ns: Vec<f64>,
    b_ns: Vec<f64>,
}

/// The middle ones of the times of A and of B, done for about as long as told.
///
/// # Errors
/// What `run` found wrong.
#[cfg(feature = "plot")]
pub fn middle_ns(
    time: Duration,
    run: &mut dyn FnMut(&mut dyn Stage) -> Result<()>,
) -> Result<[f64; 2]> {
    let mut rounds = Rounds::of(time, Goal::Told, run)?;
    Ok([&mut rounds.a_ns, &mut rounds.b_ns].map(|ns| quartiles(ns)[1]))
}

impl Rounds {
    fn of(
        time: Duration,
        goal: Goal,
        run: &mut dyn FnMut(&mut dyn Stage) -> Result<()>,
    ) -> Result<Self> {
        let mut rounds = Self {
            time,
            goal,
            ratios: Vec::new(),
            a_ns: Vec::new(),
            b_ns: Vec::new(),
        };
        run(&mut rounds)?;
        ensure!(!rounds.ratios.is_empty(), "nothing was measured");
        Ok(rounds)
    }
}

impl Stage for Rounds {
    fn compare(&mut self, a: &mut Batch, b: &mut Batch) -> Result<()> {
        let (times_a, times_b) = (times(a)?, times(b)?);
        let started = Instant::now();
        for round in 0..ROUNDS_MAX {
            if round >= ROUNDS_MIN && started.elapsed() > self.time {
                break;
            }
            let (a_ns, b_ns);
            if round % 2 == 0 {
                a_ns = a(times_a)? / times_a as f64;
                b_ns = b(times_b)? / times_b as f64;
            } else {
                b_ns = b(times_b)? / times_b as f64;
                a_ns = a(times_a)? / times_a as f64;
            }
            // A clock that was taken off twice from almost nothing.
            let (a_ns, b_ns) = (a_ns.max(0.01), b_ns.max(0.01));
            self.ratios.push(self.goal.ratio(a_ns, b_ns));
            self.a_ns.push(a_ns);
            self.b_ns.push(b_ns);
        }
        Ok(())
    }
}

/// How often the work must be done to fill a batch; warms it up, too.
fn times(batch: &mut Batch) -> Result<u64> {
    let mut times = 1;
    loop {
        let ns = batch(times)?;
        if ns >= BATCH_NS || times >= 1 << 24 {
            return Ok(times);
        }
        times = if ns < BATCH_NS / 16.0 {
            times * 8
        } else {
            times * 2
        };
    }
}

/// Lower quartile, median, upper quartile; `values` is not empty.
fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let at = |quarter: usize| {
        let index = (values.len().saturating_sub(1)) * quarter / 4;
        values.get(index).copied().unwrap_or_default()
    };
    [at(1), at(2), at(3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_values_that_were_measured() {
        let mut values = [5.0, 1.0, 4.0, 2.0, 3.0];
        assert_eq!(quartiles(&mut values), [2.0, 3.0, 4.0]);
        assert_eq!(quartiles(&mut [7.0]), [7.0, 7.0, 7.0]);
    }

    #[test]
    fn the_ratio_of_two_known_batches_is_theirs() {
        fn run(stage: &mut dyn Stage) -> Result<()> {
            stage.compare(&mut |n| Ok(30.0 * n as f64), &mut |n| Ok(10.0 * n as f64))
        }
        let pair = Pair {
            name: "three",
            beside: "one",
            goal: Goal::AtMost(2.5),
            run,
        };
        let measured = measure(&pair, Duration::ZERO).unwrap();
        assert_eq!((measured.ratio, measured.spread), (3.0, 0.0));
        assert_eq!((measured.a_ns, measured.b_ns), (30.0, 10.0));
        assert!(measured.is_missed());
    }

    #[test]
    fn a_pair_whose_spread_hides_the_answer_is_measured_again_and_the_closest_run_counts() {
        use std::cell::Cell;
        thread_local!(static RUNS: Cell<usize> = const { Cell::new(0) });
        fn run(stage: &mut dyn Stage) -> Result<()> {
            let run = RUNS.get();
            RUNS.set(run + 1);
            let (mut times, mut round) = (0, 0);
            let wild = move |n: u64| {
                // As often as before: not looking for how often any more. Three of seven rounds are slow, but
                // none in the third run.
                round += u32::from(n == times);
                times = n;
                let is_slow = run < 2 && round > 0 && round % 2 == 0;
                Ok(if is_slow { 90.0 } else { 20.0 } * n as f64)
            };
            stage.compare(&mut { wild }, &mut |n| Ok(10.0 * n as f64))
        }
        let pair = Pair {
            name: "wild",
            beside: "ten",
            goal: Goal::AtMost(1.5),
            run,
        };
        let measured = measure(&pair, Duration::ZERO).unwrap();
        assert_eq!((measured.ratio, measured.spread), (2.0, 0.0));
        assert_eq!(RUNS.get(), 3);
    }
}
