//! The report: machine, caveats, a line for each pair, the count of misses.

use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;

use crate::across::Durations;
use crate::alternate::Measured;
use crate::machine::{CAVEATS, Machine};
use crate::pair::Goal;

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Where it ran.
    pub machine: Machine,
    /// What to know before a figure is believed.
    pub caveats: &'static [&'static str],
    /// What was measured.
    pub ratios: Vec<Measured>,
    /// What was measured across processes.
    pub across: Vec<Durations>,
}

impl Report {
    /// What was measured on this machine.
    #[must_use]
    pub fn new(ratios: Vec<Measured>, across: Vec<Durations>) -> Self {
        Self {
            machine: Machine::here(),
            caveats: &CAVEATS,
            ratios,
            across,
        }
    }

    /// How many goals are missed by more than the spread.
    #[must_use]
    pub fn missed(&self) -> usize {
        self.ratios.iter().filter(|pair| pair.is_missed()).count()
    }

    /// One line: the fields of the report, with whether each goal is missed, and how many are.
    ///
    /// # Errors
    /// None that is known.
    pub fn json(&self) -> Result<String> {
        let mut value = serde_json::to_value(self)?;
        let rows = value["ratios"].as_array_mut().into_iter().flatten();
        for (row, pair) in rows.zip(&self.ratios) {
            row["missed"] = pair.is_missed().into();
        }
        value["missed"] = self.missed().into();
        Ok(value.to_string())
    }

    /// `ratios: N, missed: M`.
    #[must_use]
    pub fn closing_line(&self) -> String {
        format!("ratios: {}, missed: {}", self.ratios.len(), self.missed())
    }

    /// A table for people and for documents (Markdown).
    #[must_use]
    pub fn table(&self) -> String {
        let Machine {
            processor,
            cores,
            kernel,
            load,
            clock_ns,
        } = &self.machine;
        let mut text = format!(
            "{processor}, {cores} cores, Linux {kernel}; load {load}; a look at the clock {clock_ns:.0} ns\n\n\
             | what | beside | goal | ratio | spread | ns | ns beside | |\n\
             |---|---|---|---:|---:|---:|---:|---|\n"
        );
        for pair in &self.ratios {
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.2} | {:.2} | {} | {} | {} |",
                pair.name,
                pair.beside,
                goal(pair.goal),
                pair.ratio,
                pair.spread,
                nanoseconds(pair.a_ns),
                nanoseconds(pair.b_ns),
                if pair.is_missed() { "missed" } else { "" },
            );
        }
        if self.across.is_empty() {
            return text;
        }
        text += "\n| across processes | samples | p50, ns | p99, ns | max, ns |\n|---|---:|---:|---:|---:|\n";
        for durations in &self.across {
            let Durations {
                what,
                samples,
                p50_ns,
                p99_ns,
                max_ns,
            } = durations;
            // As above.
            let _ = writeln!(
                text,
                "| {what} | {samples} | {p50_ns} | {p99_ns} | {max_ns} |"
            );
        }
        text
    }
}

fn goal(goal: Goal) -> String {
    match goal {
        Goal::AtMost(limit) => format!("at most {limit} x"),
        Goal::Faster(limit) => format!("{limit} x faster"),
        Goal::Told => String::new(),
    }
}

fn nanoseconds(ns: f64) -> String {
    if ns < 100.0 {
        format!("{ns:.2}")
    } else {
        format!("{ns:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(goal: Goal, ratio: f64) -> Measured {
        Measured {
            name: "beat".to_owned(),
            beside: "one load, one store".to_owned(),
            goal,
            ratio,
            spread: 0.1,
            a_ns: 1.5,
            b_ns: 1.0,
            rounds: 9,
        }
    }

    #[test]
    fn a_miss_is_marked_and_counted() {
        let report = Report::new(
            vec![
                measured(Goal::AtMost(1.7), 1.75),
                measured(Goal::AtMost(1.7), 1.85),
            ],
            Vec::new(),
        );
        assert_eq!(report.closing_line(), "ratios: 2, missed: 1");
        let table = report.table();
        let missed = table.lines().filter(|line| line.contains("| missed |"));
        assert_eq!(missed.count(), 1, "{table}");
    }
}
