//! `status`, `list` and `rm`, run as a user runs them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::{HeartbeatTable, Label, Profile};
use bumpless_sidecar::{BlackBox, Event, EventKind};
use bumpless_substrate::region::{Access, Region};
use rustix::process::Signal;
use serde_json::Value;

use crate::rig::send;

/// The tool, with these arguments and paths.
fn bumpless(words: &[&str], paths: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command.args(words).args(paths);
    command.output().expect("the program runs")
}

fn json(words: &[&str], path: &Path) -> Value {
    let output = bumpless(words, &[path]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

#[test]
fn the_status_of_a_table_agrees_with_what_its_watchdog_reports() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let table = HeartbeatTable::create(&path, 8).expect("a table");
    let profile = |label| Profile {
        label: Label::new(label).expect("a label"),
        ..Profile::default()
    };
    let pid = std::process::id();
    let late = table.register_as(pid, profile("late")).expect("a slot");
    let prompt = table.register_as(pid, profile("prompt")).expect("a slot");
    table.mark_in_flight(late, 5_u8).expect("marked");
    table.mark_in_flight(prompt, 9_u8).expect("marked");
    let watchdog = FailoverWatchdog::with_grace(&table, 2);
    let mut report = watchdog.scan();
    // The fourth scan; a later one, when the machine stops that in the middle.
    for _ in 0..50 {
        if !report.is_empty() {
            break;
        }
        table.beat(prompt).expect("a beat");
        report = watchdog.scan();
    }
    let (reported, _) = report.dead_slots[0];
    let status = json(&["status", "--json"], &path);
    let shown = &status["tables"][0];
    assert_eq!(shown["epoch"], report.new_global_epoch);
    assert_eq!(shown["grace_epochs"], 2);
    assert_eq!(shown["primary"]["pid"], pid);
    assert_eq!(shown["totals"]["silent"], report.dead_slots.len());
    assert_eq!(shown["totals"]["units_to_hand_back"], reported.units.len());
    assert_eq!(shown["totals"]["units_in_flight"], 1);
    let slots = shown["slots"].as_array().expect("slots");
    assert_eq!(slots[0]["verdict"], "silent");
    assert_eq!(slots[0]["label"], "late");
    assert_eq!(slots[0]["units"], serde_json::json!([5]));
    assert_eq!(
        (&slots[1]["verdict"], &slots[1]["lag_epochs"]),
        (&"alive".into(), &1.into())
    );
    let people = text(&bumpless(&["status"], &[&path]).stdout);
    assert!(people.contains("1 silent, 0 dead, 1 fenced"), "{people}");
    assert!(people.lines().all(|line| line.len() <= 120), "{people}");
}

#[test]
fn what_cannot_be_shown_is_an_error_that_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    let no_region = folder.path().join("text");
    std::fs::write(&no_region, "text").expect("a file");
    for (path, said) in [(&missing, "bumpless list"), (&no_region, "no region")] {
        let output = bumpless(&["status"], &[path]);
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(text(&output.stdout), "", "that is not the same as none");
        let told = text(&output.stderr);
        assert!(
            told.contains(said) && told.contains(path.to_str().expect("text")),
            "{told}"
        );
    }
}

#[test]
fn a_folder_without_regions_and_one_that_cannot_be_read_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing");
    for (command, none) in [
        ("status", "no tables, and no tags\n"),
        ("list", "no regions\n"),
    ] {
        let output = bumpless(&[command], &[folder.path()]);
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(0), none.to_owned())
        );
        let output = bumpless(&[command], &[&missing]);
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(1), String::new())
        );
    }
}

#[test]
fn odd_paths_and_labels_are_shown_and_tell_a_terminal_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = OsStr::from_bytes(b"odd \xff\n\x1b[31m");
    let path = folder.path().join(name);
    let table = HeartbeatTable::create(&path, 8).expect("a table");
    let profile = Profile {
        label: Label::new("a\x1b[2J\nb").expect("a label"),
        ..Profile::default()
    };
    table
        .register_as(std::process::id(), profile)
        .expect("a slot");
    let missing = folder.path().join("\x1b[5m");
    for words in [
        &["list"][..],
        &["status"],
        &["status", "--all"],
        &["doctor"],
    ] {
        let output = bumpless(words, &[folder.path()]);
        let told = [output.stdout, output.stderr].concat();
        assert!(!told.contains(&0x1b), "{words:?}: {}", text(&told));
        let output = bumpless(words, &[&missing]);
        let told = text(&[output.stdout, output.stderr].concat());
        assert!(
            told.contains("\\u{1b}[5m") && !told.contains('\x1b'),
            "{words:?}: {told}"
        );
    }
    let shown = text(&bumpless(&["status"], &[&path]).stdout);
    assert!(shown.contains("odd \\xff\\n\\u{1b}[31m\n"), "{shown}");
    assert!(shown.contains(" a\\u{1b}[2J\\nb\n"), "{shown}");
    // Programs get what it is.
    let listed = json(&["list", "--json"], folder.path());
    let listed = listed[0]["path"].as_str().expect("a path");
    assert!(listed.ends_with("odd \\xff\n\x1b[31m"), "{listed:?}");
    let status = json(&["status", "--json"], &path);
    assert_eq!(status["tables"][0]["path"], listed);
    assert_eq!(status["tables"][0]["slots"][0]["label"], "a\x1b[2J\nb");
}

#[test]
fn what_cannot_be_written_is_an_error_and_a_reader_that_has_gone_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let _table = HeartbeatTable::create(&path, 8).expect("a table");
    let ring = folder.path().join("table.events");
    let black_box = BlackBox::create(ring, 16, Access::Private).expect("a black box");
    black_box.record(Event::new(EventKind::Died, 1));
    let full = || File::options().write(true).open("/dev/full").expect("full");
    let folder = folder.path();
    let commands: [(&[&str], Option<&Path>, i32); 7] = [
        (&["list", "--json"], Some(folder), 1),
        (&["status"], Some(&path), 1),
        (&["events"], Some(&path), 1),
        (&["events", "--follow"], Some(&path), 1),
        (&["doctor"], None, 2),
        (&["completions", "bash"], None, 1),
        (&["man"], None, 1),
    ];
    for (words, path, code) in commands {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        command.args(words).args(path).stdout(full());
        let output = command.output().expect("the program runs");
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {told}");
        assert!(told.contains("No space left"), "{words:?}: {told}");
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        command.args(words).args(path).stdout(writer);
        let output = command.output().expect("the program runs");
        assert_eq!(text(&output.stderr), "", "{words:?}");
        assert!(matches!(output.status.code(), Some(0 | 1)), "{words:?}");
    }
    // Nor does it panic when nobody can be told.
    for words in [
        ["status", "/missing"],
        ["top", "/missing"],
        ["rm", "/missing"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        command.args(words).stderr(full());
        assert_eq!(command.output().expect("it runs").status.code(), Some(1));
    }
}

#[test]
fn followed_events_end_with_their_reader_also_while_nothing_happens() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.events");
    let black_box = BlackBox::create(&path, 16, Access::Private).expect("a black box");
    black_box.record(Event::new(EventKind::Died, 1));
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command.args(["events", "--follow"]).arg(&path);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    assert!(line.contains("died"), "{line}");
    Region::remove(&path).expect("ours");
    let next = BlackBox::create(&path, 16, Access::Private).expect("another one");
    next.record(Event::new(EventKind::Silent, 2));
    line.clear();
    lines.read_line(&mut line).expect("a line");
    assert!(line.contains("silent"), "{line}");
    drop(lines);
    let output = child.wait_with_output().expect("a child of ours");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = text(&output.stderr);
    assert!(
        told.contains("another black box has taken its place"),
        "{told}"
    );
}

#[test]
fn followed_events_that_nobody_takes_do_not_hold_up_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.events");
    // More than any pipe takes.
    let black_box = BlackBox::create(&path, 1 << 15, Access::Private).expect("a black box");
    for time_ns in 0..1 << 15 {
        black_box.record(Event::new(EventKind::Died, time_ns));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    command.args(["events", "--follow"]).arg(&path);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    let mut lines = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    send(child.id(), Signal::TERM);
    let mut told = String::new();
    let mut stderr = child.stderr.take().expect("piped");
    stderr.read_to_string(&mut told).expect("text");
    assert_eq!(child.wait().expect("a child of ours").code(), Some(1));
    assert!(told.contains("nobody reads it"), "{told}");
    drop(lines);
}

#[test]
fn a_region_that_somebody_has_open_is_listed_so_and_is_not_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let table = HeartbeatTable::create(&path, 8).expect("a table");
    table.register(std::process::id()).expect("a slot");
    let listed = json(&["list", "--json"], folder.path());
    let found = &listed[0];
    assert_eq!(
        (&found["kind"], &found["mode"]),
        (&"table".into(), &"0600".into())
    );
    assert_eq!(
        (&found["usage"], &found["live_processes"]),
        (&"in_use".into(), &1.into())
    );
    let refused = bumpless(&["rm"], &[&path]);
    assert_eq!(refused.status.code(), Some(1));
    let told = text(&refused.stderr);
    assert!(told.contains("a process has it open; end"), "{told}");
    drop(table);
    assert_eq!(
        json(&["list", "--json"], folder.path())[0]["usage"],
        "unused"
    );
    let deleted = bumpless(&["rm"], &[&path]);
    assert_eq!(deleted.status.code(), Some(0), "{deleted:?}");
    assert_eq!(
        std::fs::read_dir(folder.path())
            .expect("the folder")
            .count(),
        0
    );
}

#[test]
fn doctor_says_by_its_exit_code_how_bad_the_worst_finding_is() {
    let folder = tempfile::Builder::new()
        .tempdir_in("/dev/shm")
        .expect("a folder");
    let path = folder.path().join("table");
    let table = HeartbeatTable::create(&path, 8).expect("a table");
    let mut codes = Vec::new();
    let findings = |codes: &mut Vec<i32>| {
        let output = bumpless(&["doctor", "--json"], &[&path]);
        codes.extend(output.status.code());
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = found.as_array().expect("findings").clone();
        let of_table = found.into_iter().filter(|finding| {
            let check = finding["check"].as_str().expect("a name");
            check.starts_with(path.to_str().expect("text"))
        });
        of_table
            .filter(|finding| finding["level"] != "fine")
            .map(|finding| text(finding["level"].as_str().expect("a level").as_bytes()))
            .collect::<Vec<_>>()
    };
    assert_eq!(findings(&mut codes), Vec::<String>::new());
    table.register(std::process::id()).expect("a slot");
    assert_eq!(findings(&mut codes), ["warning"]);
    std::fs::write(&path, "no table").expect("our file");
    assert_eq!(findings(&mut codes), ["error"]);
    assert!(codes[0] < 2 && codes[1..] == [1, 2], "{codes:?}");
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let said = text(&bumpless(&["completions", shell], &[]).stdout);
        assert!(
            said.contains("doctor") && said.contains("--max-attempts") || shell == "fish",
            "{shell}"
        );
        for hidden in ["pool-worker", "run-job", "lead-job"] {
            assert!(!said.contains(hidden), "{shell}: {hidden}");
        }
    }
    let page = text(&bumpless(&["man"], &[]).stdout);
    assert!(
        page.contains(".TH") && page.contains("bumpless\\-status"),
        "{page}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let written = bumpless(&["man", "--dir"], &[folder.path()]);
    assert_eq!(written.status.code(), Some(0), "{written:?}");
    for name in ["bumpless.1", "bumpless-top.1", "bumpless-standby-node.1"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    assert!(!folder.path().join("bumpless-pool-worker.1").exists());
}
