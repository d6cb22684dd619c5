//! The pool's child processes, and what they leave behind.
//!
//! Contract: a worker is killed by its pid only while it is not reaped (its pid is then its own). The
//! pool adopts the commands of dead workers, so that a command's process group is known to be empty:
//! no process, not even a dead one, is in it.

use std::path::Path;
use std::process::{Command, Stdio};

use bumpless_substrate::guard::spawn_guarded;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group,
    test_kill_process_group, wait,
};

use super::args::WorkerArguments;
use super::error::PoolError;

/// Starts a worker: this very program, whatever its file was replaced by. It dies with the calling
/// thread.
///
/// # Errors
/// [`PoolError::Guard`].
pub fn spawn_worker(arguments: &WorkerArguments) -> Result<Pid, PoolError> {
    use std::os::unix::process::CommandExt;

    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("bumpless")
        .arg("pool-worker")
        .arg("--table")
        .arg(&arguments.table)
        .arg("--lanes")
        .arg(&arguments.lanes)
        .args(["--lane", &arguments.lane.to_string()])
        .args(["--period-ns", &arguments.period_ns.to_string()]);
    if let Some(output_dir) = &arguments.output_dir {
        command.arg("--output-dir").arg(output_dir);
    }
    command
        .arg("--")
        .args(&arguments.words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // A terminal's signals are for the parent, which ends its workers itself.
        .process_group(0);
    let child = spawn_guarded(&mut command, None)?;
    // Reaped by `reap`, with everything else.
    pid(child.id()).ok_or(PoolError::System {
        doing: "name the child",
        errno: Errno::SRCH,
    })
}

/// A pid from shared memory or from the system.
#[must_use]
pub fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// The next child that ended or stopped since the last call, without waiting.
///
/// # Errors
/// [`PoolError::System`].
pub fn reap() -> Result<Option<(Pid, WaitStatus)>, PoolError> {
    match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
        Ok(ended) => Ok(ended),
        Err(Errno::CHILD | Errno::INTR) => Ok(None),
        Err(errno) => Err(PoolError::System {
            doing: "wait for children",
            errno,
        }),
    }
}

/// Sends a signal to a worker that is not reaped. That it is dead already is no error.
pub fn signal(worker: Pid, signal: Signal) {
    let _ = kill_process(worker, signal);
}

/// Kills a command's process group; whether there is nobody in it any more.
#[must_use]
pub fn clear_group(group: Pid) -> bool {
    // Ours is never a command's group, whatever the lane says.
    if group == rustix::process::getpgrp() || group == Pid::INIT {
        return true;
    }
    let _ = kill_process_group(group, Signal::KILL);
    test_kill_process_group(group) == Err(Errno::SRCH)
}

/// How a process ended, in words.
#[must_use]
pub fn ended(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => format!("{status:?}"),
    }
}

/// Deletes what a command of an attempt that does not count has written.
pub fn discard(folder: &Path) {
    // Not there is as good; what cannot be deleted is hidden and has no file's name.
    let _ = std::fs::remove_dir_all(folder);
}
