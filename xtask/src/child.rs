//! One child command: its own process group, a deadline, its output line by line.
//!
//! Contract: [`Child::run`] returns when the child has exited and both its outputs are closed, or
//! kills the whole group at the deadline. Whatever of the group is left after the leader's exit is
//! killed too. On SIGINT or SIGTERM the running group is killed and the process exits with 130.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The group that runs now: at most one, as checks run one after the other.
static RUNNING: Mutex<Option<Pid>> = Mutex::new(None);

/// A command about to be run.
#[derive(Debug)]
pub struct Child {
    command: Command,
    limit: Duration,
    restarts_limit: fn(&str) -> bool,
    echo: Echo,
}

/// What of the output is shown while it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Echo {
    Nothing,
    Errors,
    Everything,
}

/// What a child left behind.
#[derive(Debug)]
pub struct Finished {
    /// `None` when the deadline passed and the group was killed.
    pub status: Option<ExitStatus>,
    /// Lines of standard output.
    pub stdout: Vec<String>,
    /// Lines of standard error.
    pub stderr: Vec<String>,
}

impl Child {
    /// Runs `command` with `limit` as its deadline; the output is kept, not shown.
    pub fn new(command: Command, limit: Duration) -> Self {
        Self {
            command,
            limit,
            restarts_limit: |_| false,
            echo: Echo::Nothing,
        }
    }

    /// Shows the output while it comes.
    pub fn echo(mut self) -> Self {
        self.echo = Echo::Everything;
        self
    }

    /// Shows standard error while it comes.
    pub fn echo_errors(mut self) -> Self {
        self.echo = Echo::Errors;
        self
    }

    /// Lines of standard error for which `restarts` is true start the deadline anew: the limit then
    /// holds for each part of the work that the child announces.
    pub fn limit_per(mut self, restarts: fn(&str) -> bool) -> Self {
        self.restarts_limit = restarts;
        self
    }

    /// Runs to the end or to the deadline.
    pub fn run(mut self) -> Result<Finished> {
        let told = format!("{:?}", self.command);
        self.command.process_group(0);
        self.command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = self
            .command
            .spawn()
            .with_context(|| format!("cannot start {told}"))?;
        let group = Pid::from_child(&process);
        set_running(Some(group));

        let (sender, lines) = mpsc::channel();
        read_lines(process.stdout.take(), false, sender.clone());
        read_lines(process.stderr.take(), true, sender);
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let mut deadline = Instant::now() + self.limit;
        let closed = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok((is_stderr, line)) => {
                    if is_stderr && (self.restarts_limit)(&line) {
                        deadline = Instant::now() + self.limit;
                    }
                    if self.echo == Echo::Everything || (is_stderr && self.echo == Echo::Errors) {
                        eprintln!("{line}");
                    }
                    if is_stderr {
                        stderr.push(line)
                    } else {
                        stdout.push(line)
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break true,
                Err(RecvTimeoutError::Timeout) => break false,
            }
        };
        let exited = closed && exits_before(group, deadline)?;
        // Before the leader is reaped, so that the group's number cannot belong to anybody else.
        let _ = kill_process_group(group, Signal::KILL);
        let status = process
            .wait()
            .with_context(|| format!("cannot wait for {told}"))?;
        set_running(None);
        Ok(Finished {
            status: exited.then_some(status),
            stdout,
            stderr,
        })
    }
}

impl Finished {
    /// An error that says how `what` ended, unless it succeeded.
    pub fn require(&self, what: &str) -> Result<()> {
        match self.status {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("{what}: {status}"),
            None => bail!("{what}: killed at its deadline"),
        }
    }

    /// Both outputs, for an error message about a child whose output was not shown.
    pub fn text(&self) -> String {
        [&self.stderr[..], &self.stdout[..]].concat().join("\n")
    }
}

/// Starts the thread that answers SIGINT and SIGTERM.
pub fn kill_on_signal() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot catch SIGINT")?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(group) = *running {
                let _ = kill_process_group(group, Signal::KILL);
            }
            std::process::exit(130);
        }
    });
    Ok(())
}

fn set_running(group: Option<Pid>) {
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = group;
}

/// Waits for the exit without reaping. A child may close its outputs long before it exits.
fn exits_before(leader: Pid, deadline: Instant) -> Result<bool> {
    let pidfd = pidfd_open(leader, PidfdFlags::empty()).context("pidfd_open")?;
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec::try_from(left).context("deadline out of range")?;
    let mut polled = [PollFd::new(&pidfd, PollFlags::IN)];
    loop {
        match poll(&mut polled, Some(&timeout)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => bail!("poll on a pidfd: {error}"),
        }
    }
}

fn read_lines(
    stream: Option<impl Read + Send + 'static>,
    is_stderr: bool,
    sender: Sender<(bool, String)>,
) {
    let Some(stream) = stream else { return };
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n') {
            let Ok(line) = line else { return };
            if sender
                .send((is_stderr, String::from_utf8_lossy(&line).into_owned()))
                .is_err()
            {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_and_exit_code_arrive() {
        let finished = Child::new(
            shell("echo one; echo two >&2; exit 3"),
            Duration::from_secs(20),
        )
        .run();
        let finished = finished.expect("sh runs");
        assert_eq!(finished.stdout, ["one"]);
        assert_eq!(finished.stderr, ["two"]);
        assert_eq!(finished.status.and_then(|status| status.code()), Some(3));
        assert_eq!(
            finished.require("it").unwrap_err().to_string(),
            "it: exit status: 3"
        );
    }

    #[test]
    fn a_hanging_grandchild_is_killed_with_its_group_at_the_deadline() {
        let started = Instant::now();
        let finished = Child::new(
            shell("sleep 1000 & echo $!; wait"),
            Duration::from_millis(200),
        )
        .run();
        let finished = finished.expect("sh runs");
        assert!(finished.status.is_none(), "{finished:?}");
        assert!(started.elapsed() < Duration::from_secs(20));
        let pid: u32 = finished.stdout[0].parse().expect("the grandchild's pid");
        check_ends(pid);
    }

    /// Gone, or killed and not yet reaped by whoever inherited it.
    fn check_ends(pid: u32) {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z ") {
                return;
            }
            assert!(Instant::now() < deadline, "outlives the deadline: {stat}");
            std::thread::yield_now();
        }
    }
}
