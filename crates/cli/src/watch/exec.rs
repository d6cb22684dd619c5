//! One run of the command for one verdict.
//!
//! Contract: returns when the command has ended, or was killed with its process group because its time
//! was over. It dies with the calling thread's process. That it does not read its input is no failure.

use std::fmt;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::pipe::PIPE_BUF;
use rustix::process::Signal;

use crate::kept::Group;
use crate::pool::Words;

/// Why a run of the command does not count.
#[derive(Debug)]
pub enum Failure {
    /// It did not end well.
    Status(ExitStatus),
    /// It took too long, and was killed.
    TimedOut(Duration),
    /// It could not be run.
    NotRun(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "{status}"),
            Self::TimedOut(limit) => write!(f, "killed: not done within {limit:?}"),
            Self::NotRun(why) => f.write_str(why),
        }
    }
}

/// Runs the command with `input` as its standard input.
///
/// # Errors
/// [`Failure`], also when it exits with another code than 0.
pub fn run(words: &Words, input: &str, timeout: Duration) -> Result<(), Failure> {
    let not_run = |error: std::io::Error| Failure::NotRun(error.to_string());
    let Some((program, rest)) = words.0.split_first() else {
        return Err(Failure::NotRun("no command".to_owned()));
    };
    // Standard output holds the lines alone.
    let said: OwnedFd = std::io::stderr()
        .as_fd()
        .try_clone_to_owned()
        .map_err(not_run)?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::piped()).stdout(said);
    let (group, mut process) =
        Group::start(&mut command).map_err(|error| Failure::NotRun(error.to_string()))?;
    if let Some(pipe) = process.stdin.take() {
        give(pipe, input).map_err(not_run)?;
    }
    let (sender, ended) = channel();
    group.tell_of_the_end(process, move |status| {
        // Nobody listens when the time is over.
        let _ = sender.send(status);
    });
    match ended.recv_timeout(timeout) {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(Failure::Status(status)),
        Ok(Err(error)) => Err(not_run(error)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            group.signal(Signal::KILL);
            // Gone, before anybody is told so.
            let _ = ended.recv();
            Err(Failure::TimedOut(timeout))
        }
    }
}

/// Writes the input, and waits for no reader.
fn give(mut pipe: ChildStdin, input: &str) -> std::io::Result<()> {
    if input.len() <= PIPE_BUF {
        // It fits every pipe. That nobody reads it is no failure.
        let _ = pipe.write_all(input.as_bytes());
        return Ok(());
    }
    // How much more fits is for the system's limits to say.
    let input = input.to_owned();
    let written = move || drop(pipe.write_all(input.as_bytes()));
    thread::Builder::new().spawn(written).map(drop)
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    fn words(script: &str) -> Words {
        Words(["sh", "-c", script].map(str::to_owned).to_vec())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_command_gets_its_input_and_counts_only_with_exit_code_0() {
        assert!(run(&words("test \"$(cat)\" = 'the input'"), "the input", LONG).is_ok());
        let failed = run(&words("exit 3"), &"x".repeat(60_000), LONG).unwrap_err();
        assert_eq!(failed.to_string(), "exit status: 3");
        let missing = Words(vec!["/no/such/program".to_owned()]);
        let failed = run(&missing, "", LONG).unwrap_err();
        assert!(failed.to_string().contains("No such file"), "{failed}");
    }

    #[test]
    fn a_command_that_does_not_read_what_fills_its_pipe_has_no_more_time_than_others() {
        let input = "x".repeat(1 << 20);
        let failed = run(
            &words("exec sleep 7654"),
            &input,
            Duration::from_millis(300),
        );
        assert!(matches!(failed, Err(Failure::TimedOut(_))), "{failed:?}");
        assert!(run(&words("exit 0"), &input, LONG).is_ok());
        let reads = "test \"$(wc -c)\" -eq 1048576";
        assert!(run(&words(reads), &input, LONG).is_ok());
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_group() {
        let folder = tempfile::tempdir().expect("a folder");
        let note = folder.path().join("pid");
        let script = format!("sleep 7654 & echo $! > {}; wait", note.display());
        let failed = run(&words(&script), "", Duration::from_millis(500)).unwrap_err();
        assert!(matches!(failed, Failure::TimedOut(_)), "{failed}");
        let pid = std::fs::read_to_string(note).expect("started");
        let pid = Pid::from_raw(pid.trim().parse().expect("a pid")).expect("not 0");
        // It was killed, and may take a moment to be dead; afterwards somebody may have waited for it.
        if let Ok(killed) = pidfd_open(pid, PidfdFlags::empty()) {
            let limit = Timespec::try_from(LONG).expect("a minute");
            let mut ends = [PollFd::new(&killed, PollFlags::IN)];
            assert_eq!(poll(&mut ends, Some(&limit)), Ok(1));
        }
    }
}
