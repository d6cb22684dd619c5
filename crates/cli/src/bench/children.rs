//! The children of a measurement, from the parent's side.
//!
//! Contract: a child that was started is ready; it is killed and reaped when dropped, and dies with the
//! calling thread whatever happens.

use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::guard::spawn_guarded;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::args::RoleArguments;
use super::error::BenchError;

/// A worker process that is registered, has marked its units, and beats.
#[derive(Debug)]
pub struct BenchWorker {
    process: Child,
    slot: u32,
    generation: u32,
}

impl BenchWorker {
    /// Starts this program in the worker's role, and waits until it is ready.
    ///
    /// # Errors
    /// [`BenchError::Guard`], [`BenchError::ChildEnded`], [`BenchError::ChildSaid`].
    pub fn start(arguments: &RoleArguments) -> Result<Self, BenchError> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("bumpless").args(["bench", "role", "--table"]);
        command.arg(&arguments.table);
        command.args(["--grace", &arguments.grace.to_string()]);
        command.args(["--period-ns", &arguments.period_ns.to_string()]);
        command.args(["--rss", &arguments.rss.to_string()]);
        if !arguments.units.is_empty() {
            let units: Vec<String> = arguments.units.iter().map(u32::to_string).collect();
            command.args(["--units", &units.join(",")]);
        }
        if arguments.beats_only {
            command.arg("--beats-only");
        }
        Self::start_by(command)
    }

    /// As [`start`](Self::start), by a command that says `ready` as a worker does.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_by(mut command: Command) -> Result<Self, BenchError> {
        // A terminal's signals are for the parent, which ends its children itself.
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.process_group(0);
        let mut worker = Self {
            process: spawn_guarded(&mut command, None)?,
            slot: 0,
            generation: 0,
        };
        worker.await_ready()?;
        Ok(worker)
    }

    fn await_ready(&mut self) -> Result<(), BenchError> {
        let mut line = String::new();
        if let Some(pipe) = self.process.stdout.take() {
            let read = BufReader::new(pipe).read_line(&mut line);
            read.map_err(BenchError::file("read", Path::new("a child's pipe")))?;
        }
        if line.is_empty() {
            let status = self.process.wait();
            let status = status.map_err(BenchError::file("wait for", Path::new("a child")))?;
            return Err(BenchError::ChildEnded { status });
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers = match words[..] {
            ["ready", slot, generation] => slot.parse().ok().zip(generation.parse().ok()),
            _ => None,
        };
        let Some((slot, generation)) = numbers else {
            return Err(BenchError::ChildSaid { found: line });
        };
        (self.slot, self.generation) = (slot, generation);
        Ok(())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Its slot in the table.
    pub fn slot(&self) -> u32 {
        self.slot
    }

    /// Which owner of the slot it is.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// A descriptor of the process, readable when it has ended.
    ///
    /// # Errors
    /// [`BenchError::System`].
    pub fn pidfd(&self) -> Result<OwnedFd, BenchError> {
        pidfd_open(Pid::from_child(&self.process), PidfdFlags::empty())
            .map_err(BenchError::system("open a descriptor of the worker"))
    }

    /// SIGKILL; the moment right before it, in nanoseconds of the monotonic clock.
    ///
    /// # Errors
    /// [`BenchError::System`].
    pub fn kill(&self) -> Result<u64, BenchError> {
        let pid = Pid::from_child(&self.process);
        let killed_ns = monotonic_ns();
        kill_process(pid, Signal::KILL).map_err(BenchError::system("kill the worker"))?;
        Ok(killed_ns)
    }

    /// After [`kill`](Self::kill): waits for the end, which must not have come otherwise.
    ///
    /// # Errors
    /// [`BenchError::EndedByItself`], [`BenchError::File`].
    pub fn require_killed(&mut self) -> Result<(), BenchError> {
        let status = self.process.wait();
        let status = status.map_err(BenchError::file("wait for", Path::new("a child")))?;
        if status.signal() != Some(Signal::KILL.as_raw()) {
            return Err(BenchError::EndedByItself { status });
        }
        Ok(())
    }
}

impl Drop for BenchWorker {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for, ended or not.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
