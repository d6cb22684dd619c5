//! How quick the machine is while something is measured on it.
//!
//! Contract: what is to happen *at once* takes a few turns of processes that were asleep; how long one such
//! turn takes is counted in the same run, beside what is measured, and the limit follows from both
//! medians. On an idle machine the limit is the wanted one.

use std::time::{Duration, Instant};

use crate::child::Child;

/// Turns of processes in what is measured, with much to spare: who is killed ends, who is woken looks, and
/// who asked hears of it.
const TURNS: u32 = 10;

/// Durations, each with a turn of the machine beside it.
pub struct Paced {
    partner: Child,
    durations: Vec<Duration>,
    turns: Vec<Duration>,
}

impl Paced {
    pub fn new() -> Self {
        let mut partner = Child::start("member", &[]);
        partner.done("idle");
        Self {
            partner,
            durations: Vec::new(),
            turns: Vec::new(),
        }
    }

    /// Takes a duration, and measures a turn: a process that slept is asked, and answers.
    pub fn push(&mut self, duration: Duration) {
        let asked = Instant::now();
        self.partner.done("idle");
        self.turns.push(asked.elapsed());
        self.durations.push(duration);
    }

    /// The median, which must be below `at_once` and what the machine needed for its turns, and the longest.
    #[track_caller]
    pub fn assert_at_once(&self, at_once: Duration) -> [Duration; 2] {
        let [durations, turns] = [&self.durations, &self.turns].map(|all| {
            let mut sorted = all.clone();
            sorted.sort_unstable();
            sorted
        });
        let (median, turn) = (durations[durations.len() / 2], turns[turns.len() / 2]);
        let limit = at_once + TURNS * turn;
        assert!(
            median < limit,
            "median of {durations:?} not below {limit:?}, of turns of {turn:?}"
        );
        [median, durations[durations.len() - 1]]
    }
}
