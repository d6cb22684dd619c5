//! `--exec`: outcome and output per file, poison, hanging commands.

use std::fs;

use crate::rig::{Rig, processes};

fn read(rig: &Rig, name: &str) -> String {
    fs::read_to_string(rig.at(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn exit_code_and_output_of_each_command_are_recorded() {
    let rig = Rig::new();
    rig.file("tree/a b", b"");
    rig.file("tree/bad\n", b"");
    let script = r#"case "$1" in *bad*) echo no >&2; exit 3;; esac; echo "<$1>""#;
    let exec = format!("sh -c '{script}' x {{}}");
    let said = rig.run(["--exec", &exec, "--output-dir", "out", "--json", "tree"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert_eq!((said.count("accepted"), said.count("failed")), (1, 1));
    assert_eq!(read(&rig, "out/1/stdout"), "<tree/a b>\n");
    assert_eq!(read(&rig, "out/1/status"), "exit 0\ntree/a b\n");
    assert_eq!(read(&rig, "out/2/stderr"), "no\n");
    assert_eq!(read(&rig, "out/2/status"), "exit 3\ntree/bad\\n\n");
    assert!(
        said.stderr.contains("tree/bad\\n: exit 3"),
        "{}",
        said.stderr
    );
    assert_eq!(rig.names(), ["out", "tree"]);
}

#[test]
fn a_command_that_cannot_be_started_fails_its_file() {
    let rig = Rig::with_files(1, 1);
    let said = rig.run([
        "--exec",
        "/no/such/program",
        "--output-dir",
        "out",
        "--json",
        "tree",
    ]);
    assert_eq!((said.code, said.count("failed")), (Some(1), 1));
    assert!(
        said.stderr.contains("start the command: No such file"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_file_that_kills_its_workers_is_poison_after_so_many_attempts_and_the_others_are_done() {
    let rig = Rig::with_files(6, 1);
    rig.file("tree/poison", b"");
    let script = r#"case "$1" in *poison) echo >> tries; kill -9 $PPID; sleep 60;; esac"#;
    let exec = format!("sh -c '{script}' x {{}}");
    let fixed = [
        "--exec",
        &exec,
        "--output-dir",
        "out",
        "--json",
        "--max-attempts",
        "2",
    ];
    // A grace of a second, so that no other file is blamed on a busy machine.
    let rest = ["--workers", "2", "--grace", "100", "tree"];
    let said = rig.run(fixed.into_iter().chain(rest));
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert_eq!((said.count("accepted"), said.count("failed")), (6, 1));
    assert!(
        said.stderr
            .contains("tree/poison: poison: its worker died or hung 2 times")
    );
    assert!(
        said.stderr.contains("signal 9, at tree/poison"),
        "{}",
        said.stderr
    );
    assert_eq!(read(&rig, "tries"), "\n\n");
    assert_eq!(said.count("killed"), 0);
}

#[test]
fn a_command_that_hangs_is_ended_with_its_whole_group() {
    let rig = Rig::new();
    rig.file("tree/hangs", b"");
    rig.file("tree/works", b"");
    // A duration that no other process here sleeps for.
    let duration = 10_000_000 + std::process::id();
    let script = format!(r#"case "$1" in *hangs) sleep {duration} & sleep {duration};; esac"#);
    let exec = format!("sh -c '{script}' x {{}}");
    let fixed = [
        "--exec",
        &exec,
        "--output-dir",
        "out",
        "--json",
        "--max-attempts",
        "1",
    ];
    let said = rig.run(fixed.into_iter().chain(["--unit-timeout", "3s", "tree"]));
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert_eq!((said.count("accepted"), said.count("failed")), (1, 1));
    assert!(
        said.stderr.contains("hung, and was killed, at tree/hangs"),
        "{}",
        said.stderr
    );
    let sleeps = processes().into_iter().filter(|process| {
        let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
        line == format!("sleep\0{duration}\0").into_bytes()
    });
    assert_eq!(sleeps.count(), 0);
}

#[test]
fn output_is_not_mixed_with_that_of_an_earlier_run() {
    let rig = Rig::with_files(1, 1);
    rig.file("out/1/stdout", b"precious");
    let said = rig.run(["--exec", "true", "--output-dir", "out", "tree"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("out: not empty"), "{}", said.stderr);
    assert_eq!(read(&rig, "out/1/stdout"), "precious");
}

#[test]
fn output_below_the_walked_folder_is_not_walked() {
    let rig = Rig::with_files(5, 1);
    let said = rig.run([
        "--exec",
        "echo",
        "--output-dir",
        "tree/out",
        "--json",
        "tree",
    ]);
    assert_eq!(
        (said.code, said.count("files")),
        (Some(0), 5),
        "{}",
        said.stderr
    );
}
