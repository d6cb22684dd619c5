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
use bumpless_sidecar::{BlackBoxReader, SidecarError};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Map, Value, json};

use crate::look::{Follower, Kind, path_line};
use crate::out::{out, out_until};
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
as well when everybody who recorded is dead. Exit status: 0; 1 when there is no such black box,
or nothing can be written.")]
pub struct EventsArguments {
    /// A black box, or the table beside which one lies
    #[arg(value_name = "RING")]
    pub ring: PathBuf,

    /// Go on with what is recorded from now on, also in a black box that takes its place, until SIGINT
    #[arg(long)]
    pub follow: bool,

    /// Print each event as a line of JSON
    #[arg(long)]
    pub json: bool,
}

/// The subcommand.
pub fn run(arguments: &EventsArguments) -> ExitCode {
    match print(arguments) {
        Ok(is_written) => ExitCode::from(u8::from(!is_written)),
        Err(error) => {
            tell!(
                "bumpless events: {error}; a black box is a file *{SUFFIX}: `bumpless list` shows them"
            );
            ExitCode::FAILURE
        }
    }
}

/// Where the black box of a path lies: there, or beside the table that is there.
pub fn black_box_of(path: &Path) -> PathBuf {
    match Kind::at(path) {
        Ok(Kind::Table) => {
            let mut beside = path.as_os_str().to_owned();
            beside.push(SUFFIX);
            beside.into()
        }
        _ => path.to_owned(),
    }
}

fn print(arguments: &EventsArguments) -> Result<bool, SidecarError> {
    let path = black_box_of(&arguments.ring);
    let line = |recorded: &Recorded| {
        if arguments.json {
            format!("{}\n", as_json(recorded))
        } else {
            format!("{}\n", recorded.event)
        }
    };
    if !arguments.follow {
        let reader = BlackBoxReader::open_read_only(&path)?;
        tell_of_boot(reader.header().is_of_this_boot);
        let history = reader.read_all();
        let is_written = out(
            "events",
            &history.events.iter().map(line).collect::<String>(),
        );
        tell_missing(history.overtaken, history.skipped);
        return Ok(is_written);
    }
    let mut follower = Follower::open(&path)?;
    tell_of_boot(follower.is_of_this_boot());
    // Without handlers it still ends with the signal.
    let signals = Signals::install().ok();
    let mut is_written = true;
    let asked = || signals.as_ref().is_some_and(Signals::asked);
    while is_written && !asked() && is_read() {
        let mut lines = String::new();
        let is_another = follower.read(|recorded| lines += &line(recorded));
        is_written = out_until("events", &lines, asked);
        if is_another? {
            tell!(
                "bumpless events: another black box has taken its place: {}",
                path_line(&path)
            );
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    tell_missing(follower.overtaken(), follower.skipped());
    Ok(is_written)
}

/// Whether standard output may still have a reader. Who writes nothing is not told of its end.
fn is_read() -> bool {
    let stdout = std::io::stdout();
    let mut ends = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec::default();
    let told = poll(&mut ends, Some(&at_once)).unwrap_or(0);
    told == 0
        || !ends[0]
            .revents()
            .intersects(PollFlags::ERR | PollFlags::HUP)
}

fn tell_of_boot(is_of_this_boot: bool) {
    if !is_of_this_boot {
        tell!("bumpless events: from before the machine's last start: times are of its clock then");
    }
}

fn tell_missing(overtaken: u64, skipped: u64) {
    if overtaken > 0 {
        tell!("bumpless events: {overtaken} older events are gone: later ones lie over them");
    }
    if skipped > 0 {
        tell!("bumpless events: {skipped} events were never finished by their recorders");
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
