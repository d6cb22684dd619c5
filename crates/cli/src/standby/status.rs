//! `bumpless standby status`: what a node's tag says, for people or as one line of JSON.
//!
//! It reads shared memory only: the node neither notices nor answers, so a hung one is shown as well, and
//! one that died as it was in its last cycle.

use std::path::Path;

use super::args::StatusArguments;
use super::error::StandbyError;

use crate::look::{LookError, PartnerView, TagView};
use crate::out::print;

/// The tag's name in a node's state folder.
pub const TAG: &str = "tag";

/// Prints the tag.
pub fn run(arguments: &StatusArguments) -> Result<(), StandbyError> {
    let path = arguments.state_dir.join(TAG);
    let tag = TagView::at(&path).map_err(|error| match error {
        LookError::Tag(error) => StandbyError::Tag(error),
        _ => StandbyError::NoTag { path },
    })?;
    let text = if arguments.json {
        format!("{}\n", serde_json::json!(tag))
    } else {
        as_text(&tag)
    };
    print(&text).map_err(StandbyError::file("write to", Path::new("standard output")))
}

/// The tag for people.
pub fn as_text(tag: &TagView) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| text += &format!("{name:12}{value}\n");
    let life = match tag.is_alive {
        Some(true) => "",
        Some(false) => " (has ended)",
        None => " (of another pid namespace)",
    };
    row("node", format!("{}, pid {}{life}", tag.node, tag.pid));
    let reason = tag.reason.as_ref();
    let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
    row("state", format!("{}{reason}", tag.state));
    row("redundancy", tag.redundancy.to_owned());
    let (counter, owner) = tag.epoch;
    row("epoch", format!("{counter} of node {owner}"));
    row("partner", partner_text(tag.partner.as_ref()));
    for (index, path) in tag.paths.iter().enumerate() {
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
    row("alarms", list(&tag.active_alarms));
    row("latched", list(&tag.latched_alarms));
    let [full, delta, longest] = tag.checkpoint_bytes;
    row(
        "checkpoint",
        format!("{full} bytes, delta {delta}, longest {longest}"),
    );
    row(
        "levels",
        format!(
            "ServiceLevel {}, RedundancySupport {}",
            tag.service_level, tag.redundancy_support
        ),
    );
    let cycle = tag.cycle.map_or("-".to_owned(), |cycle| cycle.to_string());
    let age_ms = tag.age_ns as f64 / 1e6;
    row("cycle", format!("{cycle}, {age_ms:.1} ms ago"));
    if let (Some(p99_ns), Some(max_ns)) = (tag.late_p99_ns, tag.late_max_ns) {
        let (p99_us, max_us) = (p99_ns / 1_000, max_ns / 1_000);
        row("late", format!("p99 {p99_us} us, at most {max_us} us"));
    }
    text
}

fn partner_text(partner: Option<&PartnerView>) -> String {
    let Some(partner) = partner else {
        return "never heard".to_owned();
    };
    format!(
        "node {}, {}, silent for {} cycles",
        partner.node, partner.standing, partner.silent_cycles
    )
}

fn list(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}
