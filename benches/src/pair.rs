//! A pair: two pieces of work that are compared, and how their ratio should come out.
//!
//! Contract: a pair makes its world ready, then gives two batches to a [`Stage`], which decides how
//! often each is done. A batch does its work `n` times and returns the nanoseconds that the *work* took,
//! without what it does between to make the next repetition the same. It checks what it claims (that
//! exactly four were dead, say) and fails if that is not so.

use std::hint::black_box;
use std::sync::atomic::{Ordering::SeqCst, fence};
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;

use crate::machine::clock_cost_ns;

/// Does the work so many times; the nanoseconds that it took.
pub type Batch<'a> = dyn FnMut(u64) -> Result<f64> + 'a;

/// What does the batches of a pair: the alternating runner, or criterion.
pub trait Stage {
    /// Does A and B as often as it likes.
    ///
    /// # Errors
    /// What a batch found wrong.
    fn compare(&mut self, a: &mut Batch, b: &mut Batch) -> Result<()>;
}

/// How the ratio of a pair should come out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", content = "limit", rename_all = "snake_case")]
pub enum Goal {
    /// A takes at most so many times as long as B.
    AtMost(f64),
    /// A is at least so many times as fast as B.
    Faster(f64),
    /// No goal: told for comparison.
    Told,
}

impl Goal {
    /// The ratio that the goal speaks of, of the times that A and B took.
    #[must_use]
    pub fn ratio(self, a_ns: f64, b_ns: f64) -> f64 {
        match self {
            Self::AtMost(_) | Self::Told => a_ns / b_ns,
            Self::Faster(_) => b_ns / a_ns,
        }
    }

    /// Whether a ratio misses the goal by more than `spread`.
    #[must_use]
    pub fn is_missed(self, ratio: f64, spread: f64) -> bool {
        match self {
            Self::AtMost(limit) => ratio > limit + spread,
            Self::Faster(limit) => ratio < limit - spread,
            Self::Told => false,
        }
    }

    /// Whether a ratio misses the goal, and only a spread of more than a quarter of it says otherwise.
    #[must_use]
    pub fn is_hidden(self, ratio: f64, spread: f64) -> bool {
        self.is_missed(ratio, 0.0) && !self.is_missed(ratio, spread) && spread > ratio / 4.0
    }
}

/// Two pieces of work, named, with a goal.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// What is measured; unique, and what a filter looks at.
    pub name: &'static str,
    /// What A is compared with.
    pub beside: &'static str,
    /// How the ratio should come out.
    pub goal: Goal,
    /// Makes everything ready and gives both batches to the stage.
    pub run: fn(&mut dyn Stage) -> Result<()>,
}

impl Pair {
    /// A pair without a goal.
    pub const fn told(
        name: &'static str,
        beside: &'static str,
        run: fn(&mut dyn Stage) -> Result<()>,
    ) -> Self {
        Self {
            name,
            beside,
            goal: Goal::Told,
            run,
        }
    }
}

/// A batch that does `work` without a look at the clock between.
pub fn in_a_row(mut work: impl FnMut()) -> impl FnMut(u64) -> Result<f64> {
    move |times| {
        let started = Instant::now();
        for _ in 0..times {
            work();
        }
        Ok(started.elapsed().as_nanos() as f64)
    }
}

/// A batch in which each turn is given what the one before it returned: none can begin earlier.
pub fn each_after_the_last(mut work: impl FnMut(usize) -> usize) -> impl FnMut(u64) -> Result<f64> {
    let mut last = 0;
    move |times| {
        // A register of its own: kept where the caller sees it, it would be stored and loaded in each turn.
        let mut now = black_box(last);
        let started = Instant::now();
        for _ in 0..times {
            now = work(now);
        }
        let ns = started.elapsed().as_nanos() as f64;
        last = black_box(now);
        Ok(ns)
    }
}

/// A batch that does `ready`, untimed, before each `work`, and waits until what it stored has reached the
/// cache: the first locked instruction of the work would wait for it. What the two looks at the clock cost
/// is taken off again.
pub fn one_by_one<W>(
    world: &mut W,
    mut ready: impl FnMut(&mut W) -> Result<()>,
    mut work: impl FnMut(&mut W),
) -> impl FnMut(u64) -> Result<f64> {
    move |times| {
        let mut ns = 0.0;
        for _ in 0..times {
            ready(world)?;
            fence(SeqCst);
            let started = Instant::now();
            work(world);
            ns += started.elapsed().as_nanos() as f64 - clock_cost_ns();
        }
        Ok(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_that_a_large_spread_hides_is_no_answer_and_one_within_a_small_spread_is() {
        assert!(Goal::AtMost(1.0).is_hidden(7.0, 8.0));
        assert!(!Goal::AtMost(1.0).is_hidden(7.0, 2.0), "missed");
        assert!(!Goal::AtMost(1.0).is_hidden(1.1, 0.2), "met, nearly");
        assert!(!Goal::AtMost(1.0).is_hidden(0.9, 8.0), "met");
        assert!(Goal::Faster(10.0).is_hidden(5.0, 6.0));
        assert!(!Goal::Told.is_hidden(5.0, 6.0));
    }

    #[test]
    fn a_goal_is_missed_only_by_more_than_the_spread() {
        assert!(!Goal::AtMost(2.0).is_missed(2.1, 0.2));
        assert!(Goal::AtMost(2.0).is_missed(2.3, 0.2));
        assert!(!Goal::Faster(10.0).is_missed(9.5, 1.0));
        assert!(Goal::Faster(10.0).is_missed(8.5, 1.0));
        assert!(!Goal::Told.is_missed(1e9, 0.0));
    }

    #[test]
    fn at_most_and_faster_are_ratios_the_other_way_round() {
        assert_eq!(Goal::AtMost(1.0).ratio(6.0, 2.0), 3.0);
        assert_eq!(Goal::Faster(1.0).ratio(2.0, 6.0), 3.0);
    }
}
