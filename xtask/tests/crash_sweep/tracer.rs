//! One victim process: brought to the start of its operation, stepped, killed, reaped.
//!
//! Contract: only the victim's main thread is traced; other threads of it run freely. A kill is a
//! SIGKILL to the process, and returns when all of its threads are gone. A victim that lives
//! too long is killed by a monitor, and the call that waited for it says so.
//!
//! ```text
//!   spawn ─ seize ─ "go" on its standard input ─ it prepares ─ SIGSTOP: the window opens
//!     step, step, ... ─ SIGSTOP: the window closes
//!     │
//!     └─ kill after step k
//! ```

use std::io::Write;
use std::mem::offset_of;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// The role under which this program runs as a victim.
pub const VICTIM: &str = "crash-victim";
/// The role under which it runs as somebody who dies beside the victim.
pub const BESIDE: &str = "crash-beside";

/// How long a victim may live.
const LIFE_LIMIT: Duration = Duration::from_secs(60);

/// In debug register 7: stop at the execution of the address in debug register 0.
const ENABLE_0: u64 = 1;

/// A victim that stands still.
#[derive(Debug)]
pub struct Victim {
    pid: Pid,
    /// Dropped when the victim is gone: then the monitor leaves its pid alone.
    alive: Sender<()>,
}

/// Where a step led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// One instruction further.
    Inside,
    /// To the end of the window.
    Closed,
}

/// What a victim is about to do.
#[derive(Debug, Clone, Copy)]
pub struct Instruction {
    /// Where it lies.
    pub address: u64,
    /// Whether it is a system call.
    pub is_system_call: bool,
    /// The address behind it, if it is a repeated string instruction, which traps at each repetition.
    behind_repetition: Option<u64>,
}

impl Victim {
    /// Starts a victim and brings it to the opening of its window.
    pub fn start(operation: &str, folder: &Path) -> Result<Self> {
        let mut child = role(VICTIM, operation, folder)?
            .stdin(Stdio::piped())
            .spawn()
            .context("start the victim")?;
        let pid = Pid::from_raw(child.id().try_into()?);
        ptrace::seize(pid, ptrace::Options::PTRACE_O_EXITKILL).context("seize the victim")?;
        let victim = Self {
            pid,
            alive: monitor(pid),
        };
        child
            .stdin
            .take()
            .context("the victim's standard input")?
            .write_all(b"!")?;
        match victim.wait()? {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => Ok(victim),
            other => bail!("the victim did not come to its window: {other:?}"),
        }
    }

    /// Lets it run one instruction; a repeated string instruction counts as one.
    pub fn step(&self) -> Result<Step> {
        let next = self.next()?;
        if let Some(behind) = next.behind_repetition {
            let is_there = self.run_to(behind)?;
            return Ok(if is_there { Step::Inside } else { Step::Closed });
        }
        ptrace::step(self.pid, None).context("step")?;
        match self.wait()? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => Ok(Step::Inside),
            WaitStatus::Stopped(_, Signal::SIGSTOP) => Ok(Step::Closed),
            other => bail!("the victim came to {other:?} by itself"),
        }
    }

    /// Its next instruction.
    pub fn next(&self) -> Result<Instruction> {
        let address = ptrace::getregs(self.pid)?.rip;
        let bytes = ptrace::read(self.pid, address as ptrace::AddressType)?.to_le_bytes();
        let repeated = match bytes {
            [0xf2 | 0xf3, 0x48, code, ..] => Some((3, code)),
            [0xf2 | 0xf3, code, ..] => Some((2, code)),
            _ => None,
        };
        let is_string = |code| matches!(code, 0xa4..=0xa7 | 0xaa..=0xaf);
        Ok(Instruction {
            address,
            is_system_call: bytes[..2] == [0x0f, 0x05],
            behind_repetition: repeated
                .filter(|(_, code)| is_string(*code))
                .map(|(len, _)| address + len),
        })
    }

    /// Lets it run at full speed to the instruction at `address`; false when it came to the close of
    /// its window instead.
    ///
    /// A debug register stops it there: unlike a changed instruction that is a matter of the traced
    /// thread alone, and no other thread of the victim runs into it.
    pub fn run_to(&self, address: u64) -> Result<bool> {
        self.set_debug_register(0, address)?;
        self.set_debug_register(7, ENABLE_0)?;
        ptrace::cont(self.pid, None).context("run to an address")?;
        let is_there = match self.wait()? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => true,
            WaitStatus::Stopped(_, Signal::SIGSTOP) => false,
            other => bail!("the victim came to {other:?} before {address:#x}"),
        };
        self.set_debug_register(7, 0)?;
        Ok(is_there)
    }

    fn set_debug_register(&self, number: usize, value: u64) -> Result<()> {
        let offset = offset_of!(nix::libc::user, u_debugreg) + number * size_of::<u64>();
        ptrace::write_user(self.pid, offset as ptrace::AddressType, value as i64)
            .with_context(|| format!("debug register {number}"))
    }

    /// Kills it and waits until all of it is gone.
    pub fn kill(self) -> Result<()> {
        drop(self.alive);
        kill(self.pid, Signal::SIGKILL).context("kill the victim")?;
        loop {
            if let WaitStatus::Signaled(..) | WaitStatus::Exited(..) =
                waitpid(self.pid, Some(WaitPidFlag::__WALL))?
            {
                return Ok(());
            }
        }
    }

    /// Lets it go on from a closed window to its end, which must be a success.
    pub fn finish(self) -> Result<()> {
        ptrace::cont(self.pid, None).context("let the victim go")?;
        match self.wait()? {
            WaitStatus::Exited(_, 0) => Ok(()),
            other => bail!("the victim's own end: {other:?}"),
        }
    }

    fn wait(&self) -> Result<WaitStatus> {
        waitpid(self.pid, Some(WaitPidFlag::__WALL)).context("wait for the victim")
    }
}

/// A process beside the victim, which has done its part and waits to be killed.
#[derive(Debug)]
pub struct Beside(Child);

impl Beside {
    /// Starts it, and returns when it has done its part.
    pub fn start(part: &str, folder: &Path) -> Result<Self> {
        let mut child = role(BESIDE, part, folder)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start a process beside the victim")?;
        let mut ready = [0];
        let read = std::io::Read::read(
            child.stdout.as_mut().context("its standard output")?,
            &mut ready,
        );
        let beside = Self(child);
        if read? == 0 {
            bail!("a process beside the victim did not do its part: {part}");
        }
        Ok(beside)
    }

    /// Kills it and waits until all of it is gone.
    pub fn kill(self) -> Result<()> {
        drop(self);
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It is there: nobody else waits for it.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn role(role: &str, part: &str, folder: &Path) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([role, part]).arg(folder);
    Ok(command)
}

/// Kills the victim unless the sender is dropped in time.
fn monitor(pid: Pid) -> Sender<()> {
    let (sender, dropped): (Sender<()>, Receiver<()>) = channel();
    std::thread::spawn(move || {
        if dropped.recv_timeout(LIFE_LIMIT) == Err(RecvTimeoutError::Timeout) {
            let _ = kill(pid, Signal::SIGKILL);
        }
    });
    sender
}
