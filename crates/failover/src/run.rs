//! The ready-made loop: scans at a period, reacts to deaths at once, sleeps in between.
//!
//! Contract: between ticks the thread sleeps in the kernel on the certificates of the registered
//! owners, on the table's doorbell and on the stop word; a death wakes it, is judged without a tick (so
//! no grace gets shorter), and is reported. It never ticks in bursts: a late tick is not made up for.
//! After a pause of its own it takes nobody's silence for death; each silence is forgiven once, so that a hang is
//! found also where the machine wakes it late each time.
//!
//! ```text
//!          ┌────────────────────────── sleep ◀──────────────────────────┐
//!          │ due                        │ death, registration            │
//!          ▼                            ▼                                │
//!   tick, judge all            judge who is marked ──▶ report, if any ───┘
//!   (after a pause: forgive silence)                                  stop ──▶ return
//! ```

use core::time::Duration;

use bumpless_heartbeat::slot::Slot;
use bumpless_heartbeat::{Certificate, DOORBELL_WAITED_ON};
use bumpless_substrate::claim::Claim;
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::futex::{LOOK_INTERVAL, WAIT_ANY_MAX, Woken, wait_any, wake};
use bumpless_substrate::sync::{AtomicU32, Ordering};

use crate::judge::Mode;
use crate::report::{ReclaimReport, Standing};
use crate::watchdog::FailoverWatchdog;

/// Doorbell and stop word take two of the words that one thread can sleep on. In a table with more
/// registered owners the sleep is cut to [`LOOK_INTERVAL`], and certificates are looked at without a tick
/// in between.
const OWNERS_WAITED_ON_MAX: usize = WAIT_ANY_MAX - 2;

/// Asks a running loop to return. Share it by reference or `Arc`.
#[derive(Debug, Default)]
pub struct Stop(AtomicU32);

impl Stop {
    /// A stop that nobody asked for yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Asks; the loop returns at once if it sleeps, else after the scan that it is in.
    pub fn request(&self) {
        // Relaxed: a flag on its own; the wake below is a system call.
        self.0.store(1, Ordering::Relaxed);
        wake(&self.0, u32::MAX);
    }

    /// Whether somebody asked.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        // Relaxed: a flag on its own.
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl FailoverWatchdog<'_> {
    /// Scans every `period` and whenever an owner dies, until `stop` is requested. Each report that
    /// holds something to acknowledge, or a suspect, is given to `on_report`, which acknowledges by
    /// [`clear_dead_bitmap`](Self::clear_dead_bitmap); what it does not acknowledge comes again with
    /// the next tick.
    ///
    /// A standby runs the same loop: it takes over when the primary watchdog is gone (at once) or hangs
    /// (within four of its periods).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("workers.tbl");
    /// use bumpless_failover::{FailoverWatchdog, Stop};
    /// use bumpless_heartbeat::HeartbeatTable;
    /// use std::time::Duration;
    ///
    /// let table = HeartbeatTable::create(&path, 64)?;
    /// let late = table.register(std::process::id())?;
    /// table.mark_in_flight(late, 7_u8)?; // and then not one beat
    ///
    /// let (watchdog, stop) = (FailoverWatchdog::with_grace(&table, 3), Stop::new());
    /// watchdog.run(Duration::from_millis(20), &stop, |report| {
    ///     for (slot, snapshot) in &report.dead_slots {
    ///         assert_eq!(snapshot.in_flight_bitmap.len(), 1);
    ///         watchdog.clear_dead_bitmap(*slot).unwrap();
    ///         stop.request();
    ///     }
    /// });
    /// # Ok(()) }
    /// ```
    pub fn run(&self, period: Duration, stop: &Stop, mut on_report: impl FnMut(&ReclaimReport)) {
        self.run_each_scan(period, stop, |report| {
            if !report.dead_slots.is_empty() || !report.suspects.is_empty() {
                on_report(report);
            }
        });
    }

    /// As [`run`](Self::run), but `on_scan` is given the report of every scan, also one that holds
    /// nothing: for who counts scans, or wants to see the standing change.
    pub fn run_each_scan(
        &self,
        period: Duration,
        stop: &Stop,
        mut on_scan: impl FnMut(&ReclaimReport),
    ) {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        let mut report = ReclaimReport::default();
        let mut due_ns = monotonic_ns();
        let mut ticked_ns = None;
        while !stop.is_requested() {
            let now_ns = monotonic_ns();
            let mode = if now_ns < due_ns {
                Mode::DeathsOnly
            } else {
                let gap_ns = ticked_ns.map_or(0, |ticked_ns| now_ns - ticked_ns);
                ticked_ns = Some(now_ns);
                due_ns = next_due(due_ns, now_ns, period_ns);
                if gap_ns > 2 * period_ns {
                    Mode::TickAfterPause
                } else {
                    Mode::Tick
                }
            };
            let was_primary = report.standing == Standing::Primary;
            self.scan_as(mode, period_ns, &mut report);
            on_scan(&report);
            if report.standing == Standing::Primary && !was_primary && mode == Mode::DeathsOnly {
                // It has just taken over: its first full scan is due.
                due_ns = now_ns;
                continue;
            }
            let left_ns = due_ns.saturating_sub(monotonic_ns());
            let is_primary = report.standing == Standing::Primary;
            self.wait(Duration::from_nanos(left_ns), is_primary, Some(stop));
        }
    }

    /// Sleeps until an owner dies, somebody registers, or `timeout` is over: for loops of one's own.
    /// May also return for no reason, and does not notice a registration in a table that was opened to
    /// look only. Cost: one system call, and two loads per registered owner.
    pub fn wait_for_change(&self, timeout: Duration) {
        self.wait(timeout, false, None);
    }

    fn wait(&self, mut timeout: Duration, is_primary: bool, stop: Option<&Stop>) {
        let doorbell = &self.table.header().doorbell;
        // Relaxed, both: the kernel compares the value again before it sleeps. Who may only look can ask
        // nobody to ring, and learns of new owners when its time is over.
        let rung = if self.table.is_read_only() {
            doorbell.load(Ordering::Relaxed)
        } else {
            doorbell.fetch_or(DOORBELL_WAITED_ON, Ordering::Relaxed) | DOORBELL_WAITED_ON
        };
        let mut words = Vec::with_capacity(WAIT_ANY_MAX);
        words.push((doorbell, rung));
        words.extend(stop.map(|stop| (&stop.0, 0)));
        let mut owners = 0;
        // The kernel wakes one sleeper of a word. A thread that slept on its own process's would take
        // that wake into death with it.
        let own = self.table.held_slots();
        for slot in self.table.occupancy().iter() {
            if own.binary_search(&slot).is_ok() {
                continue;
            }
            let Some(cells) = self.table.cells(slot as usize) else {
                continue;
            };
            let claim = cells.slot.peek_claim();
            let keeper = cells.slot.keeper_word();
            // Relaxed: as for the doorbell.
            let expected = keeper.load(Ordering::Relaxed);
            match Certificate::of(expected) {
                Certificate::Armed if claim.is_live() => {}
                // It died between the scan and here.
                Certificate::Died if claim.is_live() && !is_fenced(cells.slot, claim) => {
                    if is_primary {
                        return;
                    }
                    timeout = timeout.min(LOOK_INTERVAL);
                    continue;
                }
                _ => continue,
            }
            owners += 1;
            if owners <= OWNERS_WAITED_ON_MAX {
                words.push((keeper, expected));
            }
        }
        if owners > OWNERS_WAITED_ON_MAX {
            timeout = timeout.min(LOOK_INTERVAL);
        }
        if matches!(wait_any(&words, timeout), Woken::Woken | Woken::Changed) {
            wake_the_others(&words);
        }
    }
}

fn is_fenced(slot: &Slot, claim: Claim) -> bool {
    slot.peek_decision(claim.generation())
        .is_some_and(|work| work.is_fenced())
}

/// The kernel wakes one sleeper of a word that it marks: each wakes the others.
fn wake_the_others(words: &[(&AtomicU32, u32)]) {
    for (word, expected) in words {
        // Relaxed: a filter; a wake too many is harmless.
        if Certificate::of(word.load(Ordering::Relaxed)) == Certificate::Died
            && Certificate::of(*expected) == Certificate::Armed
        {
            wake(word, u32::MAX);
        }
    }
}

/// A late tick is not made up for: at least half a period lies between two.
fn next_due(due_ns: u64, now_ns: u64, period_ns: u64) -> u64 {
    (due_ns.saturating_add(period_ns)).max(now_ns.saturating_add(period_ns / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_keep_their_pace_and_a_pause_is_not_made_up_for() {
        assert_eq!(next_due(100, 101, 10), 110);
        assert_eq!(next_due(100, 109, 10), 114);
        assert_eq!(next_due(100, 5_000, 10), 5_005);
    }
}
