//! What happened, line by line: events as JSON on standard output, cycles and outputs as plain columns
//! in a file. Each line is one write, so a killed process leaves every whole line behind.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use bumpless_standby::drive::{Applied, Beat, Cycle};
use bumpless_standby::event::Event;
use bumpless_standby::node::State;

use super::error::StandbyError;

/// A file of lines, or none.
#[derive(Debug)]
pub struct Log(Option<File>);

impl Log {
    /// Creates the file, if one is wanted.
    pub fn create(path: Option<&Path>) -> Result<Self, StandbyError> {
        let Some(path) = path else {
            return Ok(Self(None));
        };
        let file = File::create(path).map_err(|error| StandbyError::File {
            doing: "create",
            path: path.to_path_buf(),
            error,
        })?;
        Ok(Self(Some(file)))
    }

    /// A node's cycle: `CYCLE BEGIN_NS LATE_NS SPENT_NS STATE OUTPUT`; `-` without an output.
    pub fn cycle(&mut self, beat: &Beat, done: &Cycle<f64>, state: State) {
        if let Some(file) = &mut self.0 {
            let output = done
                .output
                .map_or("-".to_owned(), |value| value.to_string());
            let Beat {
                cycle,
                now_ns,
                late_ns,
                ..
            } = beat;
            let spent_ns = done.spent_ns;
            let line = format!(
                "{cycle} {now_ns} {late_ns} {spent_ns} {} {output}\n",
                name(state)
            );
            let _ = file.write_all(line.as_bytes());
        }
    }

    /// An output at the plant: `NOW_NS NODE COUNTER CYCLE VALUE REFUSAL`; `-` when it was applied.
    pub fn applied(&mut self, now_ns: u64, applied: &Applied<f64>) {
        if let Some(file) = &mut self.0 {
            let refusal = applied
                .refusal
                .map_or("-".to_owned(), |refusal| format!("{refusal:?}"));
            let line = format!(
                "{now_ns} {} {} {} {} {refusal}\n",
                applied.node,
                applied.epoch.counter(),
                applied.seq,
                applied.value
            );
            let _ = file.write_all(line.as_bytes());
        }
    }
}

/// One word for a state.
pub fn name(state: State) -> &'static str {
    match state {
        State::Init => "init",
        State::Syncing => "syncing",
        State::Qualified => "qualified",
        State::Primary => "primary",
        State::Solo => "solo",
        State::Disqualified(_) => "disqualified",
        State::Maintenance => "maintenance",
    }
}

/// Prints one event of a node as a line of JSON.
pub fn event(node: u8, beat: &Beat, event: &Event) {
    let text = format!("{event:?}");
    let word = text
        .split(|letter: char| !letter.is_alphanumeric())
        .next()
        .unwrap_or_default();
    let line = serde_json::json!({
        "node": node,
        "cycle": beat.cycle,
        "at_ns": beat.now_ns,
        "event": word,
        "detail": text,
    });
    // Standard output may be closed: the loop goes on.
    let _ = writeln!(std::io::stdout(), "{line}");
}
