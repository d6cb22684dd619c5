//! How commands end, who is told, and what is left of them.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{FAMILY, FOR_EVER, Run, Scene, assert_died, await_verdict};
use crate::rig::{await_that, process, send};

#[test]
fn the_command_finds_its_place_and_a_clean_end_gives_the_slot_back() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(FOR_EVER);
    let script = "echo $BUMPLESS_TABLE $BUMPLESS_SLOT \"$BUMPLESS_LABEL\"; read line; exec true";
    let mut run = scene.run(&["--label=-x y"], script);
    let line = run.line();
    assert_eq!(line, format!("{} 0 -x y", scene.table.path().display()));
    assert_eq!(run.code(), Some(0));
    scene.assert_given_back(&watchdog);
}

#[test]
fn the_standard_input_is_the_commands_and_its_name_is_the_label() {
    let scene = Scene::new();
    let mut command = scene.command(&[], "cat; echo $BUMPLESS_LABEL");
    let input = scene.at("input");
    std::fs::write(&input, "first\n").expect("a file");
    command.stdin(std::fs::File::open(&input).expect("the file"));
    let mut run = Run::of(command);
    assert_eq!((run.line(), run.line()), ("first".into(), "sh".into()));
    assert_eq!(run.code(), Some(0));
}

#[test]
fn a_failure_and_a_death_are_told_at_once_and_their_codes_are_passed_on() {
    for (script, code) in [("exit 7", 7), ("kill -9 $$", 137)] {
        let scene = Scene::new();
        let watchdog = scene.watchdog(FOR_EVER);
        let mut run = scene.run(&[], script);
        assert_died(await_verdict(&watchdog));
        assert_eq!(run.code(), Some(code));
        assert!(watchdog.scan().is_empty(), "told once");
    }
}

#[test]
fn a_command_that_cannot_be_started_is_no_death_and_is_not_tried_again() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(FOR_EVER);
    for (program, code) in [("/no/such/command", 127), ("/", 126)] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        run.args(["run", "--restart", "always", "--table"]);
        run.arg(scene.table.path()).args(["--", program]);
        let output = run.output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(
            said.contains(&format!("cannot start \"{program}\"")),
            "{said}"
        );
    }
    scene.assert_given_back(&watchdog);
}

#[test]
fn when_run_is_killed_its_command_and_all_that_it_started_are_gone_before_the_death_is_told() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(FOR_EVER);
    let mut run = scene.run(&[], FAMILY);
    let family = run.numbers();
    let _ = watchdog.scan();
    run.send(Signal::KILL);
    let told = await_verdict(&watchdog);
    assert_died(told);
    assert_eq!(told.pid, family[1], "the job is who is registered");
    for pid in [family[0], family[2], family[3]] {
        assert!(process(pid).is_none(), "{pid} of {family:?}");
    }
}

#[test]
fn when_the_job_is_killed_its_death_is_told_and_run_ends_who_is_left() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(FOR_EVER);
    let mut run = scene.run(&[], FAMILY);
    let family = run.numbers();
    send(family[1], Signal::KILL);
    assert_died(await_verdict(&watchdog));
    assert_eq!(run.code(), Some(137));
    for pid in family {
        assert!(process(pid).is_none(), "{pid}");
    }
}

#[test]
fn signals_are_passed_on_and_an_end_that_was_asked_for_is_no_death() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(FOR_EVER);
    let script = "trap 'echo usr1' USR1; trap 'echo usr2' USR2; echo ready
        while :; do sleep 0.02; done";
    let mut run = scene.run(&["--restart", "always"], script);
    assert_eq!(run.line(), "ready");
    run.send(Signal::USR1);
    assert_eq!(run.line(), "usr1");
    run.send(Signal::USR2);
    assert_eq!(run.line(), "usr2");
    run.send(Signal::TERM);
    assert_eq!(run.code(), Some(128 + 15), "and no restart");
    scene.assert_given_back(&watchdog);
}

#[test]
fn what_a_terminal_or_a_service_manager_sends_to_all_reaches_the_command_once() {
    let scene = Scene::new();
    let script = "trap 'echo int' INT; trap 'echo end; exit 4' TERM; echo $PPID
        while :; do sleep 0.02; done";
    let mut command = scene.command(&[], script);
    let mut run = Run::of({
        command.process_group(0);
        command
    });
    let job = run.numbers()[0];
    let group = Pid::from_child(&run.process);
    kill_process_group(group, Signal::INT).expect("a group of ours");
    assert_eq!(run.line(), "int");
    // A service manager sends to each process of the service, also to the job.
    send(job, Signal::TERM);
    run.send(Signal::TERM);
    assert_eq!(run.line(), "end");
    assert_eq!((run.line(), run.code()), (String::new(), Some(4)));
}

#[test]
fn after_failures_the_command_is_started_again_until_it_is_too_often() {
    let scene = Scene::new();
    let mut run = scene.run(
        &["--restart", "on-failure", "--restart-max", "2"],
        "echo try; exit 3",
    );
    let start = Instant::now();
    assert_eq!(run.code(), Some(3));
    // 200 ms and 400 ms.
    assert!(start.elapsed() >= Duration::from_millis(600));
    let tries = [run.line(), run.line(), run.line(), run.line()];
    assert_eq!(tries, ["try", "try", "try", ""]);
}

#[test]
fn a_clean_end_is_started_again_only_when_asked() {
    let scene = Scene::new();
    let mut run = scene.run(&["--restart", "on-failure"], "echo try");
    assert_eq!((run.line(), run.line()), ("try".into(), String::new()));
    assert_eq!(run.code(), Some(0));
    let mut run = scene.run(&["--restart", "always"], "echo try");
    assert_eq!((run.line(), run.line()), ("try".into(), "try".into()));
    // In its pause, or in its command.
    run.send(Signal::TERM);
    assert!(matches!(run.code(), Some(0 | 143)));
}

#[test]
fn who_is_left_to_the_job_and_ends_is_not_kept_as_a_dead_process() {
    let scene = Scene::new();
    let script =
        "echo $PPID; for i in 1 2 3 4 5; do (sleep 0.01 &); done; echo left; exec sleep 1000";
    let mut run = scene.run(&[], script);
    let job = run.numbers()[0];
    assert_eq!(run.line(), "left");
    await_that("the command alone is a child of the job", || {
        let tasks = std::fs::read_dir(format!("/proc/{job}/task")).expect("the job");
        let lists = tasks.map(|task| {
            let list = task.expect("a thread").path().join("children");
            std::fs::read_to_string(list).unwrap_or_default()
        });
        lists.collect::<String>().split_whitespace().count() == 1
    });
}
