//! How a pool ends: when all is done, or when it cannot go on.
//!
//! Contract: afterwards no worker and no command of one is left, but for processes that the kernel
//! cannot end, which are not waited for without a limit.

use std::time::Duration;

use bumpless_substrate::clock::monotonic_ns;
use rustix::process::Signal;

use super::children::{reap, signal};
use super::error::PoolError;
use super::parent::Pool;
use super::tenant::Killed;

/// How long workers may take to end when there is no more work; then they are killed.
const CLOSING_NS: u64 = 1_000_000_000;

/// How long killed processes may take to end.
const DYING_NS: u64 = 10_000_000_000;

impl Pool<'_> {
    /// Lets the workers end, and those that chaos has stopped come back first.
    ///
    /// # Errors
    /// [`PoolError`]; children may be running.
    pub fn close(&mut self) -> Result<(), PoolError> {
        self.is_closing = true;
        for (index, tenant) in self.tenants.iter().enumerate() {
            if let (Some(_), Some(lane)) = (tenant, self.lanes.lane(index)) {
                lane.close();
            }
        }
        let mut since_ns = monotonic_ns();
        let mut is_killing = false;
        while self.tenants.iter().any(Option::is_some) {
            let now_ns = monotonic_ns();
            if self
                .tenants
                .iter()
                .flatten()
                .any(|tenant| tenant.stop.is_some())
            {
                since_ns = now_ns;
            }
            if self.signals.asked() || now_ns - since_ns > CLOSING_NS + DYING_NS {
                return Ok(());
            }
            if now_ns - since_ns > CLOSING_NS && !is_killing {
                is_killing = true;
                self.kill_all();
            }
            let seen = self.lanes.parent_bell().seen();
            self.tick_or_sleep(seen)?;
        }
        Ok(())
    }

    /// Kills every worker that is not reaped.
    pub(super) fn kill_all(&mut self) {
        for tenant in self
            .tenants
            .iter_mut()
            .flatten()
            .filter(|tenant| tenant.ended.is_none())
        {
            signal(tenant.pid, Signal::KILL);
            tenant.killed = Some(Killed::End);
        }
    }

    /// Kills every child and waits for its end, without the table: for a pool that cannot go on.
    pub fn end(&mut self) {
        self.kill_all();
        let deadline_ns = monotonic_ns() + DYING_NS;
        while self.tenants.iter().any(Option::is_some) && monotonic_ns() < deadline_ns {
            // What cannot be waited for is not there.
            while let Ok(Some((pid, status))) = reap() {
                let mut tenants = self.tenants.iter_mut().flatten();
                if let Some(tenant) = tenants.find(|tenant| tenant.pid == pid && !status.stopped())
                {
                    tenant.ended = Some(status);
                }
            }
            for lane in 0..self.tenants.len() {
                let ended = self.tenants[lane]
                    .as_ref()
                    .is_some_and(|t| t.ended.is_some());
                if self.clear_command(lane)
                    && ended
                    && let Some(tenant) = self.tenants[lane].take()
                {
                    self.discard_attempts(&tenant);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
