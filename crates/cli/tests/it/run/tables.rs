//! The table in which a command stands, and what the command line says of it.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::HeartbeatTable;
use rustix::process::Signal;

use super::{FOR_EVER, Scene, assert_died, await_verdict};
use crate::rig::await_that;

#[test]
fn when_the_table_is_replaced_the_command_lives_on_in_the_new_one() {
    let scene = Scene::new();
    let mut run = scene.run(&[], "echo ready; exec sleep 1000");
    assert_eq!(run.line(), "ready");
    let table = HeartbeatTable::reset(scene.table.path(), 8).expect("another table");
    await_that("registered anew", || table.find_by_label("sh").is_some());
    let watchdog = FailoverWatchdog::with_grace(&table, FOR_EVER);
    assert!(watchdog.scan().is_empty());
    run.send(Signal::KILL);
    assert_died(await_verdict(&watchdog));
}

#[test]
fn what_the_command_line_gets_wrong_is_named() {
    let output = |arguments: &[&str]| {
        let mut run = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        let output = run.arg("run").args(arguments).output();
        let output = output.expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = output(&["--table", "/no/table", "--", "true"]);
    assert!(said.contains("/no: cannot open the folder"), "{said}");
    let said = output(&["--beat-fd", "2", "--", "true"]);
    assert!(said.contains("3..=255"), "{said}");
    let long = "x".repeat(65);
    let said = output(&["--label", &long, "--", "true"]);
    assert!(said.contains("label of 65 bytes: at most 64"), "{said}");
    let said = output(&["--progress-within", "1s", "--", "true"]);
    assert!(
        said.contains("not provided") && said.contains("--beat-file"),
        "{said}"
    );
    let said = output(&["--notify", "--beat-fd", "3", "--", "true"]);
    assert!(said.contains("cannot be used with"), "{said}");
}

#[test]
fn the_default_table_is_made_when_it_is_missing() {
    let mut run = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    run.args(["run", "--", "sh", "-c", "echo $BUMPLESS_TABLE"]);
    let output = run.output().expect("the program runs");
    let path = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(path.trim().ends_with("/run.table"), "{path}");
    let table = HeartbeatTable::open_read_only(Path::new(path.trim()));
    table.expect("the default table");
}

/// A clean end in the table; what is said on standard error.
#[track_caller]
fn said_with(table: &Path, arguments: &[&str]) -> String {
    let mut run = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    run.args(["run", "--table"]).arg(table).args(arguments);
    let output = run.args(["--", "true"]).output();
    let output = output.expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    said
}

#[test]
fn a_table_that_is_named_is_made_when_it_is_missing_and_used_whatever_its_size() {
    let scene = Scene::new();
    let path = scene.at("new table");
    let said = said_with(&path, &[]);
    assert!(said.contains("new table: made, with 1024 slots"), "{said}");
    assert_eq!(said_with(&path, &[]), "");
    assert_eq!(said_with(scene.table.path(), &[]), "");
    let made = HeartbeatTable::attach(&path).expect("the table");
    assert_eq!((made.capacity(), scene.table.capacity()), (1024, 8));
}

#[test]
fn a_table_from_before_the_machines_last_start_is_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    drop(HeartbeatTable::create(&path, 1024).expect("a table"));
    let file = std::fs::OpenOptions::new().write(true).open(&path);
    // The boot id in the header.
    file.expect("ours")
        .write_all_at(&[0xff; 16], 40)
        .expect("written");
    HeartbeatTable::attach(&path).expect_err("of another start");
    assert_eq!(said_with(&path, &[]), "");
    HeartbeatTable::attach(&path).expect("a table again");
}

#[test]
fn whether_anybody_lives_who_would_see_a_hang_is_told() {
    let scene = Scene::new();
    let path = scene.at("our table");
    drop(HeartbeatTable::create(&path, 8).expect("a table"));
    let way = ["--beat-file", "alive"];
    let nobody = format!(
        "nobody watches, so a hang is not seen: bumpless watch '{}'",
        path.display()
    );
    let said = said_with(&path, &way);
    assert!(said.contains(&nobody), "{said}");
    let mut watch = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    watch.arg("watch").arg(&path).stdout(Stdio::piped());
    let mut watch = watch.spawn().expect("the program runs");
    let mut line = String::new();
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe"));
    lines.read_line(&mut line).expect("a line");
    let with_watch = said_with(&path, &way);
    watch.kill().expect("a child of ours");
    watch.wait().expect("a child of ours");
    assert_eq!(with_watch, "");
    let said = said_with(&path, &way);
    assert!(said.contains(&nobody), "its name is still there: {said}");
}
