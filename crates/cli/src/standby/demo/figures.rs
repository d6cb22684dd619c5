//! What a run shows, in numbers.
//!
//! Contract: nothing but the record decides ([`judgement`](super::judgement)).

use serde::Serialize;

use crate::standby::error::StandbyError;

use super::judgement::{Judgement, cycles_between, is_takeover};
use super::record::{Deed, Record, Said};

/// One run. Times and cycles that do not apply are `null`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// What was done.
    pub fault: String,
    /// Over what.
    pub link: String,
    /// The control cycle.
    pub period_us: f64,
    /// From the fault to the plant's acceptance of the new primary's first output.
    pub takeover_us: Option<f64>,
    /// Between the old primary's last accepted output and the new one's first.
    pub missing_cycles: Option<u64>,
    /// That first output, less the last accepted one and one for each cycle since.
    pub bump: Option<f64>,
    /// Accepted though a higher epoch, or a later cycle of the same one, was accepted before.
    pub stale_accepted: u64,
    /// Though the replaced node had sent all in time, and no fault was injected.
    pub false_takeovers: u64,
    /// As the replaced node was itself silent for longer than the timeout, without a fault.
    pub primary_late: u64,
    /// Between the two: it was late, but for less than the timeout.
    pub partly_late: u64,
    /// As the replaced node had stopped its outputs: the plant had not answered within its lease.
    pub plant_late: u64,
    /// What of `bump` comes from cycles that a node left out as it was late: steps of the integrator.
    pub lateness_steps: Option<f64>,
    /// Promotions after silence, expected ones included.
    pub takeovers: u64,
    /// From the plant's first refusal of the old primary to its demotion.
    pub demoted_after_nack_us: Option<f64>,
    /// From the end of the fault to the old primary's demotion.
    pub demoted_after_heal_us: Option<f64>,
    /// From the end of the fault until the old primary is qualified again.
    pub qualified_after_heal_us: Option<f64>,
    /// By node.
    pub accepted: [u64; 2],
    /// By node.
    pub refused: [u64; 2],
    /// Cycles of which outputs of both nodes were accepted.
    pub shared_cycles: u64,
    /// The latest begin of a cycle, by node, stops and cuts of this run aside.
    pub late_us_max: [f64; 2],
    /// Nodes that drive at the end.
    pub primaries_at_end: u64,
}

impl Figures {
    /// Of a record.
    pub fn of(record: &Record) -> Self {
        let fault = record.fault();
        let excuse = fault.filter(|fault| fault.excuses_takeover());
        let takeover = excuse.and_then(|fault| record.takeover_after(fault));
        let mut figures = Self {
            fault: record.settings.fault.clone(),
            link: record.settings.link.clone(),
            period_us: us(record.settings.period_ns),
            takeover_us: None,
            missing_cycles: None,
            bump: None,
            stale_accepted: record.stale_accepted(),
            false_takeovers: 0,
            primary_late: 0,
            partly_late: 0,
            plant_late: 0,
            lateness_steps: None,
            takeovers: 0,
            demoted_after_nack_us: None,
            demoted_after_heal_us: None,
            qualified_after_heal_us: None,
            accepted: record.count(|offer| offer.refusal.is_none()),
            refused: record.count(|offer| offer.refusal.is_some()),
            shared_cycles: record.shared_cycles(),
            late_us_max: [0, 1].map(|node| us(record.late_ns_max(node))),
            primaries_at_end: record.primaries_at_end(),
        };
        figures.judge_takeovers(record);
        if let (Some(fault), Some((last, first))) = (fault, takeover) {
            let cycles = cycles_between(last, first);
            figures.takeover_us = Some(us(first.at_ns.saturating_sub(fault.at_ns)));
            figures.missing_cycles = Some(first.cycle.saturating_sub(last.cycle + 1));
            figures.bump = Some(first.value - last.value - cycles);
            figures.lateness_steps = Some(record.lateness_steps(fault, last, first));
        }
        if let Some(fault) = fault {
            figures.follow_old_primary(record, fault);
        }
        figures
    }

    /// No stale output was accepted, and one node drives.
    pub fn is_sound(&self) -> bool {
        self.stale_accepted == 0 && self.primaries_at_end == 1
    }

    /// The error that says what is wrong.
    pub fn unsound(&self) -> StandbyError {
        StandbyError::Unsound {
            fault: self.fault.clone(),
            stale_accepted: self.stale_accepted,
            primaries_at_end: self.primaries_at_end,
        }
    }

    /// Of several runs: the worst of each time, the sum of each count, both over all faults.
    pub fn worst(runs: &[Self]) -> Self {
        let longest = |of: fn(&Self) -> Option<f64>| runs.iter().filter_map(of).reduce(f64::max);
        let most = |of: fn(&Self) -> Option<u64>| runs.iter().filter_map(of).max();
        let sum = |of: fn(&Self) -> u64| runs.iter().map(of).sum();
        let farthest = |one: f64, other: f64| if other.abs() > one.abs() { other } else { one };
        let first = runs.first();
        Self {
            fault: "all".to_owned(),
            link: first.map_or_else(String::new, |run| run.link.clone()),
            period_us: first.map_or(0.0, |run| run.period_us),
            takeover_us: longest(|run| run.takeover_us),
            missing_cycles: most(|run| run.missing_cycles),
            bump: runs.iter().filter_map(|run| run.bump).reduce(farthest),
            stale_accepted: sum(|run| run.stale_accepted),
            false_takeovers: sum(|run| run.false_takeovers),
            primary_late: sum(|run| run.primary_late),
            partly_late: sum(|run| run.partly_late),
            plant_late: sum(|run| run.plant_late),
            lateness_steps: runs
                .iter()
                .filter_map(|run| run.lateness_steps)
                .reduce(farthest),
            takeovers: sum(|run| run.takeovers),
            demoted_after_nack_us: longest(|run| run.demoted_after_nack_us),
            demoted_after_heal_us: longest(|run| run.demoted_after_heal_us),
            qualified_after_heal_us: longest(|run| run.qualified_after_heal_us),
            accepted: [0, 1].map(|node| runs.iter().map(|run| run.accepted[node]).sum()),
            refused: [0, 1].map(|node| runs.iter().map(|run| run.refused[node]).sum()),
            shared_cycles: sum(|run| run.shared_cycles),
            late_us_max: [0, 1].map(|node| {
                runs.iter()
                    .fold(0.0, |most: f64, run| most.max(run.late_us_max[node]))
            }),
            primaries_at_end: most(|run| Some(run.primaries_at_end)).unwrap_or(0),
        }
    }

    /// For people.
    pub fn table(&self) -> String {
        let Self {
            fault,
            link,
            accepted,
            refused,
            ..
        } = self;
        let time =
            |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{:.3} ms", us / 1_000.0));
        let mut text = format!(
            "fault {fault}, link {link}, cycle {:.3} ms\n",
            self.period_us / 1_000.0
        );
        let mut row = |name: &str, value: String| text += &format!("  {name:34}{value}\n");
        row("fault to first new output", time(self.takeover_us));
        row("cycles without an output", count(self.missing_cycles));
        row("bump", steps(self.bump));
        row("of that by lateness", steps(self.lateness_steps));
        row(
            "first refusal to demotion",
            time(self.demoted_after_nack_us),
        );
        row(
            "end of the fault to demotion",
            time(self.demoted_after_heal_us),
        );
        row(
            "end of the fault to qualified",
            time(self.qualified_after_heal_us),
        );
        row(
            "accepted of node 0, 1",
            format!("{}, {}", accepted[0], accepted[1]),
        );
        row(
            "refused of node 0, 1",
            format!("{}, {}", refused[0], refused[1]),
        );
        row("stale outputs accepted", self.stale_accepted.to_string());
        row(
            "takeovers (false, late, plant, partly)",
            format!(
                "{} ({}, {}, {}, {})",
                self.takeovers,
                self.false_takeovers,
                self.primary_late,
                self.plant_late,
                self.partly_late
            ),
        );
        row(
            "latest cycle of node 0, 1",
            format!(
                "{}, {}",
                time(Some(self.late_us_max[0])),
                time(Some(self.late_us_max[1]))
            ),
        );
        row("primaries at the end", self.primaries_at_end.to_string());
        text
    }

    fn judge_takeovers(&mut self, record: &Record) {
        let fault = record.fault().filter(|fault| fault.excuses_takeover());
        let mut expected_of = fault.map(|fault| (fault.at_ns, 1 - fault.node));
        for said in record.said.iter().filter(|said| is_takeover(said)) {
            self.takeovers += 1;
            if expected_of.is_some_and(|(at_ns, node)| said.at_ns >= at_ns && said.node == node) {
                expected_of = None;
                continue;
            }
            match record.judge(said) {
                Judgement::False => self.false_takeovers += 1,
                Judgement::Late => self.primary_late += 1,
                Judgement::Suspended => self.plant_late += 1,
                Judgement::PartlyLate => self.partly_late += 1,
            }
        }
    }

    fn follow_old_primary(&mut self, record: &Record, fault: &Deed) {
        let old = fault.node;
        let said_after = |at_ns: u64, event: &str| {
            let mut said = record.said.iter();
            said.find(|said| said.node == old && said.at_ns >= at_ns && said.event == event)
        };
        let demoted = said_after(fault.at_ns, "Demoted");
        let refused = record.offers.iter().find(|offer| {
            offer.node == old && offer.at_ns >= fault.at_ns && offer.refusal.is_some()
        });
        if let (Some(demoted), Some(refused)) = (demoted, refused) {
            self.demoted_after_nack_us = Some(us(demoted.at_ns.saturating_sub(refused.at_ns)));
        }
        let Some(healed) = record.deeds.iter().find(|deed| deed.ends_fault()) else {
            return;
        };
        let since_heal = |said: &Said| us(said.at_ns.saturating_sub(healed.at_ns));
        self.demoted_after_heal_us = demoted
            .filter(|said| said.at_ns >= healed.at_ns)
            .map(since_heal);
        self.qualified_after_heal_us = said_after(healed.at_ns, "Qualified").map(since_heal);
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

fn count(cycles: Option<u64>) -> String {
    cycles.map_or("-".to_owned(), |cycles| cycles.to_string())
}

fn steps(steps: Option<f64>) -> String {
    steps.map_or("-".to_owned(), |steps| steps.to_string())
}
