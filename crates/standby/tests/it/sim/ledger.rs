//! What the world saw, and what must hold in every cycle of every run.
//!
//! - One life of one node per epoch.
//! - What the actuator accepts never goes back in `(epoch, seq)`, also over its restarts.
//! - No output of a superseded epoch is accepted.
//! - What a life of a node has adopted never goes back.
//! - No blank node replaces a live, driving primary.
//! - A primary without a qualified standby shows the alarm in the same cycle, and the alarm stays until
//!   the pair is redundant again.

use std::collections::{HashMap, VecDeque};

use bumpless_standby::event::{Alarm, Event, Promotion};
use bumpless_standby::message::{Heartbeat, Standing};
use bumpless_standby::node::{Redundancy, Status};
use bumpless_standby::{Config, Epoch, Mode};

/// Accepted outputs that are kept.
const KEPT: usize = 4096;
/// A primary whose output was accepted so many cycles ago drives.
const DRIVING_CYCLES: u64 = 2;

/// One accepted output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accepted {
    pub writer: usize,
    pub epoch: Epoch,
    pub seq: u64,
    /// In which cycle of the world.
    pub cycle: u64,
    /// From the ideal of its cycle; unit: input steps.
    pub bump: f64,
}

/// One event of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    pub cycle: u64,
    pub node: usize,
    pub event: Event,
}

/// What a node was before its tick.
#[derive(Debug, Clone, Copy)]
pub struct Before {
    pub adopted: (Epoch, u64),
    /// The other node runs, is primary, and ticked in time.
    pub partner_is_primary: bool,
}

/// Records and ghosts.
#[derive(Debug, Default)]
pub struct Ledger {
    pub accepted: VecDeque<Accepted>,
    pub events: Vec<Logged>,
    /// The largest distance of an accepted output from the ideal; unit: input steps.
    pub bump_max: f64,
    pub accepted_count: u64,
    pub stale_accepted: u64,
    pub takeovers: u64,
    /// Of a primary that ran, in time, and drove.
    pub false_takeovers: u64,
    /// The first broken rule.
    pub violation: Option<String>,
    owners: HashMap<Epoch, (usize, u64)>,
    highest: Option<(Epoch, u64)>,
    highest_of_all: Option<Epoch>,
    last_by: [Option<u64>; 2],
    /// Since when the node's outputs have been accepted, without a break.
    since_by: [u64; 2],
    redundancy_alarm: [bool; 2],
    /// Two nodes started from states of their own, each of which it might go on from.
    has_two_ideals: bool,
}

impl Ledger {
    /// Forgets what was recorded, not what must hold on.
    pub fn clear(&mut self) {
        self.accepted.clear();
        self.events.clear();
        self.bump_max = 0.0;
        self.accepted_count = 0;
        self.takeovers = 0;
        self.false_takeovers = 0;
    }

    /// The actuator accepted this.
    pub fn note_accepted(&mut self, accepted: Accepted) {
        let Accepted {
            writer, epoch, seq, ..
        } = accepted;
        if self.highest_of_all.is_some_and(|highest| epoch < highest) {
            self.stale_accepted += 1;
            self.break_rule(format!("superseded epoch {epoch} accepted: {accepted:?}"));
        }
        if self.highest.is_some_and(|highest| (epoch, seq) <= highest) {
            self.break_rule(format!("after {:?} came {accepted:?}", self.highest));
        }
        self.highest = Some((epoch, seq));
        self.highest_of_all = self.highest_of_all.max(Some(epoch));
        let last = self.last_by[writer].replace(accepted.cycle);
        if last.is_none_or(|last| last + DRIVING_CYCLES < accepted.cycle) {
            self.since_by[writer] = accepted.cycle;
        }
        if !self.has_two_ideals {
            self.bump_max = self.bump_max.max(accepted.bump);
        }
        self.accepted_count += 1;
        if self.accepted.len() == KEPT {
            self.accepted.pop_front();
        }
        self.accepted.push_back(accepted);
    }

    /// One node's cycle.
    pub fn note_tick(
        &mut self,
        cycle: u64,
        node: usize,
        before: Before,
        heartbeat: &Heartbeat,
        events: Vec<Event>,
        (status, config, adopted): (&Status, &Config, (Epoch, u64)),
    ) {
        let owns = matches!(heartbeat.standing, Standing::Primary | Standing::Suspended);
        if owns {
            let life = (node, heartbeat.incarnation);
            let owner = *self.owners.entry(heartbeat.epoch).or_insert(life);
            if owner != life {
                let epoch = heartbeat.epoch;
                self.break_rule(format!("epoch {epoch} owned by {owner:?} and {life:?}"));
            }
        }
        if adopted < before.adopted {
            let was = before.adopted;
            self.break_rule(format!("node {node} adopted {adopted:?} after {was:?}"));
        }
        self.check_alarm(node, owns, status);
        // Qualified in this very cycle: it has adopted a state in it.
        let has_adopted = events
            .iter()
            .any(|event| matches!(event, Event::Qualified { .. }));
        let is_blank = before.adopted.0 == Epoch::NONE && !has_adopted && config.mode != Mode::Cold;
        for event in events {
            if let Event::Promoted { epoch, cause } = event {
                self.note_promotion(cycle, node, before, (epoch, cause), (is_blank, config));
            }
            self.events.push(Logged { cycle, node, event });
        }
    }

    fn note_promotion(
        &mut self,
        cycle: u64,
        node: usize,
        before: Before,
        (epoch, cause): (Epoch, Promotion),
        (is_blank, config): (bool, &Config),
    ) {
        let partner_drives = before.partner_is_primary
            && self.last_by[1 - node].is_some_and(|last| last + DRIVING_CYCLES >= cycle);
        if cause == Promotion::Takeover {
            self.takeovers += 1;
            self.false_takeovers += u64::from(partner_drives);
        }
        let is_start = matches!(
            cause,
            Promotion::ColdStartWithPartner | Promotion::ColdStartByAuthority
        );
        if is_start {
            self.has_two_ideals = before.partner_is_primary;
        }
        // What partner or authority said is as old as its way here: two that start within a timeout may
        // both have been told that nothing drives.
        let is_together = self.since_by[1 - node] + u64::from(config.miss_limit) >= cycle;
        let is_wrong = match cause {
            Promotion::Forced => false,
            _ if is_start => !is_together,
            _ => is_blank,
        };
        if partner_drives && is_wrong {
            self.break_rule(format!(
                "node {node} replaced a live primary under {epoch}: {cause:?}, adopted {:?}",
                before.adopted
            ));
        }
    }

    fn check_alarm(&mut self, node: usize, owns: bool, status: &Status) {
        let is_full = status.redundancy == Redundancy::Full;
        let is_on = status.latched_alarms.has(Alarm::RedundancyLost);
        if owns && !is_full && !is_on {
            self.break_rule(format!("node {node} is alone without an alarm: {status:?}"));
        }
        if self.redundancy_alarm[node] && !is_on && !is_full {
            self.break_rule(format!("node {node} ended its alarm alone: {status:?}"));
        }
        self.redundancy_alarm[node] = is_on;
    }

    /// A node started anew, or its operator cleared its alarms.
    pub fn forget_alarm(&mut self, node: usize) {
        self.redundancy_alarm[node] = false;
    }

    /// The last events, for people.
    pub fn tail(&self) -> String {
        let last = self.events.len().saturating_sub(40);
        let lines = self.events[last..].iter();
        lines.map(|logged| format!("  {logged:?}\n")).collect()
    }

    pub fn break_rule(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }
}
