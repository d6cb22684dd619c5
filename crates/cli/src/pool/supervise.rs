//! What happens to workers that lose their slot, die, hang or do not start.
//!
//! ```text
//!   reported ─▶ settled: committed results accepted; untouched files wait again
//!                 │ silent, hashing: units in flight wait again, report acknowledged
//!                 ▼
//!   reaped ───▶ its command's group is empty ─▶ who is to blame ─▶ units in flight wait again, report
//!               acknowledged (if not yet) ─▶ refused results counted ─▶ the lane is free
//! ```
//! Contract: a unit waits again before its report is acknowledged, so none is lost in between; a
//! command is gone, with its whole process group, before its file waits again; a lane is cleared only
//! when its process was reaped.

use bumpless_failover::{AcknowledgeError, SlotRef, Verdict};
use bumpless_heartbeat::UnitSet;
use bumpless_substrate::claim::ClaimState;
use rustix::process::Signal;

use super::args::WorkerArguments;
use super::children::{clear_group, discard, ended, pid, reap, signal, spawn_worker};
use super::entry::EntryState;
use super::error::PoolError;
use super::exec::attempt_dir;
use super::lane::Owner;
use super::parent::Pool;
use super::tenant::{Killed, Settled, Tenant, split};

/// So many workers in a row may end before they have registered.
const STILLBORN_MAX: u32 = 5;

/// How many graces a fenced worker with a command gets to come back before it is killed.
const COMMAND_PATIENCE_GRACES: u64 = 5;

impl Pool<'_> {
    /// Learns who the workers are.
    pub(super) fn read_owners(&mut self) {
        for (index, tenant) in self.tenants.iter_mut().enumerate() {
            let Some(tenant) = tenant.as_mut().filter(|tenant| tenant.owner.is_none()) else {
                continue;
            };
            tenant.owner = self.lanes.lane(index).and_then(|lane| lane.owner());
            if let Some(owner) = tenant.owner {
                self.stillborn = 0;
                let pid = tenant.pid.as_raw_nonzero().get().unsigned_abs();
                self.journal.registered(self.table, owner, pid);
            }
        }
    }

    /// Acts on one reported slot.
    pub(super) fn settle_reported(&mut self, slot: SlotRef, now_ns: u64) -> Result<(), PoolError> {
        let owner = Owner {
            slot: slot.slot,
            generation: slot.generation,
        };
        let lane = self.tenants.iter().position(|tenant| {
            tenant
                .as_ref()
                .is_some_and(|tenant| tenant.owner == Some(owner))
        });
        let Some(lane) = lane else {
            if !slot.units.is_empty() {
                let count = slot.units.len();
                self.progress
                    .say(&format!("{slot}: {count} units of an earlier run dropped"));
            }
            return self.acknowledge(slot);
        };
        let is_news = self.tenants[lane]
            .as_ref()
            .is_some_and(|tenant| tenant.settled.is_none());
        self.settle(lane, Some(slot), now_ns);
        let is_silent = matches!(slot.verdict, Verdict::Silent { .. });
        let Some(tenant) = &self.tenants[lane] else {
            return Ok(());
        };
        let is_over = tenant
            .settled
            .as_ref()
            .is_some_and(|settled| settled.given_back);
        if is_over {
            return self.acknowledge(slot);
        }
        if is_silent && is_news && tenant.stop.is_none() {
            self.progress.say(&format!("{slot}: replaced"));
        }
        if is_silent && self.settings.output_dir.is_none() {
            return self.hand_back(lane);
        }
        Ok(())
    }

    /// Splits what a worker held, once; later reports of it only say more about its end.
    fn settle(&mut self, lane: usize, report: Option<SlotRef>, now_ns: u64) {
        let Some(tenant) = &mut self.tenants[lane] else {
            return;
        };
        if let Some(settled) = &mut tenant.settled {
            settled.report = report.or(settled.report);
            return;
        }
        let assigned = tenant.take_over(|_| true);
        let in_flight = report.map_or(UnitSet::EMPTY, |slot| slot.units);
        let split = split(assigned, self.lanes.entries(lane), in_flight);
        tenant.settled = Some(Settled {
            report,
            handed_back: split.handed_back,
            at_work_on: split.at_work_on,
            given_back: false,
            since_ns: now_ns,
        });
        for assignment in split.committed {
            self.accept(lane, assignment);
        }
        self.give_back(&split.untouched);
    }

    /// The units in flight wait again, then the report is acknowledged.
    fn hand_back(&mut self, lane: usize) -> Result<(), PoolError> {
        let Some(settled) = self.tenants[lane]
            .as_mut()
            .and_then(|tenant| tenant.settled.as_mut())
        else {
            return Ok(());
        };
        if std::mem::replace(&mut settled.given_back, true) {
            return Ok(());
        }
        let (units, report) = (settled.handed_back.clone(), settled.report);
        self.counts.reassigned += units.len() as u64;
        self.give_back(&units);
        report.map_or(Ok(()), |slot| self.acknowledge(slot))
    }

    fn acknowledge(&self, slot: SlotRef) -> Result<(), PoolError> {
        match self.watchdog.clear_dead_bitmap(slot) {
            Ok(acknowledged) => {
                self.journal.acknowledged(&slot, acknowledged.units);
                Ok(())
            }
            Err(AcknowledgeError::AlreadyAcknowledged { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes note of children that ended or stopped.
    pub(super) fn reap(&mut self, now_ns: u64, epoch: u64) -> Result<(), PoolError> {
        while let Some((pid, status)) = reap()? {
            let mut tenants = self.tenants.iter_mut().flatten();
            // Others are commands of dead workers, adopted.
            let Some(tenant) = tenants.find(|tenant| tenant.pid == pid && tenant.ended.is_none())
            else {
                continue;
            };
            if status.stopped() {
                self.stopped(pid, now_ns, epoch);
            } else {
                tenant.ended = Some(status);
            }
        }
        Ok(())
    }

    /// Kills workers without progress, and fenced ones that do not come back.
    pub(super) fn kill_the_hung(&mut self, now_ns: u64) {
        let patience_ns = if self.settings.output_dir.is_some() {
            let epochs = COMMAND_PATIENCE_GRACES * self.settings.grace_epochs;
            epochs * self.settings.worker.period_ns
        } else {
            self.settings.unit_timeout_ns
        };
        for (index, tenant) in self.tenants.iter_mut().enumerate() {
            let Some(tenant) = tenant.as_mut().filter(|tenant| tenant.stop.is_none()) else {
                continue;
            };
            let steps = self.lanes.lane(index).map_or(0, |lane| lane.steps());
            if steps != tenant.steps || tenant.assigned.is_empty() {
                (tenant.steps, tenant.stepped_ns) = (steps, now_ns);
            }
            let hangs = match &tenant.settled {
                Some(settled) => now_ns - settled.since_ns > patience_ns,
                None => now_ns - tenant.stepped_ns > self.settings.unit_timeout_ns,
            };
            if hangs && tenant.ended.is_none() && tenant.killed.is_none() {
                signal(tenant.pid, Signal::KILL);
                tenant.killed = Some(Killed::Hung);
            }
        }
    }

    /// Frees the lanes of workers that are gone.
    pub(super) fn retire_ended(&mut self, now_ns: u64) -> Result<(), PoolError> {
        for lane in 0..self.tenants.len() {
            let Some(tenant) = &self.tenants[lane] else {
                continue;
            };
            let (ended, is_settled) = (tenant.ended.is_some(), tenant.settled.is_some());
            let comes_to_rest = is_settled || ended && self.leaves_nothing(tenant);
            if !comes_to_rest {
                continue;
            }
            // The command of a fenced worker is ended at once.
            let is_clear = self.clear_command(lane);
            if !ended {
                continue;
            }
            if !is_settled {
                self.settle(lane, None, now_ns);
            }
            if is_clear {
                self.retire(lane)?;
            }
        }
        Ok(())
    }

    /// Whether no report will come of a reaped worker: it never registered, or gave its slot back with
    /// nothing in flight.
    fn leaves_nothing(&self, tenant: &Tenant) -> bool {
        let Some(owner) = tenant.owner else {
            return true;
        };
        let Some(cells) = self.table.cells(owner.slot as usize) else {
            return true;
        };
        let claim = cells.slot.claimed_by();
        claim.generation() != owner.generation
            || (claim.state() == Some(ClaimState::Released)
                && cells.slot.units(owner.generation).is_empty())
    }

    /// Ends a lane's command; whether there is none.
    pub(super) fn clear_command(&self, lane: usize) -> bool {
        let group = self.lanes.lane(lane).and_then(|lane| pid(lane.exec_pid()));
        self.settings.output_dir.is_none() || group.is_none_or(clear_group)
    }

    fn retire(&mut self, lane: usize) -> Result<(), PoolError> {
        self.blame(lane);
        self.hand_back(lane)?;
        let Some(tenant) = self.tenants[lane].take() else {
            return Ok(());
        };
        let came_to_its_end = tenant.ended.is_some_and(|end| end.exit_status() == Some(0));
        if let (Some(owner), true) = (tenant.owner, came_to_its_end) {
            let pid = tenant.pid.as_raw_nonzero().get().unsigned_abs();
            self.journal.unregistered(owner, pid);
        }
        let entries = self.lanes.entries(lane);
        for unit in tenant
            .settled
            .iter()
            .flat_map(|settled| &settled.handed_back)
        {
            if entries[unit.entry].state(unit.ticket) == EntryState::Published {
                self.counts.refused += 1;
            }
        }
        self.discard_attempts(&tenant);
        self.lanes.clear(lane);
        let last = tenant.ended.map_or(String::new(), ended);
        if tenant.owner.is_none() && tenant.killed.is_none() {
            self.stillborn += 1;
            if self.stillborn >= STILLBORN_MAX {
                return Err(PoolError::WorkersDoNotStart {
                    tries: self.stillborn,
                    last,
                });
            }
        }
        Ok(())
    }

    /// Deletes what the commands of a worker that is gone have written and what does not count.
    pub(super) fn discard_attempts(&self, tenant: &Tenant) {
        let Some(output_dir) = &self.settings.output_dir else {
            return;
        };
        let handed_back = tenant
            .settled
            .iter()
            .flat_map(|settled| &settled.handed_back);
        for unit in handed_back.chain(&tenant.assigned) {
            discard(&attempt_dir(output_dir, unit.ticket));
        }
    }

    /// Whose fault a worker's end was: the file's it was at, unless the pool itself brought it about,
    /// or the worker was merely late and came back.
    fn blame(&mut self, lane: usize) {
        let Some(tenant) = &self.tenants[lane] else {
            return;
        };
        let ours = matches!(tenant.killed, Some(Killed::Chaos | Killed::End)) || tenant.was_stopped;
        let came_back = tenant
            .ended
            .is_some_and(|status| status.exit_status() == Some(0));
        if ours || came_back {
            return;
        }
        let how = match (tenant.killed, tenant.ended) {
            (Some(Killed::Hung), _) => "hung, and was killed".to_owned(),
            (_, status) => status.map_or(String::new(), ended),
        };
        let file = tenant
            .settled
            .as_ref()
            .and_then(|settled| settled.at_work_on);
        let at = file.map_or("with no file".to_owned(), |file| {
            format!(
                "at {}",
                super::walk::shown(self.ledger.path(file).as_os_str())
            )
        });
        self.progress.say(&format!(
            "worker pid {}: {how}, {at}",
            tenant.pid.as_raw_nonzero()
        ));
        if let Some(file) = file {
            self.attempts.blame(file);
        }
    }

    /// Spawns workers until there are as many as wanted.
    pub(super) fn replace(&mut self, now_ns: u64) -> Result<(), PoolError> {
        let unfinished = self.ledger.files() - self.ledger.accepted() - self.ledger.failed();
        let wanted = match self.found {
            Some(_) => self.settings.workers,
            None => self
                .settings
                .workers
                .min(usize::try_from(unfinished).unwrap_or(usize::MAX)),
        };
        let mut serving = self
            .tenants
            .iter()
            .flatten()
            .filter(|t| t.is_serving())
            .count();
        while serving < wanted {
            let Some(lane) = self.tenants.iter().position(Option::is_none) else {
                self.make_room();
                return Ok(());
            };
            let arguments = WorkerArguments {
                lane: lane as u32,
                ..self.settings.worker.clone()
            };
            self.tenants[lane] = Some(Tenant::new(spawn_worker(&arguments)?, now_ns));
            serving += 1;
        }
        Ok(())
    }

    /// Every lane is taken: the longest fenced worker that nobody will continue does not come back.
    fn make_room(&mut self) {
        let fenced = self.tenants.iter_mut().flatten().filter(|tenant| {
            tenant.stop.is_none() && tenant.killed.is_none() && tenant.ended.is_none()
        });
        let since = |tenant: &&mut Tenant| tenant.settled.as_ref().map(|settled| settled.since_ns);
        let oldest = fenced
            .filter(|tenant| tenant.settled.is_some())
            .min_by_key(since);
        if let Some(tenant) = oldest {
            signal(tenant.pid, Signal::KILL);
            tenant.killed = Some(Killed::Hung);
        }
    }
}
