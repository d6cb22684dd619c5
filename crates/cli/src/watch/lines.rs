//! What is told: as a line for people, or as a JSON object with stable names.
//!
//! Contract: plain copies, made where the verdict was found; `docs/operating.md` names the fields.

use std::path::Path;
use std::time::Duration;

use bumpless_failover::{SlotRef, Verdict};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::proof::{Proof, ProofSource};
use serde::Serialize;

use crate::look::path_text;
use crate::out::plain;

/// A verdict, as a command gets it on its standard input.
#[derive(Debug, Clone, Serialize)]
pub struct VerdictLine {
    event: &'static str,
    table: String,
    /// Of the table, as in unit names.
    creation_id: String,
    slot: u32,
    generation: u32,
    pid: u32,
    /// Null when the slot has another owner by now.
    label: Option<String>,
    /// `died`, `silent`, `released`, `in_transition`, `quarantined`.
    verdict: &'static str,
    lag_epochs: Option<u64>,
    grace_epochs: Option<u64>,
    evidence: EvidenceField,
    units: Vec<UnitField>,
    deaths: u32,
    /// Of the watchdog.
    term: u32,
    epoch: u64,
    /// When the scan began that found it, `CLOCK_MONOTONIC`.
    started_ns: u64,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Clone, Serialize)]
struct EvidenceField {
    /// `gone`, `alive`, `unknown`.
    proof: &'static str,
    /// `certificate`, `byte_lock`, `pid`, `none`.
    source: &'static str,
}

#[derive(Debug, Clone, Serialize)]
struct UnitField {
    unit: u32,
    name: String,
}

impl VerdictLine {
    /// What a scan says of a slot.
    #[must_use]
    pub fn new(table: &HeartbeatTable, slot: &SlotRef, epoch: u64, started_ns: u64) -> Self {
        let identity = table.identity(*slot);
        let own = identity.filter(|found| found.generation == slot.generation);
        let label = own.map(|found| found.registration.profile.label.to_string());
        let (verdict, lag_epochs, grace_epochs) = match slot.verdict {
            Verdict::Died => ("died", None, None),
            Verdict::Silent {
                lag_epochs,
                grace_epochs,
            } => ("silent", Some(lag_epochs), Some(grace_epochs)),
            Verdict::Released => ("released", None, None),
            Verdict::InTransition { .. } => ("in_transition", None, None),
            Verdict::Quarantined => ("quarantined", None, None),
        };
        let units = slot.units.iter().map(|unit| UnitField {
            unit: unit.index(),
            name: slot.unit_name(unit).to_string(),
        });
        Self {
            event: "verdict",
            table: shown(table.path()),
            creation_id: format!("{:016x}", table.creation_id()),
            slot: slot.slot,
            generation: slot.generation,
            pid: slot.pid,
            verdict,
            lag_epochs,
            grace_epochs,
            evidence: EvidenceField {
                proof: match slot.evidence.proof {
                    Proof::Gone => "gone",
                    Proof::Alive => "alive",
                    Proof::Unknown => "unknown",
                },
                source: match slot.evidence.source {
                    ProofSource::Certificate => "certificate",
                    ProofSource::ByteLock => "byte_lock",
                    ProofSource::Pid => "pid",
                    ProofSource::None => "none",
                },
            },
            units: units.collect(),
            deaths: slot.deaths,
            term: slot.term(),
            epoch,
            started_ns,
            text: text(slot, label.as_deref()),
            label,
        }
    }

    /// One line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        json(self)
    }

    /// One line for people.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What came of a verdict, and of this watchdog.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line {
    /// This watchdog is the primary one now.
    Primary {
        /// The table.
        table: String,
    },
    /// Another watchdog is.
    Standby {
        /// The table.
        table: String,
    },
    /// A verdict was acknowledged.
    Acknowledged {
        /// The slot.
        slot: u32,
        /// Which owner of it.
        generation: u32,
        /// How many units were taken over.
        units: u32,
        /// Which attempt it was.
        attempt: u32,
    },
    /// The command failed.
    Failed {
        /// The slot.
        slot: u32,
        /// Which owner of it.
        generation: u32,
        /// Which attempt it was.
        attempt: u32,
        /// How it failed.
        how: String,
        /// When it is tried again.
        again_in_ns: u64,
    },
    /// An acknowledgement was refused.
    Refused {
        /// The slot.
        slot: u32,
        /// Which owner of it.
        generation: u32,
        /// Why.
        why: String,
    },
    /// Nobody took the lines before, and these were too many to keep.
    LeftOut {
        /// How many.
        lines: u64,
    },
}

impl Line {
    /// One line of JSON.
    #[must_use]
    pub fn json(&self) -> String {
        json(self)
    }

    /// One line for people.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Primary { table } => format!("{}: watching", plain(table)),
            Self::Standby { table } => {
                format!("{}: standby: another watchdog watches", plain(table))
            }
            Self::Acknowledged {
                slot,
                generation,
                units,
                ..
            } => format!("slot {slot} (generation {generation}): acknowledged, {units} units"),
            Self::Failed {
                slot,
                generation,
                attempt,
                how,
                again_in_ns,
            } => {
                let again_in = Duration::from_nanos(*again_in_ns);
                format!(
                    "slot {slot} (generation {generation}): attempt {attempt} failed: {how}: again \
                     in {again_in:?}"
                )
            }
            Self::Refused {
                slot,
                generation,
                why,
            } => format!("slot {slot} (generation {generation}): not acknowledged: {why}"),
            Self::LeftOut { lines } => format!("{lines} lines are left out: nobody took them"),
        }
    }
}

/// A path in a line.
#[must_use]
pub fn shown(path: &Path) -> String {
    path_text(path)
}

fn json(line: &impl Serialize) -> String {
    // Plain fields: there is nothing that could not be written.
    serde_json::to_string(line).unwrap_or_default()
}

fn text(slot: &SlotRef, label: Option<&str>) -> String {
    let mut text = slot.to_string();
    if let Some(label) = label.filter(|label| !label.is_empty()) {
        // A label is its owner's to choose, and not to be taken for something else on a terminal.
        text += &format!(", label {label:?}");
    }
    match slot.units.len() {
        0 => {}
        1 => text += &format!(", 1 unit: {:?}", slot.units),
        count => text += &format!(", {count} units: {:?}", slot.units),
    }
    text
}

#[cfg(test)]
mod tests {
    use bumpless_failover::FailoverWatchdog;
    use bumpless_heartbeat::{Label, Profile};

    use super::*;

    #[test]
    fn a_verdict_names_its_units_as_the_report_does() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = HeartbeatTable::create(folder.path().join("t"), 4).expect("a table");
        let profile = Profile {
            label: Label::new("a\nb").expect("a label"),
            ..Profile::default()
        };
        let pid = std::process::id();
        let handle = table.register_as(pid, profile).expect("a slot");
        table.mark_in_flight(handle, 5_u8).expect("our slot");
        let watchdog = FailoverWatchdog::with_grace(&table, 1);
        // The third; a later one, when the machine stops that in the middle.
        let mut scans = (0..50).map(|_| watchdog.scan());
        let report = scans.find(|report| !report.is_empty()).expect("a report");
        let (slot, _) = report.dead_slots[0];
        let lag_epochs = report.new_global_epoch - 1;
        let line = VerdictLine::new(&table, &slot, report.new_global_epoch, report.started_ns);
        let json: serde_json::Value = serde_json::from_str(&line.json()).expect("JSON");
        assert_eq!(json["verdict"], "silent");
        assert_eq!(json["label"], "a\nb");
        assert_eq!(
            (&json["lag_epochs"], &json["grace_epochs"]),
            (&lag_epochs.into(), &1.into())
        );
        assert_eq!(json["evidence"]["proof"], "alive");
        assert_eq!(json["units"][0]["unit"], 5);
        let name = format!("{:016x}/0/1/5", table.creation_id());
        assert_eq!(json["units"][0]["name"], name);
        let said = format!(
            "slot 0 (pid {pid}, generation 1): silent: lag {lag_epochs} epochs > grace 1, label \"a\\nb\", 1 unit: \
             {{5}}"
        );
        assert_eq!(line.text(), said);
    }
}
