//! `bumpless run`, run as a user runs it. sd_notify, and Python, are for the scenarios.

mod ends;
mod hangs;
mod stops;
mod tables;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use bumpless_failover::{FailoverWatchdog, SlotRef, Verdict};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::proof::Proof;
use rustix::process::Signal;

use crate::rig::{await_that, send};

/// A grace that no test here waits for: whoever is told to be dead died.
const FOR_EVER: u64 = 60_000;

/// A second and more, at a scan each 10 ms.
const A_SECOND: u64 = 100;

/// A folder with a table.
struct Scene {
    folder: tempfile::TempDir,
    table: HeartbeatTable,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let table = HeartbeatTable::create(folder.path().join("table"), 8).expect("a table");
        Self { folder, table }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A script, run in the folder.
    fn command(&self, arguments: &[&str], script: &str) -> Command {
        let mut run = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        run.args(["run", "--table"]).arg(self.table.path());
        run.args(arguments).args(["--", "sh", "-c", script]);
        run.current_dir(self.folder.path());
        run.stdin(Stdio::null()).stdout(Stdio::piped());
        run
    }

    fn run(&self, arguments: &[&str], script: &str) -> Run {
        Run::of(self.command(arguments, script))
    }

    fn watchdog(&self, grace_epochs: u64) -> FailoverWatchdog<'_> {
        FailoverWatchdog::with_grace(&self.table, grace_epochs)
    }

    /// Two graces of scans, in which nobody is to be accused. Where the machine lets an owner wait, the scans
    /// wait for it: in the middle of its grace, until it has beaten again.
    #[track_caller]
    fn expect_no_verdict(&self, watchdog: &FailoverWatchdog<'_>) {
        for _ in 0..2 * A_SECOND {
            let report = watchdog.scan();
            assert!(report.is_empty(), "{report:?}");
            if report.largest_lag_epochs > A_SECOND / 2 {
                let epoch = report.new_global_epoch;
                await_that("each owner beats", || {
                    let mut live = self.table.iter_live();
                    live.all(|(_, seen)| seen.last_seen_epoch >= epoch)
                });
            }
            watchdog.wait_for_change(Duration::from_millis(10));
        }
    }

    /// Nobody is registered but the watchdogs of this process, and nothing waits for them.
    #[track_caller]
    fn assert_given_back(&self, watchdog: &FailoverWatchdog<'_>) {
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
        let own = std::process::id();
        assert!(self.table.iter_live().all(|(_, seen)| seen.pid == own));
    }
}

/// A `bumpless run`; killed when the test ends before it does.
struct Run {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Run {
    fn of(mut command: Command) -> Self {
        let mut process = command.spawn().expect("the program runs");
        let said = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, said }
    }

    /// What the command says next; empty at the end.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("the pipe");
        line.trim_end().to_owned()
    }

    fn numbers(&mut self) -> Vec<u32> {
        let line = self.line();
        let words = line.split_whitespace();
        words.map(|word| word.parse().expect("a pid")).collect()
    }

    fn send(&self, signal: Signal) {
        send(self.process.id(), signal);
    }

    fn code(&mut self) -> Option<i32> {
        self.process.wait().expect("a child of ours").code()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The first verdict; scans each 10 ms, and when somebody dies.
#[track_caller]
fn await_verdict(watchdog: &FailoverWatchdog<'_>) -> SlotRef {
    let start = Instant::now();
    loop {
        let report = watchdog.scan();
        if let Some((slot, _)) = report.dead_slots.first() {
            watchdog.clear_dead_bitmap(*slot).expect("acknowledged");
            return *slot;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no verdict");
        watchdog.wait_for_change(Duration::from_millis(10));
    }
}

#[track_caller]
fn assert_died(slot: SlotRef) {
    assert_eq!(
        (slot.verdict, slot.evidence.proof),
        (Verdict::Died, Proof::Gone)
    );
}

/// Says its pid, that of its parent, of a child, and of one that has left its group.
const FAMILY: &str = "sleep 1000 >&- 2>&- & child=$!
    left=$(setsid sh -c 'sleep 1000 >&- 2>&- & echo $!'); echo $$ $PPID $child $left; wait";
