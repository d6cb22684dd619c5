//! Commands that show progress, and those that do not any more.

use bumpless_failover::Verdict;
use rustix::process::Signal;

use super::{A_SECOND, FAMILY, Run, Scene, await_verdict};
use crate::rig::{full_pipe, process, send};

#[test]
fn a_command_that_changes_its_file_no_more_is_fenced_and_ended() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(A_SECOND);
    let script = "trap 'echo told; exit 5' TERM; echo ready
        while [ ! -e quiet ]; do touch \"$BUMPLESS_BEAT_FILE\"; sleep 0.02; done
        sleep 1000 & wait";
    let file = scene.at("alive");
    let way = ["--beat-file", file.to_str().expect("text")];
    let limit = ["--progress-within", "500ms"];
    let mut run = scene.run(&[way, limit].concat(), script);
    assert_eq!(run.line(), "ready");
    scene.expect_no_verdict(&watchdog);
    std::fs::write(scene.at("quiet"), "").expect("a file");
    let slot = await_verdict(&watchdog);
    assert!(matches!(slot.verdict, Verdict::Silent { .. }), "{slot}");
    assert_eq!((run.line(), run.code()), ("told".into(), Some(5)));
    scene.assert_given_back(&watchdog);
}

#[test]
fn a_reader_of_messages_that_does_not_read_keeps_nothing_waiting() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(A_SECOND);
    let script = "[ -e again ] && echo again && exit 0; touch again
        trap 'echo told; exit 5' TERM; echo ready; sleep 1000 & wait";
    let rest = ["--restart", "on-failure", "--progress-within", "300ms"];
    let mut command = scene.command(&[&["--beat-file", "alive"][..], &rest].concat(), script);
    let (reader, writer) = full_pipe();
    command.stderr(writer);
    let mut run = Run::of(command);
    assert_eq!(run.line(), "ready");
    let slot = await_verdict(&watchdog);
    assert!(matches!(slot.verdict, Verdict::Silent { .. }), "{slot}");
    assert_eq!((run.line(), run.line()), ("told".into(), "again".into()));
    assert_eq!(run.code(), Some(0));
    drop(reader);
}

#[test]
fn a_command_that_is_stopped_is_fenced_and_goes_on_only_to_end() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(A_SECOND);
    // The file's name is good in any folder.
    let script = "trap 'echo told; exit 5' TERM; cd /; echo $$
        while :; do touch \"$BUMPLESS_BEAT_FILE\"; sleep 0.02; done";
    let way = ["--beat-file", "alive"];
    let limit = ["--progress-within", "500ms"];
    let mut run = scene.run(&[way, limit].concat(), script);
    let command = run.numbers()[0];
    send(command, Signal::STOP);
    let slot = await_verdict(&watchdog);
    assert!(matches!(slot.verdict, Verdict::Silent { .. }), "{slot}");
    assert_eq!((run.line(), run.code()), ("told".into(), Some(5)));
}

#[test]
fn a_command_that_writes_to_its_descriptor_no_more_is_killed_and_started_again() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(A_SECOND);
    // It ignores what asks it to end.
    let script = "trap '' TERM; [ -e again ] && echo again && exit 0; touch again
        for i in 1 2 3 4 5; do echo >&7; sleep 0.02; done; echo quiet; exec sleep 1000";
    let way = ["--beat-fd", "7", "--progress-within", "300ms"];
    let rest = ["--stop-within", "200ms", "--restart", "on-failure"];
    let mut run = scene.run(&[way, rest].concat(), script);
    assert_eq!(run.line(), "quiet");
    let slot = await_verdict(&watchdog);
    assert!(matches!(slot.verdict, Verdict::Silent { .. }), "{slot}");
    assert_eq!((run.line(), run.code()), ("again".into(), Some(0)));
    scene.assert_given_back(&watchdog);
}

#[test]
fn a_job_that_is_stopped_is_fenced_and_killed_with_its_command() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(A_SECOND);
    let mut run = scene.run(&["--stop-within", "100ms"], FAMILY);
    let family = run.numbers();
    send(family[1], Signal::STOP);
    let slot = await_verdict(&watchdog);
    assert!(matches!(slot.verdict, Verdict::Silent { .. }), "{slot}");
    assert_eq!(run.code(), Some(137));
    for pid in family {
        assert!(process(pid).is_none(), "{pid}");
    }
}

#[test]
fn without_a_way_to_show_progress_a_command_lives_as_long_as_it_does() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(A_SECOND);
    let mut run = scene.run(&[], "echo ready; exec sleep 1000");
    assert_eq!(run.line(), "ready");
    scene.expect_no_verdict(&watchdog);
    run.send(Signal::TERM);
    assert_eq!(run.code(), Some(143));
}
