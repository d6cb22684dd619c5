//! One slot of a table, as an observer sees it.

use bumpless_failover::Verdict;
use bumpless_failover::look::Look;
use bumpless_heartbeat::{Certificate, HeartbeatTable, SlotRole};
use bumpless_substrate::claim::ClaimState;
use bumpless_substrate::proof::Proof;
use serde::Serialize;

/// What a watchdog would say of a slot now, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    /// The owner is gone.
    Died,
    /// The owner missed more beats than its grace.
    Silent,
    /// The slot was given back with units in flight.
    Released,
    /// Somebody is claiming the slot, or died doing so.
    InTransition,
    /// The claim is in no state that this version knows.
    Quarantined,
    /// The owner lost the slot, and is within its grace: it is about to give it back.
    Fenced,
    /// Nothing to say: it lives.
    Alive,
    /// Nobody owns it.
    Free,
}

impl VerdictWord {
    /// As in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Died => "died",
            Self::Silent => "silent",
            Self::Released => "released",
            Self::InTransition => "in_transition",
            Self::Quarantined => "quarantined",
            Self::Fenced => "fenced",
            Self::Alive => "alive",
            Self::Free => "free",
        }
    }

    fn of(look: &Look) -> Self {
        match (look.verdict, look.claim.state()) {
            (Some(Verdict::Died), _) => Self::Died,
            (Some(Verdict::Silent { .. }), _) => Self::Silent,
            (Some(Verdict::Released), _) => Self::Released,
            (Some(Verdict::InTransition { .. }), _) => Self::InTransition,
            (Some(Verdict::Quarantined), _) => Self::Quarantined,
            (None, Some(ClaimState::Live)) if look.is_fenced => Self::Fenced,
            (None, Some(ClaimState::Live)) => Self::Alive,
            (None, _) => Self::Free,
        }
    }
}

/// A slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlotView {
    /// Its index.
    pub slot: u32,
    /// Which owner of the slot.
    pub generation: u32,
    /// `live`, `claiming`, `released`, `free` or `unknown`.
    pub state: &'static str,
    /// What a watchdog would say now.
    pub verdict: VerdictWord,
    /// The same with its numbers; `None`: nothing to say.
    pub reason: Option<String>,
    /// The owner's process id in its own pid namespace.
    pub pid: u32,
    /// What the owner calls itself.
    pub label: String,
    /// What the owner is for.
    pub role: String,
    /// Epochs since the last beat.
    pub lag_epochs: u64,
    /// About how long that is; `None`: no watchdog has said how often it ticks.
    pub lag_ns: Option<u64>,
    /// How many epochs it may miss.
    pub grace_epochs: u64,
    /// Units in flight; of a fenced slot: those to be handed back.
    pub units_in_flight: u32,
    /// Their numbers.
    pub units: Vec<u32>,
    /// Whether the owner has lost the slot.
    pub is_fenced: bool,
    /// Whether somebody acknowledged the report of that.
    pub is_acknowledged: bool,
    /// How its death is seen: `certificate` (at once), `byte_lock` (by the next scan), `marked` (the
    /// kernel has said so), `disarmed`.
    pub death_proof: &'static str,
    /// What is known of the owner's life, if somebody had reason to ask: `alive`, `gone` or `unknown`.
    pub evidence: &'static str,
    /// Deaths of its owners that nobody acknowledged yet.
    pub deaths_unacknowledged: u32,
    /// Deaths of its owners so far.
    pub deaths: u32,
}

impl SlotView {
    /// The slot that `look` saw.
    pub fn new(table: &HeartbeatTable, slot: u32, look: &Look, period_ns: Option<u64>) -> Self {
        let claim = look.claim;
        let state = claim.state();
        let identity = table.identity(slot);
        let profile = identity.map(|found| found.registration.profile);
        let cells = table.cells(slot as usize);
        let role = cells.map_or(SlotRole::Worker, |cells| cells.slot.peek_role());
        let certificate = cells.map_or(Certificate::None, |cells| cells.slot.certificate());
        let units = bumpless_failover::FailoverWatchdog::iter_in_flight_bits(look.units);
        Self {
            slot,
            generation: claim.generation(),
            state: match state {
                Some(ClaimState::Free) => "free",
                Some(ClaimState::Claiming) => "claiming",
                Some(ClaimState::Live) => "live",
                Some(ClaimState::Released) => "released",
                None => "unknown",
            },
            verdict: VerdictWord::of(look),
            reason: look.verdict.map(|verdict| verdict.to_string()),
            pid: claim.pid(),
            label: profile.map_or(String::new(), |profile| profile.label.to_string()),
            role: match role {
                SlotRole::Worker => "worker".to_owned(),
                SlotRole::Coordinator => "coordinator".to_owned(),
                SlotRole::Watchdog => "watchdog".to_owned(),
                SlotRole::Other(number) => format!("role_{number}"),
            },
            lag_epochs: look.lag_epochs,
            lag_ns: period_ns.map(|period_ns| look.lag_epochs.saturating_mul(period_ns)),
            grace_epochs: look.grace_epochs,
            units_in_flight: look.units.len(),
            units: units.map(|unit| unit.index()).collect(),
            is_fenced: look.is_fenced,
            is_acknowledged: look.is_acknowledged,
            death_proof: match certificate {
                Certificate::Armed => "certificate",
                Certificate::Died => "marked",
                Certificate::None => "byte_lock",
                Certificate::Disarmed => "disarmed",
            },
            evidence: match look.evidence.proof {
                Proof::Alive => "alive",
                Proof::Gone => "gone",
                Proof::Unknown => "unknown",
            },
            deaths_unacknowledged: look.deaths_waiting,
            deaths: look.deaths_recorded,
        }
    }

    /// Whether it is registered and nothing says that it is gone.
    pub fn owns(&self) -> bool {
        self.state == "live" && self.verdict != VerdictWord::Died
    }

    /// Whether a person wants to see it: not free, and not of a dead owner that all is done for.
    pub fn is_of_interest(&self) -> bool {
        let is_done = self.is_acknowledged && self.units_in_flight == 0;
        match self.verdict {
            VerdictWord::Free => self.deaths_unacknowledged > 0,
            VerdictWord::Died => !is_done || self.deaths_unacknowledged > 0,
            _ => true,
        }
    }
}
