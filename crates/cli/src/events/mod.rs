//! `bumpless events`: what a black box recorded, of the living or of the dead.
//!
//! Contract: looks, and takes nothing away. Every event is printed once, in the order in which it was
//! recorded; how many are gone, as later ones were recorded over them, is counted exactly and told on
//! standard error.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bumpless_sidecar::black_box::{Recorded, SUFFIX};
use bumpless_sidecar::event::FieldValue;
use bumpless_sidecar::ring::PATIENCE_NS;
use bumpless_sidecar::{BlackBoxReader, SidecarError};
use bumpless_substrate::clock::monotonic_ns;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::look::{Found, Kind};
use crate::out::{out, try_out};
use crate::signals::Signals;

/// How often a followed black box is looked at: whoever only looks cannot ask to be woken.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Print what a black box recorded, oldest first.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  bumpless events /dev/shm/bumpless-1000/pool-4711.table
  bumpless events --follow --json crash.events | jq 'select(.event == \"died\")'

Each line is one event: seconds of the machine's monotonic clock, what happened, and to whom. It works
as well when everybody who recorded is dead. Exit status: 0; 1 when there is no such black box.")]
pub struct EventsArguments {
    /// A black box, or the table beside which one lies
    #[arg(value_name = "RING")]
    pub ring: PathBuf,

    /// Go on with what is recorded from now on, until SIGINT
    #[arg(long)]
    pub follow: bool,

    /// Print each event as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The subcommand.
pub fn run(arguments: &EventsArguments) -> ExitCode {
    match print(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "bumpless events: {error}; a black box is a file *{SUFFIX}: `bumpless list` shows them"
            );
            ExitCode::FAILURE
        }
    }
}

/// Where the black box of a path lies: there, or beside the table that is there.
pub fn black_box_of(path: &Path) -> PathBuf {
    match Found::at(path) {
        Ok(found) if found.kind == Kind::Table => {
            let mut beside = path.as_os_str().to_owned();
            beside.push(SUFFIX);
            beside.into()
        }
        _ => path.to_owned(),
    }
}

fn print(arguments: &EventsArguments) -> Result<(), SidecarError> {
    let reader = BlackBoxReader::open_read_only(black_box_of(&arguments.ring))?;
    if !reader.header().is_of_this_boot {
        eprintln!(
            "bumpless events: from before the machine's last start: times are of its clock then"
        );
    }
    let line = |recorded: &Recorded| {
        if arguments.json {
            format!("{}\n", as_json(recorded))
        } else {
            format!("{}\n", recorded.event)
        }
    };
    if !arguments.follow {
        let history = reader.read_all();
        out(&history.events.iter().map(line).collect::<String>());
        tell_missing(history.overtaken, history.skipped);
        return Ok(());
    }
    // Without handlers it still ends with the signal.
    let signals = Signals::install().ok();
    let mut cursor = reader.from_the_start();
    while !signals.as_ref().is_some_and(Signals::asked) {
        let mut lines = String::new();
        while let Some(recorded) = reader.next(&mut cursor, monotonic_ns(), PATIENCE_NS) {
            lines += &line(&recorded);
        }
        if !try_out(&lines) {
            break;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    tell_missing(cursor.overtaken, cursor.skipped);
    Ok(())
}

fn tell_missing(overtaken: u64, skipped: u64) {
    if overtaken > 0 {
        eprintln!("bumpless events: {overtaken} older events are gone: later ones lie over them");
    }
    if skipped > 0 {
        eprintln!("bumpless events: {skipped} events were never finished by their recorders");
    }
}

/// An event as an object: its position, time and name, and what else it says.
pub fn as_json(recorded: &Recorded) -> Value {
    let event = &recorded.event;
    let mut object = Map::new();
    object.insert("position".to_owned(), json!(recorded.position));
    object.insert("time_ns".to_owned(), json!(event.time_ns));
    object.insert("event".to_owned(), json!(event.kind.name()));
    for (name, value) in event.fields() {
        let value = match value {
            FieldValue::Number(number) => json!(number),
            FieldValue::Id(id) => json!(format!("{id:016x}")),
            FieldValue::Text(label) => json!(label.to_string()),
            FieldValue::Units(units) => {
                let units = bumpless_failover::FailoverWatchdog::iter_in_flight_bits(units);
                json!(units.map(|unit| unit.index()).collect::<Vec<_>>())
            }
        };
        object.insert(name.to_owned(), value);
    }
    object.into()
}

#[cfg(test)]
mod tests {
    use bumpless_heartbeat::UnitSet;
    use bumpless_sidecar::{Event, EventKind};

    use super::*;

    #[test]
    fn an_event_is_an_object_with_the_names_of_its_fields() {
        let event = Event {
            slot: 3,
            generation: 2,
            pid: 77,
            table_id: 0xab,
            ..Event::new(EventKind::HandedBack, 5).with_units(UnitSet::from_bits(0b101))
        };
        let found = as_json(&Recorded { position: 9, event });
        let wanted = json!({
            "position": 9, "time_ns": 5, "event": "handed_back", "slot": 3, "generation": 2,
            "pid": 77, "units": [0, 2], "table": "00000000000000ab",
        });
        assert_eq!(found, wanted);
    }
}
