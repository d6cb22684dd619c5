//! SIGTSTP and SIGCONT: who stops, who goes on, and what the command finds of that.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::sys::signal::{SigSet, Signal as Blocked};
use rustix::process::Signal;

use super::{Run, Scene};
use crate::rig::{await_of, process, send, status_of};

/// Says its pid and that of the job, and leaves a mark for each USR1 that it hears. From then on it starts
/// nothing: a shell whose child is stopped before it executes anything cannot stop itself.
const HEARS: &str = "trap '' USR1; sleep 1000 >&- 2>&- & trap 'echo >> heard' USR1
    echo $$ $PPID; while :; do wait; done";

/// A command that hears, and its run.
struct Pair {
    scene: Scene,
    run: Run,
    command: u32,
    job: u32,
}

impl Pair {
    fn of(command: impl FnOnce(&Scene) -> Command) -> Self {
        let scene = Scene::new();
        let mut run = Run::of(command(&scene));
        let pids = run.numbers();
        Self {
            scene,
            run,
            command: pids[0],
            job: pids[1],
        }
    }

    /// In a group of its own, which this process looks after as a shell would.
    fn of_a_shell() -> Self {
        Self::of(|scene| {
            let mut command = scene.command(&[], HEARS);
            command.process_group(0);
            command
        })
    }

    /// Run by `program` with these arguments.
    fn of_a_wrapper(program: &str, arguments: &[&str]) -> Self {
        Self::of(|scene| {
            let inner = scene.command(&[], HEARS);
            let mut command = Command::new(program);
            command.args(arguments).arg(inner.get_program());
            command.args(inner.get_args());
            command.current_dir(scene.at("."));
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            command
        })
    }

    fn heard(&self) -> usize {
        std::fs::read(self.scene.at("heard")).map_or(0, |marks| marks.len())
    }

    /// Waits until it is so; fails with what is known of the three.
    #[track_caller]
    fn await_so(&self, what: &str, is_so: impl Fn() -> bool) {
        let told = |_: &mut ()| {
            let three = [self.run.process.id(), self.job, self.command];
            let about = three.map(|pid| (pid, status_of(pid)));
            format!("; run, job and command: {about:?}")
        };
        await_of(&mut (), what, |()| is_so(), told);
    }

    #[track_caller]
    fn assert_hears(&self, what: &str) {
        let before = self.heard();
        self.await_so(what, || {
            // Two that are not heard yet are one.
            self.run.send(Signal::USR1);
            self.heard() > before
        });
    }

    #[track_caller]
    fn await_stopped(&self, pid: u32) {
        self.await_so("stopped", || {
            process(pid).is_some_and(|found| found.state == 'T')
        });
    }
}

#[test]
fn who_is_told_to_stop_and_at_once_to_go_on_goes_on() {
    let pair = Pair::of_a_shell();
    for round in 0..60 {
        pair.run.send(Signal::TSTP);
        pair.run.send(Signal::CONT);
        pair.assert_hears(&format!("it hears in round {round}"));
    }
}

#[test]
fn run_stops_with_its_command_and_goes_on_with_it() {
    let pair = Pair::of_a_shell();
    for round in 0..3 {
        pair.run.send(Signal::TSTP);
        pair.await_stopped(pair.command);
        pair.await_stopped(pair.run.process.id());
        pair.run.send(Signal::CONT);
        pair.assert_hears(&format!("it hears in round {round}"));
    }
}

#[test]
fn a_run_that_no_shell_could_make_go_on_stops_only_its_command() {
    let pair = Pair::of_a_wrapper("setsid", &[]);
    pair.run.send(Signal::TSTP);
    pair.await_stopped(pair.command);
    // Not by `run`, which else would be told to go on, too.
    send(pair.command, Signal::CONT);
    pair.assert_hears("it hears what run passes on");
    pair.run.send(Signal::TSTP);
    pair.await_stopped(pair.command);
    pair.run.send(Signal::CONT);
    pair.assert_hears("it hears, told by run to go on");
}

#[test]
fn where_the_stop_is_ignored_nobody_stops() {
    let script = "trap '' TSTP; exec \"$@\"";
    let pair = Pair::of_a_wrapper("sh", &["-c", script, "sh"]);
    pair.run.send(Signal::TSTP);
    pair.assert_hears("it hears");
    let stat = |pid| process(pid).map(|found| found.state);
    assert_ne!(stat(pair.command), Some('T'));
    assert_ne!(stat(pair.run.process.id()), Some('T'));
}

#[test]
fn the_command_starts_with_the_mask_that_run_was_started_with() {
    let scene = Scene::new();
    let script = "grep SigBlk /proc/self/status";
    let mut own = SigSet::from(Blocked::SIGUSR2);
    for with_stop in [false, true] {
        if with_stop {
            own.add(Blocked::SIGTSTP);
        }
        own.thread_block().expect("blocked");
        let mut plain = Command::new("sh");
        let plain = plain.args(["-c", script]).output().expect("sh runs");
        let mut run = scene.run(&[], script);
        own.thread_unblock().expect("unblocked");
        let expected = String::from_utf8(plain.stdout).expect("text");
        assert_eq!(run.line(), expected.trim_end());
        assert_eq!(run.code(), Some(0));
    }
}
