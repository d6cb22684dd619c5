//! `status`, `list` and `rm`, run as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::{HeartbeatTable, Label, Profile};
use serde_json::Value;

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
    for _ in 0..3 {
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
        let told = text(&output.stderr);
        assert!(
            told.contains(said) && told.contains(path.to_str().expect("text")),
            "{told}"
        );
    }
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
