//! The parent: gives files out, collects results, scans the table, keeps the workers in number.
//!
//! ```text
//!   ┌▶ found? ─ collect ─ give ─ done? ─ time for a scan? ── no ─▶ sleep at the bell ─┐
//!   │                                         │ yes                                   │
//!   │     beat ─ scan ─ settle what is reported ─ reap ─ retire ─ chaos ─ replace     │
//!   └◀────────────────────────────────────────┴◀──────────────────────────────────────┘
//! ```
//! Contract: one thread does all of this; it never waits for a worker, and its table has no other
//! watchdog.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use bumpless_failover::lease::Lease;
use bumpless_failover::{FailoverWatchdog, ReclaimReport, Standing};
use bumpless_heartbeat::{HeartbeatTable, Worker};
use bumpless_substrate::clock::monotonic_ns;

use super::args::WorkerArguments;
use super::attempts::Attempts;
use super::chaos::{Schedule, Turn};
use super::error::PoolError;
use super::journal::Journal;
use super::lane::Lanes;
use super::ledger::Ledger;
use super::pace::Pace;
use super::progress::Progress;
use super::summary::Counts;
use super::tenant::Tenant;
use super::walk::{Found, shown};
use crate::signals::Signals;

/// The numbers of a pool.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Worker processes.
    pub workers: usize,
    /// Epochs that a worker may miss.
    pub grace_epochs: u64,
    /// How long a worker may be without progress.
    pub unit_timeout_ns: u64,
    /// What each worker is told, but for its lane.
    pub worker: WorkerArguments,
    /// Where commands' output goes; none: hash.
    pub output_dir: Option<PathBuf>,
}

/// A running pool.
#[derive(Debug)]
pub struct Pool<'t> {
    pub(super) settings: Settings,
    pub(super) table: &'t HeartbeatTable,
    /// The parent's own registration.
    pub(super) coordinator: &'t Worker<'t>,
    pub(super) watchdog: FailoverWatchdog<'t>,
    pub(super) lanes: Arc<Lanes>,
    /// By lane.
    pub(super) tenants: Vec<Option<Tenant>>,
    pub(super) ledger: Ledger,
    pub(super) attempts: Attempts,
    pub(super) counts: Counts,
    pub(super) journal: Journal,
    pub(super) progress: Progress,
    pub(super) signals: Signals,
    /// What the walk finds, in batches; none when it is over.
    pub(super) found: Option<Receiver<Vec<Found>>>,
    pub(super) kills: Option<Schedule>,
    pub(super) stops: Option<Schedule>,
    pub(super) turn: Turn,
    pub(super) pace: Pace,
    /// Workers in a row that ended before they had registered.
    pub(super) stillborn: u32,
    /// No more work comes.
    pub(super) is_closing: bool,
}

impl Pool<'_> {
    /// Until every file has ended.
    ///
    /// # Errors
    /// [`PoolError`]; children may be running.
    pub fn work(&mut self) -> Result<(), PoolError> {
        loop {
            if self.signals.asked() {
                return Err(PoolError::Interrupted);
            }
            let seen = self.lanes.parent_bell().seen();
            self.take_found();
            self.read_owners();
            self.collect();
            self.give();
            if self.found.is_none() && self.ledger.is_done() {
                return Ok(());
            }
            self.tick_or_sleep(seen)?;
        }
    }

    pub(super) fn tick_or_sleep(&mut self, seen: u32) -> Result<(), PoolError> {
        let now_ns = monotonic_ns();
        if self.pace.is_due(now_ns) {
            return self.tick(now_ns);
        }
        let left = Duration::from_nanos(self.pace.left_ns(now_ns));
        self.lanes.parent_bell().wait(seen, left);
        Ok(())
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), PoolError> {
        self.coordinator.beat()?;
        let report = self.watchdog.scan();
        self.check_standing(&report)?;
        let lease = Lease::load(&self.table.header().lease);
        self.journal.watches(lease.term());
        let epoch = report.new_global_epoch;
        self.read_owners();
        self.journal.reported(&report);
        for (slot, _) in report.dead_slots {
            self.settle_reported(slot, now_ns)?;
        }
        self.reap(now_ns, epoch)?;
        // Of those just reaped this is the last word: it decides whether a report will come.
        self.read_owners();
        self.go_on_after(epoch);
        self.kill_the_hung(now_ns);
        self.retire_ended(now_ns)?;
        if !self.is_closing {
            self.harm(now_ns);
            self.replace(now_ns)?;
        }
        self.show();
        Ok(())
    }

    fn check_standing(&self, report: &ReclaimReport) -> Result<(), PoolError> {
        let path = || self.table.path().to_owned();
        if let Some(state) = report.path_state {
            return Err(PoolError::TableMoved {
                path: path(),
                state,
            });
        }
        if report.standing == Standing::Standby {
            return Err(PoolError::NotPrimary { path: path() });
        }
        Ok(())
    }

    fn take_found(&mut self) {
        while let Some(walk) = &self.found {
            match walk.try_recv() {
                Ok(batch) => batch.into_iter().for_each(|found| self.add(found)),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.found = None,
            }
        }
    }

    fn add(&mut self, found: Found) {
        match found {
            Found::File(path) => self.ledger.add(path),
            Found::Failed(path, reason) => {
                self.progress
                    .say(&format!("{}: {reason}", shown(path.as_os_str())));
                self.ledger.add_failed(path);
            }
            Found::Skipped => self.counts.skipped += 1,
        }
    }

    fn show(&self) {
        let counts = &self.counts;
        self.progress.show(&self.ledger, || {
            format!(
                "{} reassigned, {} refused",
                counts.reassigned, counts.refused
            )
        });
    }
}
