//! Children and measurements that are killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::program::{measured, program, text};

/// More than a busy machine needs.
const LIMIT: Duration = Duration::from_secs(60);
/// Each time that a process waits, it switches: so often only in the middle of the ping-pong.
const SWITCHES: u64 = 100;

fn wait_until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "{what}");
        std::thread::yield_now();
    }
}

/// A ping-pong that goes on for longer than any test, in the middle; and its child.
fn playing() -> (Child, Pid) {
    let mut command = program(&["--ms", "600000", "across processes: futex"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let parent = command.spawn().unwrap();
    let id = parent.id();
    let child = wait_until("no child plays", || {
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        let child = children.split_whitespace().next()?.to_owned();
        let status = fs::read_to_string(format!("/proc/{child}/status")).ok()?;
        let waits = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        let often = waits.trim().parse::<u64>().unwrap() > SWITCHES;
        often.then_some(child)
    });
    (parent, Pid::from_raw(child.parse().unwrap()))
}

/// Where the child finds its table.
fn table_of(child: Pid) -> PathBuf {
    let words = fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap();
    words.split('\0').nth(3).unwrap().into()
}

fn is_gone(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn a_child_that_is_killed_ends_the_measurement_with_an_error() {
    let (parent, child) = playing();
    kill(child, Signal::SIGKILL).unwrap();
    let output = parent.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(
        text(&output).contains("a child ended by itself"),
        "{}",
        text(&output)
    );
    assert_eq!(output.stdout, b"", "{}", text(&output));
}

#[test]
fn a_measurement_that_is_killed_takes_its_child_along_and_the_next_one_removes_its_folder() {
    let (mut parent, child) = playing();
    let table = table_of(child);
    let folder = table.parent().unwrap();
    assert!(table.is_file() && folder != Path::new("/dev/shm"));
    parent.kill().unwrap();
    parent.wait().unwrap();
    wait_until("the child lives", || is_gone(child).then_some(()));
    // Its folder is there until the next measurement; that of another test may be it.
    measured(&["--ms", "1", "across processes: clock"]);
    assert!(!folder.exists(), "{}", folder.display());
}
