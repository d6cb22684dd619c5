//! `bumpless standby status`: what a node's tag says, for people or as one line of JSON.
//!
//! It reads shared memory only: the node neither notices nor answers, so a hung one is shown as well, and
//! one that died as it was in its last cycle.

use bumpless_standby::event::{Alarm, AlarmSet};
use bumpless_standby::node::{PathHealth, Redundancy, State, Status};
use bumpless_standby::tag::{TagReader, TagSnapshot};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::proof::Proof;
use serde_json::{Value, json};

use super::args::StatusArguments;
use super::error::StandbyError;
use super::log;

/// The tag's name in a node's state folder.
pub const TAG: &str = "tag";

/// By their bits.
const ALARMS: [Alarm; 17] = [
    Alarm::RedundancyLost,
    Alarm::Path0Degraded,
    Alarm::Path1Degraded,
    Alarm::Disagree,
    Alarm::Loopback,
    Alarm::ProgramMismatch,
    Alarm::SchemaMismatch,
    Alarm::InputMismatch,
    Alarm::StateMismatch,
    Alarm::BadCheckpoint,
    Alarm::NoBallot,
    Alarm::ActuatorUnreachable,
    Alarm::EpochJump,
    Alarm::Flapping,
    Alarm::SwitchTestFailed,
    Alarm::ActuatorUnclaimed,
    Alarm::PathLate,
];

/// Prints the tag.
pub fn run(arguments: &StatusArguments) -> Result<(), StandbyError> {
    let path = arguments.state_dir.join(TAG);
    let tag = TagReader::open(&path)?.read();
    let tag = tag.ok_or(StandbyError::NoTag { path })?;
    let now_ns = monotonic_ns();
    if arguments.json {
        println!("{}", as_json(&tag, now_ns));
    } else {
        print!("{}", as_text(&tag, now_ns));
    }
    Ok(())
}

fn as_json(tag: &TagSnapshot, now_ns: u64) -> Value {
    let status = &tag.status;
    json!({
        "node": status.node.0,
        "state": log::name(status.state),
        "reason": reason(status.state),
        "epoch": [status.epoch.counter(), status.epoch.owner().0],
        "redundancy": redundancy(status.redundancy),
        "cycle": status.cycle,
        "partner": status.partner.map(|partner| json!({
            "node": partner.node.0,
            "standing": format!("{:?}", partner.standing).to_lowercase(),
            "epoch": [partner.epoch.counter(), partner.epoch.owner().0],
            "cycle": partner.seq,
            "silent_cycles": partner.silent_cycles,
        })),
        "paths": status.paths.iter().map(path_json).collect::<Vec<_>>(),
        "active_alarms": names(status.active_alarms),
        "latched_alarms": names(status.latched_alarms),
        "checkpoint_bytes": status.checkpoint_len,
        "service_level": status.service_level,
        "redundancy_support": status.redundancy_support,
        "late_p99_ns": tag.lateness.map(|lateness| lateness.p99_ns),
        "late_max_ns": tag.lateness.map(|lateness| lateness.max_ns),
        "pid": tag.writer.pid,
        "is_alive": alive(tag),
        "age_ns": tag.age_ns(now_ns),
    })
}

fn path_json(path: &PathHealth) -> Value {
    json!({
        "received": path.received,
        "lost": path.lost,
        "late": path.late,
        "repeated": path.repeated,
        "reordered": path.reordered,
        "silent_cycles": path.silent_cycles,
        "is_degraded": path.is_degraded,
    })
}

fn as_text(tag: &TagSnapshot, now_ns: u64) -> String {
    let status = &tag.status;
    let mut text = String::new();
    let mut row = |name: &str, value: String| text += &format!("{name:12}{value}\n");
    let life = match alive(tag) {
        Some(true) => "",
        Some(false) => " (has ended)",
        None => " (of another pid namespace)",
    };
    row(
        "node",
        format!("{}, pid {}{life}", status.node, tag.writer.pid),
    );
    let reason = reason(status.state).map_or(String::new(), |reason| format!(": {reason}"));
    row("state", format!("{}{reason}", log::name(status.state)));
    row("redundancy", redundancy(status.redundancy).to_owned());
    let (counter, owner) = (status.epoch.counter(), status.epoch.owner());
    row("epoch", format!("{counter} of node {owner}"));
    row("partner", partner_text(status));
    for (index, path) in status.paths.iter().enumerate() {
        let health = if path.is_degraded {
            "degraded"
        } else {
            "healthy"
        };
        row(
            &format!("path {index}"),
            format!(
                "{health}: {} received, {} lost, {} late, silent for {} cycles",
                path.received, path.lost, path.late, path.silent_cycles
            ),
        );
    }
    row("alarms", list(&names(status.active_alarms)));
    row("latched", list(&names(status.latched_alarms)));
    let [full, delta, longest] = status.checkpoint_len;
    row(
        "checkpoint",
        format!("{full} bytes, delta {delta}, longest {longest}"),
    );
    row(
        "levels",
        format!(
            "ServiceLevel {}, RedundancySupport {}",
            status.service_level, status.redundancy_support
        ),
    );
    let cycle = status
        .cycle
        .map_or("-".to_owned(), |cycle| cycle.to_string());
    let age_ms = tag.age_ns(now_ns) as f64 / 1e6;
    row("cycle", format!("{cycle}, {age_ms:.1} ms ago"));
    if let Some(lateness) = tag.lateness {
        let (p99_us, max_us) = (lateness.p99_ns / 1_000, lateness.max_ns / 1_000);
        row("late", format!("p99 {p99_us} us, at most {max_us} us"));
    }
    text
}

fn partner_text(status: &Status) -> String {
    let Some(partner) = status.partner else {
        return "never heard".to_owned();
    };
    let standing = format!("{:?}", partner.standing).to_lowercase();
    format!(
        "node {}, {standing}, silent for {} cycles",
        partner.node, partner.silent_cycles
    )
}

fn alive(tag: &TagSnapshot) -> Option<bool> {
    match tag.writer_proof() {
        Proof::Alive => Some(true),
        Proof::Gone => Some(false),
        Proof::Unknown => None,
    }
}

fn reason(state: State) -> Option<String> {
    match state {
        State::Disqualified(reason) => Some(format!("{reason:?}")),
        _ => None,
    }
}

fn redundancy(redundancy: Redundancy) -> &'static str {
    match redundancy {
        Redundancy::None => "none",
        Redundancy::Lost => "lost",
        Redundancy::Synchronising => "synchronising",
        Redundancy::Full => "full",
    }
}

fn names(alarms: AlarmSet) -> Vec<String> {
    let all = ALARMS.iter().filter(|alarm| alarms.has(**alarm));
    all.map(|alarm| format!("{alarm:?}")).collect()
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_listed_by_their_bits() {
        for (bit, alarm) in ALARMS.iter().enumerate() {
            assert_eq!(*alarm as usize, bit);
        }
    }
}
