//! A child of a measurement, from this side: alive until it is told to end.

use std::hint::spin_loop;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use bumpless_barrier::EpochBarrier;
use bumpless_heartbeat::{HeartbeatTable, Profile, Worker};
use bumpless_substrate::guard::spawn_guarded;

use super::ANSWER_LIMIT;

/// Looks between two looks at whether the other process is still there.
const LOOKS: u32 = 1 << 14;

/// A child; killed and reaped when dropped.
#[derive(Debug)]
pub struct Peer(Child);

impl Peer {
    /// This program again, in that role.
    pub fn start(role: &str, table: &Path, words: &[&str]) -> Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.args(["--role", role]).arg(table).args(words);
        // A terminal's signals are for the parent, which ends its children itself.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        Ok(Self(spawn_guarded(&mut command, None)?))
    }

    /// What it says, to the end.
    pub fn said(&mut self) -> Result<String> {
        let mut text = String::new();
        let pipe = self.0.stdout.as_mut().context("a pipe")?;
        pipe.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Its output, for what it says in between.
    pub fn output(&mut self) -> Result<std::process::ChildStdout> {
        self.0.stdout.take().context("a pipe")
    }

    /// An error if it has ended.
    pub fn require_alive(&mut self) -> Result<()> {
        match self.0.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("a child ended by itself: {status}"),
        }
    }

    /// Looks without a pause until `is_so`.
    pub fn await_until(&mut self, is_so: impl Fn() -> bool) -> Result<()> {
        let started = Instant::now();
        loop {
            for _ in 0..LOOKS {
                if is_so() {
                    return Ok(());
                }
                spin_loop();
            }
            self.require_alive()?;
            ensure!(started.elapsed() < ANSWER_LIMIT, "a child does not answer");
        }
    }

    /// After it was told to end: it must do so, without an error.
    pub fn require_end(mut self) -> Result<()> {
        let started = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait()? {
                ensure!(status.success(), "a child ended by itself: {status}");
                return Ok(());
            }
            ensure!(started.elapsed() < ANSWER_LIMIT, "a child does not end");
            std::thread::yield_now();
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for, ended or not.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Registers, and begins when so many have.
pub fn begin_together(table: &HeartbeatTable, processes: usize) -> Result<Worker<'_>> {
    let worker = Worker::register(table, Profile::default())?;
    let barrier = EpochBarrier::create(table, "start")?;
    let mut member = barrier.join(worker.handle())?;
    member
        .wait_quorum_timeout(processes, ANSWER_LIMIT)
        .context("not all processes came to the start")?;
    Ok(worker)
}
