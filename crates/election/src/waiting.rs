//! Sleeping until the leader is another one, or gone.
//!
//! Contract: the thread sleeps in the kernel on the seat's count of changes and on the leader's death
//! certificate. A hand-over, a stepping down and a death wake it at once. What makes no sound it finds
//! when it looks again, once in a watchdog's interval: that a watchdog fenced the leader, that a leader
//! without a certificate died or that one left without stepping down, and the change of a process that
//! was killed between its change and its wake.
//!
//! ```text
//!   ┌▶ count ─ look ──▶ another leader than seen, or time over ──▶ return
//!   │             │ else
//!   │     ask to be woken ─ sleep on (count, certificate) ─ wake the others, if it died
//!   └─────────────┴─────────────────────────┘
//! ```

use core::time::Duration;

use bumpless_heartbeat::Certificate;
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::futex::{wait_any, wake};
use bumpless_substrate::sync::{AtomicU32, Ordering};

use crate::election::{Result, SharedLeaderElection};
use crate::token::Leader;

/// The longest sleep between two looks, in nanoseconds; the shortest is a hundredth of it.
const LOOK_AGAIN_NS: u64 = 100_000_000;

impl SharedLeaderElection<'_> {
    /// Sleeps until another than `seen` leads, or nobody does any more, for at most `timeout`; who leads
    /// now. Also for a leader, which sees there that it is one no more. Cost: three system calls.
    ///
    /// # Errors
    /// [`ElectionError::Superseded`](crate::ElectionError::Superseded).
    pub fn wait_for_change(
        &self,
        seen: Option<Leader>,
        timeout: Duration,
    ) -> Result<Option<Leader>> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = monotonic_ns().saturating_add(timeout_ns);
        loop {
            let (changes, count) = self.line().changes();
            let reign = self.line().look();
            if reign.is_closed() {
                return Err(self.superseded());
            }
            let now = self.living_leader(reign);
            let left_ns = until_ns.saturating_sub(monotonic_ns());
            if now != seen || left_ns == 0 {
                return Ok(now);
            }
            // If it fails, the seat was changed: the next look shows how.
            if self.line().ask_to_be_woken(reign) {
                let sleep = Duration::from_nanos(left_ns.min(self.look_again_ns()));
                self.sleep(changes, count, now, sleep);
            }
        }
    }

    fn sleep(&self, changes: &AtomicU32, count: u32, leader: Option<Leader>, sleep: Duration) {
        let mut words = vec![(changes, count)];
        // The kernel wakes one sleeper of a word that it marks. A thread that slept on its own process's
        // would take that wake into death with it.
        let keeper = leader
            .filter(|leader| self.table.held_slots().binary_search(&leader.slot).is_err())
            .and_then(|leader| self.table.cells(leader.slot as usize))
            .map(|cells| cells.slot.keeper_word());
        // Relaxed, both: the kernel compares the value again before it sleeps; the next look decides.
        let certificate = |keeper: &AtomicU32| Certificate::of(keeper.load(Ordering::Relaxed));
        if let Some(keeper) = keeper {
            let expected = keeper.load(Ordering::Relaxed);
            if Certificate::of(expected) == Certificate::Armed {
                words.push((keeper, expected));
            }
        }
        wait_any(&words, sleep);
        if let Some(keeper) = keeper.filter(|keeper| certificate(keeper) == Certificate::Died) {
            wake(keeper, u32::MAX);
        }
    }

    /// How long what makes no sound may stay unseen: the interval of the table's watchdog, if it has one.
    fn look_again_ns(&self) -> u64 {
        // Relaxed: a number on its own.
        match self.table.header().period_ns.load(Ordering::Relaxed) {
            0 => LOOK_AGAIN_NS,
            period_ns => period_ns.clamp(LOOK_AGAIN_NS / 100, LOOK_AGAIN_NS),
        }
    }
}
