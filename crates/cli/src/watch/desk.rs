//! Which verdicts are being worked on, and when the others may be tried again.
//!
//! Contract: pure, the time is an argument. At most one attempt at a time for one owner of a slot, and
//! no more than [`AT_ONCE_MAX`] in all. Nothing is queued: a report that finds no place comes again with
//! the next tick, and then says what is true by then.
//!
//! ```text
//!   ── begin ──▶ running ── acknowledged, or refused ──▶ (forgotten)
//!                 ▲   └──── failed ──▶ waiting ── begin, when it is time ──▶ running
//! ```

use std::collections::HashMap;
use std::time::Duration;

use crate::backoff::Backoff;

/// Attempts that run at the same time.
pub const AT_ONCE_MAX: usize = 8;

/// An owner of a slot: slot and generation.
pub type Owner = (u32, u32);

/// Work in progress, by owner. Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Default)]
pub struct Desk {
    owners: HashMap<Owner, Work>,
    /// When an attempt was finished last.
    finished_ns: u64,
}

#[derive(Debug, Default)]
struct Work {
    backoff: Backoff,
    /// None while it runs.
    not_before_ns: Option<u64>,
}

impl Desk {
    /// Begins an attempt at what a scan that began at `scanned_ns` found, if there is place and it is
    /// time; which attempt it is, from 1. A scan that began before the last attempt was finished may have
    /// found what is acknowledged by now.
    pub fn begin(&mut self, owner: Owner, scanned_ns: u64) -> Option<u32> {
        if self.running() >= AT_ONCE_MAX || scanned_ns <= self.finished_ns {
            return None;
        }
        match self.owners.get_mut(&owner) {
            None => {
                self.owners.insert(owner, Work::default());
                Some(1)
            }
            Some(work) if work.not_before_ns.is_some_and(|at| at <= scanned_ns) => {
                work.not_before_ns = None;
                Some(work.backoff.failures().saturating_add(1))
            }
            Some(_) => None,
        }
    }

    /// Ends an attempt that failed; how long until the next one.
    pub fn fail(&mut self, owner: Owner, now_ns: u64) -> Duration {
        let work = self.owners.entry(owner).or_default();
        let wait = work.backoff.after_failure(Duration::ZERO);
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        work.not_before_ns = Some(now_ns.saturating_add(wait_ns));
        wait
    }

    /// Ends an attempt after which there is nothing left to do here.
    pub fn finish(&mut self, owner: Owner, now_ns: u64) {
        self.owners.remove(&owner);
        self.finished_ns = now_ns;
    }

    /// Attempts that run.
    #[must_use]
    pub fn running(&self) -> usize {
        let works = self.owners.values();
        works.filter(|work| work.not_before_ns.is_none()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT_NS: u64 = 200_000_000;

    #[test]
    fn one_attempt_at_a_time_for_one_owner_and_later_each_time() {
        let owner = (3, 7);
        let mut desk = Desk::default();
        assert_eq!(desk.begin(owner, 1), Some(1));
        assert_eq!(desk.begin(owner, 2), None);
        assert_eq!(desk.begin((3, 8), 2), Some(1), "another owner");
        assert_eq!(desk.fail(owner, 10).as_nanos(), u128::from(WAIT_NS));
        assert_eq!(desk.begin(owner, 9 + WAIT_NS), None);
        assert_eq!(desk.begin(owner, 10 + WAIT_NS), Some(2));
        assert_eq!(desk.fail(owner, 0).as_nanos(), u128::from(2 * WAIT_NS));
        desk.finish(owner, 20);
        assert_eq!(desk.begin(owner, 21), Some(1), "forgotten");
    }

    #[test]
    fn what_was_found_before_an_attempt_was_finished_is_not_begun_again() {
        let mut desk = Desk::default();
        assert_eq!(desk.begin((3, 7), 10), Some(1));
        desk.finish((3, 7), 20);
        assert_eq!(desk.begin((3, 7), 20), None);
        assert_eq!(desk.begin((3, 7), 21), Some(1));
    }

    #[test]
    fn no_more_run_at_once_than_there_are_places() {
        let mut desk = Desk::default();
        for slot in 0..AT_ONCE_MAX as u32 {
            assert_eq!(desk.begin((slot, 1), 1), Some(1));
        }
        assert_eq!(desk.begin((99, 1), 1), None);
        desk.fail((0, 1), 1);
        assert_eq!(desk.running(), AT_ONCE_MAX - 1);
        assert_eq!(desk.begin((99, 1), 1), Some(1));
    }
}
