//! `bumpless lead`, run as a user runs it. Many leads, and killed ones, are for the scenarios.

use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::{Region, default_folder};
use rustix::process::{Pid, Signal, kill_process};

fn lead(arguments: &[&str], command: &[&str]) -> Command {
    let mut lead = Command::new(env!("CARGO_BIN_EXE_bumpless"));
    lead.arg("lead").args(arguments).arg("--").args(command);
    lead
}

/// Run to its end in a table of its own.
fn output(command: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let _table = HeartbeatTable::create(&path, 8).expect("a table");
    let path = path.to_str().expect("text");
    let mut lead = lead(&["--name", "job", "--table", path], command);
    lead.output().expect("the program runs")
}

#[test]
fn the_command_finds_its_term_and_its_exit_code_is_passed_on() {
    let script = "echo $BUMPLESS_TERM $BUMPLESS_ELECTION $BUMPLESS_LEADER_SLOT; read line; exit 7";
    let output = output(&["sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 job 0\n");
}

#[test]
fn ends_that_are_no_exit_code_are_told_as_a_shell_tells_them() {
    assert_eq!(output(&["sh", "-c", "kill -9 $$"]).status.code(), Some(137));
    let missing = output(&["/no/such/command"]);
    assert_eq!(missing.status.code(), Some(127));
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("cannot start \"/no/such/command\""), "{said}");
    assert_eq!(output(&["/"]).status.code(), Some(126));
}

#[test]
fn who_is_left_in_the_commands_group_ends_with_it() {
    let mut shell = output(&["sh", "-c", "sleep 1000 >&- 2>&- & echo $!"]);
    assert_eq!(shell.status.code(), Some(0), "{shell:?}");
    shell.stdout.pop();
    let pid = String::from_utf8(shell.stdout).expect("a pid");
    assert!(!Path::new("/proc").join(pid).exists());
}

#[test]
fn who_has_left_the_commands_group_ends_with_it_too() {
    // The shell goes on when the pipe of the inner one is closed: behind its setsid.
    let inner = "sleep 1000 >&- 2>&- & echo $!";
    let script = format!("pid=$(setsid sh -c '{inner}'); echo $pid");
    let shell = output(&["sh", "-c", &script]);
    assert_eq!(shell.status.code(), Some(0), "{shell:?}");
    let pid = String::from_utf8(shell.stdout).expect("a pid");
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn who_is_left_of_a_job_that_was_killed_ends_before_its_lead_and_nobody_else_does() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    drop(HeartbeatTable::create(&path, 8).expect("a table"));
    // The shell leaves the lead a child of its own.
    let before = "sleep 1000 >&- 2>&- & echo $!; exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", before, "sh", env!("CARGO_BIN_EXE_bumpless")]);
    shell.args(["lead", "--name", "job", "--table"]).arg(&path);
    shell.args(["--", "sh", "-c"]);
    shell.arg("sleep 1000 >&- 2>&- & echo $! $PPID; wait");
    let mut standing = Standing::of(shell);
    let foreign = standing.line();
    let line = standing.line();
    let (left, job) = line.trim().split_once(' ').expect("two pids");
    signal(job, Signal::KILL);
    let status = standing.0.wait().expect("a child of ours");
    assert_eq!(status.code(), Some(128 + 9));
    assert!(!Path::new("/proc").join(left).exists());
    assert!(Path::new("/proc").join(foreign.trim()).exists());
    signal(foreign.trim(), Signal::KILL);
}

#[test]
fn who_ends_all_processes_of_a_service_at_once_leaves_the_command_its_own_end() {
    let script = "trap 'echo told; exit 5' TERM; echo $PPID; sleep 1000 >&- 2>&- & wait";
    let (_folder, mut standing) = Standing::in_its_own_table(&["sh", "-c", script]);
    signal(standing.line().trim(), Signal::TERM);
    standing.signal(Signal::TERM);
    assert_eq!(standing.line(), "told\n");
    let status = standing.0.wait().expect("a child of ours");
    assert_eq!(status.code(), Some(5));
}

#[test]
fn a_name_may_begin_with_a_dash() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let _table = HeartbeatTable::create(&path, 8).expect("a table");
    let path = path.to_str().expect("text");
    let output = lead(&["--name=-x", "--table", path], &["true"]).output();
    let output = output.expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_lock_that_is_a_link_or_that_others_may_take_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let _table = HeartbeatTable::create(&path, 8).expect("a table");
    let elsewhere = folder.path().join("elsewhere");
    let lock = folder.path().join("table.job.job");
    let path = path.to_str().expect("text");
    let expect_refused = || {
        let output = lead(&["--name", "job", "--table", path], &["true"]).output();
        let output = output.expect("the program runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("table.job.job"), "{told}");
    };
    symlink(&elsewhere, &lock).expect("a link");
    expect_refused();
    assert!(!elsewhere.exists());
    std::fs::remove_file(&lock).expect("removed");
    std::fs::write(&lock, "").expect("a file");
    std::fs::set_permissions(&lock, Permissions::from_mode(0o644)).expect("our file");
    expect_refused();
}

#[test]
fn a_name_that_is_none_and_a_table_that_is_missing_are_errors_that_name_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let path = path.to_str().expect("text");
    for (name, said) in [("a.b", "`a.b`"), ("job", path)] {
        if name == "a.b" {
            drop(HeartbeatTable::create(path, 8).expect("a table"));
        } else {
            Region::remove(Path::new(path)).expect("removed");
        }
        let output = lead(&["--name", name, "--table", path], &["true"]).output();
        let output = output.expect("the program runs");
        assert_eq!(output.status.code(), Some(2));
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(said), "{told}");
    }
}

fn signal(pid: &str, signal: Signal) {
    let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, signal).expect("a process of ours");
}

/// A lead whose command says something and then does nothing.
struct Standing(Child, BufReader<std::process::ChildStdout>);

impl Standing {
    /// In the default table; the command says its term.
    fn start(name: &str) -> Self {
        let script = "echo $BUMPLESS_TERM; exec sleep 1000";
        Self::of(lead(
            &["--name", name, "--grace", "5s"],
            &["sh", "-c", script],
        ))
    }

    fn in_its_own_table(command: &[&str]) -> (tempfile::TempDir, Self) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("table");
        drop(HeartbeatTable::create(&path, 8).expect("a table"));
        let path = path.to_str().expect("text");
        let standing = Self::of(lead(&["--name", "job", "--table", path], command));
        (folder, standing)
    }

    fn of(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().expect("a lead");
        let pipe = process.stdout.take().expect("a pipe");
        Self(process, BufReader::new(pipe))
    }

    /// What the command says next, once there is one.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).expect("the pipe");
        line
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("a child of ours");
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn in_the_default_table_the_leads_themselves_see_that_one_of_them_hangs() {
    let name = format!("test-{}", std::process::id());
    let mut first = Standing::start(&name);
    assert_eq!(first.line(), "1\n");
    let mut second = Standing::start(&name);
    first.signal(Signal::STOP);
    assert_eq!(second.line(), "2\n");
    first.signal(Signal::CONT);
    second.signal(Signal::INT);
    let status = second.0.wait().expect("a child of ours");
    assert_eq!(status.code(), Some(128 + 2), "the command's end");
    assert_eq!(first.line(), "3\n");
    first.signal(Signal::TERM);
    first.0.wait().expect("a child of ours");
    let table = default_folder().expect("a folder").join("lead.table");
    let beside = |suffix: &str| table.with_file_name(format!("lead.table.{name}.{suffix}"));
    Region::remove(&beside("election")).expect("removed");
    std::fs::remove_file(beside("job")).expect("removed");
}
