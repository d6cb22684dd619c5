//! A command that ends with its keeper, together with what it has started.
//!
//! ```text
//!   keeper's parent ── pipe or socket: signals to pass on; its end: the parent is gone ──▶ keeper
//!   keeper ── starts, signals, ends ──▶ the command's process group; who has left it: `orphans`
//! ```
//! Contract: the kernel kills the command when the thread that started it ends. Its process group is
//! killed when the command has ended, while its pid still names nobody else.

pub mod orphans;

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::thread;

use bumpless_substrate::guard::{GuardError, spawn_guarded};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The command and whoever it has started, as far as they have not left its process group.
#[derive(Debug, Clone, Copy)]
pub struct Group(Pid);

impl Group {
    /// Starts the command in a group of its own, to be killed when the calling thread ends: so by the
    /// process's first thread.
    ///
    /// # Errors
    /// [`GuardError::Spawn`].
    pub fn start(command: &mut Command) -> Result<(Self, Child), GuardError> {
        let process = spawn_guarded(command.process_group(0), None)?;
        Ok((Self(Pid::from_child(&process)), process))
    }

    /// Its number, which is the command's pid.
    #[must_use]
    pub fn id(self) -> Pid {
        self.0
    }

    /// Sends a signal to all of it.
    pub fn signal(self, signal: Signal) {
        // That nobody is there any more is no error.
        let _ = kill_process_group(self.0, signal);
    }

    /// Waits for the command in a thread of its own, kills who is left of the group, and tells.
    pub fn tell_of_the_end(
        self,
        process: Child,
        tell: impl FnOnce(std::io::Result<ExitStatus>) + Send + 'static,
    ) {
        self.bury_and_tell(process, || (), tell);
    }

    /// The same, and does what is to be done `before_burial`, while the dead have their pids and their group
    /// still.
    pub fn bury_and_tell(
        self,
        mut process: Child,
        before_burial: impl FnOnce() + Send + 'static,
        tell: impl FnOnce(std::io::Result<ExitStatus>) + Send + 'static,
    ) {
        thread::spawn(move || {
            // Dead, and not yet waited for: the pid is its own still. What fails here, the wait tells.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(self.0), options), Err(Errno::INTR)) {}
            self.signal(Signal::KILL);
            before_burial();
            tell(process.wait());
        });
    }
}

/// Listens to the parent in a thread of its own: each byte of the standard input is a signal's number,
/// its end (`None`) the parent's.
pub fn listen_to_the_parent(tell: impl Fn(Option<i32>) + Send + 'static) {
    thread::spawn(move || {
        for byte in std::io::stdin().lock().bytes() {
            let Ok(signal) = byte else { break };
            tell(Some(i32::from(signal)));
        }
        tell(None);
    });
}

/// The code of a process that a signal ended, as shells have it.
#[must_use]
pub fn code_of_signal(signal: i32) -> u8 {
    128_u8.wrapping_add(signal as u8)
}

/// The code of a process that has ended.
#[must_use]
pub fn code_of(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => code_of_signal(signal.unwrap_or(0)),
    }
}

/// The code of a program that could not be started, as shells have it.
#[must_use]
pub fn code_of_start(error: &std::io::Error) -> u8 {
    if error.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    }
}
