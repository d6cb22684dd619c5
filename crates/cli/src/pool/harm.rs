//! Chaos: the pool kills and stops its own workers.
//!
//! Contract: a victim holds a unit in flight. A stop counts only when the process was seen to be
//! stopped with a unit in flight; it then goes on after one and a half graces, counted in epochs, when
//! it has been fenced for certain: so the result that it still publishes is refused.

use rustix::process::{Pid, Signal};

use super::children::signal;
use super::parent::Pool;
use super::tenant::{Killed, Stop, Tenant};

impl Pool<'_> {
    /// Does what is due.
    pub(super) fn harm(&mut self, now_ns: u64) {
        if self
            .kills
            .as_ref()
            .is_some_and(|kills| kills.is_due(now_ns))
            && let Some(tenant) = self.victim()
        {
            signal(tenant.pid, Signal::KILL);
            tenant.killed = Some(Killed::Chaos);
            self.counts.killed += 1;
            self.kills.iter_mut().for_each(|kills| kills.done(now_ns));
        }
        let asked = |tenant: &Tenant| tenant.stop == Some(Stop::Asked);
        let is_asked = self.tenants.iter().flatten().any(asked);
        if self
            .stops
            .as_ref()
            .is_some_and(|stops| stops.is_due(now_ns))
            && !is_asked
            && let Some(tenant) = self.victim()
        {
            signal(tenant.pid, Signal::STOP);
            tenant.stop = Some(Stop::Asked);
        }
    }

    /// A worker was seen to be stopped.
    pub(super) fn stopped(&mut self, pid: Pid, now_ns: u64, epoch: u64) {
        let is_it = |tenant: &Option<Tenant>| {
            tenant
                .as_ref()
                .is_some_and(|tenant| tenant.pid == pid && tenant.stop == Some(Stop::Asked))
        };
        let Some(lane) = self.tenants.iter().position(is_it) else {
            return;
        };
        let holds = self.holds_unit(lane);
        let Some(tenant) = &mut self.tenants[lane] else {
            return;
        };
        if holds && !self.is_closing {
            let grace_epochs = self.settings.grace_epochs;
            let until_epoch = epoch + grace_epochs + grace_epochs.div_ceil(2) + 1;
            tenant.stop = Some(Stop::Held { until_epoch });
            tenant.was_stopped = true;
            self.counts.stopped += 1;
            self.stops.iter_mut().for_each(|stops| stops.done(now_ns));
        } else {
            tenant.stop = None;
            signal(pid, Signal::CONT);
        }
    }

    /// Lets workers that chaos stopped go on, once they were fenced.
    pub(super) fn go_on_after(&mut self, epoch: u64) {
        let grace_epochs = self.settings.grace_epochs;
        for tenant in self.tenants.iter_mut().flatten() {
            let Some(Stop::Held { until_epoch }) = tenant.stop else {
                continue;
            };
            let is_fenced = tenant.settled.is_some();
            let is_overdue = epoch > until_epoch + 10 * grace_epochs;
            if epoch >= until_epoch && (is_fenced || is_overdue) {
                tenant.stop = None;
                if tenant.ended.is_none() {
                    signal(tenant.pid, Signal::CONT);
                }
            }
        }
    }

    fn victim(&mut self) -> Option<&mut Tenant> {
        let mut turn = std::mem::take(&mut self.turn);
        let chosen = turn.choose(self.tenants.len(), |lane| {
            let tenant = self.tenants[lane].as_ref();
            tenant.is_some_and(|tenant| tenant.is_serving() && tenant.stop.is_none())
                && self.holds_unit(lane)
        });
        self.turn = turn;
        self.tenants[chosen?].as_mut()
    }

    /// Whether a lane's worker has a unit in flight.
    fn holds_unit(&self, lane: usize) -> bool {
        let owner = self.tenants[lane].as_ref().and_then(|tenant| tenant.owner);
        owner.is_some_and(|owner| {
            self.table.snapshot(owner.slot).is_some_and(|snapshot| {
                snapshot.generation == owner.generation
                    && !snapshot.is_fenced
                    && !snapshot.in_flight_bitmap.is_empty()
            })
        })
    }
}
