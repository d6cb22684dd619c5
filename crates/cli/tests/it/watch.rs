//! `bumpless watch`, run as a user runs it. Commands, deaths and standbys are for the scenarios.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use bumpless_heartbeat::{HeartbeatTable, Label, Profile};
use bumpless_sidecar::{BlackBoxReader, EventKind};
use rustix::process::Signal;
use serde_json::Value;

use crate::rig::{await_that, full_pipe, send};

/// A `bumpless watch`; killed when the test ends before it does.
struct Watch {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Watch {
    fn start(path: &Path, arguments: &[&str]) -> Self {
        let mut watch = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        watch.arg("watch").arg(path).args(arguments);
        // After a gap of two periods, as a busy machine makes, nobody's silence is taken for a hang.
        watch.args(["--period", "50ms", "--grace", "5"]);
        watch.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = watch.spawn().expect("the program runs");
        let said = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, said }
    }

    /// What it says next; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("the pipe");
        line.trim_end().to_owned()
    }

    fn json(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The next line that tells of this.
    fn event(&mut self, event: &str) -> Value {
        loop {
            let found = self.json();
            if found["event"] == event {
                return found;
            }
        }
    }

    fn end(mut self) -> Option<i32> {
        send(self.process.id(), Signal::TERM);
        self.process.wait().expect("a child of ours").code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A folder and a table in which this process is late, with a unit in flight.
fn late_in_a_table() -> (tempfile::TempDir, PathBuf, HeartbeatTable) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let table = HeartbeatTable::create(&path, 8).expect("a table");
    let profile = Profile {
        label: Label::new("late").expect("a label"),
        ..Profile::default()
    };
    let handle = table
        .register_as(std::process::id(), profile)
        .expect("a slot");
    table.mark_in_flight(handle, 5_u8).expect("our slot");
    (folder, path, table)
}

#[test]
fn each_verdict_is_one_line_and_acknowledged_when_it_is_written() {
    let (_folder, path, table) = late_in_a_table();
    let mut watch = Watch::start(&path, &["--json"]);
    let verdict = watch.event("verdict");
    let unit = format!("{:016x}/0/1/5", table.creation_id());
    assert_eq!(verdict["units"][0]["name"], unit);
    assert_eq!(verdict["label"], "late");
    assert_eq!(verdict["verdict"], "silent");
    let cells = table.cells(0).expect("a slot");
    await_that("acknowledged", || cells.slot.units(1).is_empty());
    assert_eq!(watch.end(), Some(0));
}

#[test]
fn lines_for_people_say_the_same() {
    let (_folder, path, _table) = late_in_a_table();
    let mut watch = Watch::start(&path, &[]);
    let mut lines = [watch.line(), watch.line()];
    // Who watches is told by another thread.
    lines.sort();
    assert_eq!(lines[0], format!("{}: watching", path.display()));
    let pid = std::process::id();
    let (lag, rest) = lines[1]
        .strip_prefix(&format!("slot 0 (pid {pid}, generation 1): silent: lag "))
        .and_then(|said| said.split_once(' '))
        .expect("a verdict");
    assert_eq!(
        rest, "epochs > grace 5, label \"late\", 1 unit: {5}",
        "{lines:?}"
    );
    // A scan that the machine stops in the middle fences nobody: the next one does.
    let lag: u64 = lag.parse().expect("a number");
    assert!(lag > 5, "{lines:?}");
}

#[test]
fn what_is_seen_and_done_is_in_the_black_box_afterwards() {
    let (folder, path, table) = late_in_a_table();
    let ring = folder.path().join("table.events");
    let arguments = ["--json", "--events", ring.to_str().expect("text")];
    let mut watch = Watch::start(&path, &arguments);
    watch.event("verdict");
    let kinds = || {
        let history = BlackBoxReader::open_read_only(&ring).expect("a black box");
        let events = history.read_all().events;
        let of_slot = events.iter().filter(|recorded| recorded.event.slot == 0);
        let kinds: Vec<_> = of_slot.map(|recorded| recorded.event.kind).collect();
        kinds
    };
    await_that("acknowledged", || {
        kinds().contains(&EventKind::Acknowledged)
    });
    let wanted = [
        EventKind::Silent,
        EventKind::HandedBack,
        EventKind::Acknowledged,
    ];
    assert_eq!(kinds(), wanted);
    let history = BlackBoxReader::open_read_only(&ring).expect("a black box");
    let first = history.read_all().events[0].event;
    assert_eq!(first.table_id, table.creation_id());
}

#[test]
fn nothing_is_made_and_a_missing_table_is_waited_for_only_when_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let mut refused = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    let output = refused.arg("watch").arg(&path).output();
    let output = output.expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("no such file") && said.contains("--wait"),
        "{said}"
    );
    let mut watch = Watch::start(&path, &["--json", "--wait"]);
    assert!(!path.exists());
    let table = HeartbeatTable::create(&path, 8).expect("a table");
    watch.event("primary");
    drop(table);
    assert_eq!(watch.end(), Some(0));
}

#[test]
fn a_table_that_was_replaced_is_left_with_an_error_once_all_of_it_is_handed_back() {
    let (_folder, path, table) = late_in_a_table();
    let mut watch = Watch::start(&path, &["--json"]);
    watch.event("primary");
    // Hung, and to be told silent only long after the table has nothing else to report.
    let profile = Profile {
        grace_epochs: 30,
        ..Profile::default()
    };
    let handle = table.register_as(std::process::id(), profile);
    let handle = handle.expect("a slot");
    table.mark_in_flight(handle, 9_u8).expect("our slot");
    drop(HeartbeatTable::reset(&path, 8).expect("another table"));
    let of_the_old = |verdict: &Value| verdict["units"][0]["unit"] == 9;
    while !of_the_old(&watch.event("verdict")) {}
    let code = watch.process.wait().expect("a child of ours").code();
    assert_eq!(code, Some(2));
    let mut said = String::new();
    let mut stderr = BufReader::new(watch.process.stderr.take().expect("a pipe"));
    stderr.read_line(&mut said).expect("the pipe");
    assert!(
        said.contains("Superseded") && said.contains("start anew"),
        "{said}"
    );
}

#[test]
fn a_standby_says_so_and_takes_over_when_the_other_one_ends() {
    let (_folder, path, _table) = late_in_a_table();
    let mut first = Watch::start(&path, &["--json"]);
    first.event("primary");
    let mut second = Watch::start(&path, &["--json"]);
    second.event("standby");
    assert_eq!(first.end(), Some(0));
    second.event("primary");
    assert_eq!(second.end(), Some(0));
}

#[test]
fn a_reader_that_does_not_read_holds_up_neither_the_scan_nor_the_end() {
    let (_folder, path, table) = late_in_a_table();
    let (reader, writer) = full_pipe();
    let mut watch = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    watch.arg("watch").arg(&path);
    watch.args(["--period", "10ms", "--grace", "5"]);
    watch.stdout(writer).stderr(Stdio::piped());
    let watch = watch.spawn().expect("the program runs");
    await_that("scans", || table.global_epoch() > 50);
    send(watch.id(), Signal::TERM);
    let output = watch.wait_with_output().expect("a child of ours");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("nobody reads it"), "{said}");
    let cells = table.cells(0).expect("a slot");
    assert!(!cells.slot.units(1).is_empty(), "told to nobody");
    drop(reader);
}
