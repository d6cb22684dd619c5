//! `bumpless run`, run as a user runs it. sd_notify, and Python, are for the scenarios.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use bumpless_failover::{FailoverWatchdog, SlotRef, Verdict};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::proof::Proof;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::rig::{await_that, process, send};

/// A grace that no test here waits for: whoever is told to be dead died.
const FOR_EVER: u64 = 60_000;

/// A second and more, at a scan each 10 ms.
const A_SECOND: u64 = 100;

/// A folder with a table.
struct Scene {
    folder: tempfile::TempDir,
    table: HeartbeatTable,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let table = HeartbeatTable::create(folder.path().join("table"), 8).expect("a table");
        Self { folder, table }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A script, run in the folder.
    fn command(&self, arguments: &[&str], script: &str) -> Command {
        let mut run = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        run.args(["run", "--table"]).arg(self.table.path());
        run.args(arguments).args(["--", "sh", "-c", script]);
        run.current_dir(self.folder.path());
        run.stdin(Stdio::null()).stdout(Stdio::piped());
        run
    }

    fn run(&self, arguments: &[&str], script: &str) -> Run {
        Run::of(self.command(arguments, script))
    }

    fn watchdog(&self, grace_epochs: u64) -> FailoverWatchdog<'_> {
        FailoverWatchdog::with_grace(&self.table, grace_epochs)
    }

    /// Nobody is registered but the watchdogs of this process, and nothing waits for them.
    #[track_caller]
    fn assert_given_back(&self, watchdog: &FailoverWatchdog<'_>) {
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
        let own = std::process::id();
        assert!(self.table.iter_live().all(|(_, seen)| seen.pid == own));
    }
}

/// A `bumpless run`; killed when the test ends before it does.
struct Run {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Run {
    fn of(mut command: Command) -> Self {
        let mut process = command.spawn().expect("the program runs");
        let said = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, said }
    }

    /// What the command says next; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("the pipe");
        line.trim_end().to_owned()
    }

    fn numbers(&mut self) -> Vec<u32> {
        let line = self.line();
        let words = line.split_whitespace();
        words.map(|word| word.parse().expect("a pid")).collect()
    }

    fn send(&self, signal: Signal) {
        send(self.process.id(), signal);
    }

    fn code(&mut self) -> Option<i32> {
        self.process.wait().expect("a child of ours").code()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The first verdict; scans each 10 ms, and when somebody dies.
#[track_caller]
fn await_verdict(watchdog: &FailoverWatchdog<'_>) -> SlotRef {
    let start = Instant::now();
    loop {
        let report = watchdog.scan();
        if let Some((slot, _)) = report.dead_slots.first() {
            watchdog.clear_dead_bitmap(*slot).expect("acknowledged");
            return *slot;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no verdict");
        watchdog.wait_for_change(Duration::from_millis(10));
    }
}

#[track_caller]
fn assert_died(slot: SlotRef) {
    assert_eq!(
        (slot.verdict, slot.evidence.proof),
        (Verdict::Died, Proof::Gone)
    );
}

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

/// Says its pid, that of its parent, of a child, and of one that has left its group.
const FAMILY: &str = "sleep 1000 >&- 2>&- & child=$!
    left=$(setsid sh -c 'sleep 1000 >&- 2>&- & echo $!'); echo $$ $PPID $child $left; wait";

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
    for _ in 0..2 * A_SECOND {
        assert!(watchdog.scan().is_empty(), "it shows progress");
        watchdog.wait_for_change(Duration::from_millis(10));
    }
    std::fs::write(scene.at("quiet"), "").expect("a file");
    let slot = await_verdict(&watchdog);
    assert!(matches!(slot.verdict, Verdict::Silent { .. }), "{slot}");
    assert_eq!((run.line(), run.code()), ("told".into(), Some(5)));
    scene.assert_given_back(&watchdog);
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

#[test]
fn without_a_way_to_show_progress_a_command_lives_as_long_as_it_does() {
    let scene = Scene::new();
    let watchdog = scene.watchdog(A_SECOND);
    let mut run = scene.run(&[], "echo ready; exec sleep 1000");
    assert_eq!(run.line(), "ready");
    for _ in 0..2 * A_SECOND {
        assert!(watchdog.scan().is_empty());
        watchdog.wait_for_change(Duration::from_millis(10));
    }
    run.send(Signal::TERM);
    assert_eq!(run.code(), Some(143));
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
    assert!(
        said.contains("/no") && said.contains("leave --table out"),
        "{said}"
    );
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
