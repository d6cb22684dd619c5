//! One worker process as the parent knows it, from spawn to retirement.
//!
//! ```text
//!   spawned ─ registered ─┬─ serving ──────────────────────────────┬─▶ ended ─▶ settled ─▶ retired
//!                         │     │ fence (report)                   │
//!                         │     └─▶ settled: committed accepted, ──┘   lane cleared, free
//!                         │         the rest handed back
//!                         └─ killed by the pool: chaos, hung, end
//! ```
//! Contract: what a worker held is split exactly once, by the units that its fence found in flight.

use bumpless_failover::SlotRef;
use bumpless_heartbeat::{Unit, UnitSet};
use rustix::process::{Pid, WaitStatus};

use super::entry::{Entry, EntryState};
use super::lane::{ENTRIES, Owner};

/// A file under a ticket, in an entry of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    /// The entry, and unit.
    pub entry: usize,
    /// The file.
    pub file: u32,
    /// The number of the offer.
    pub ticket: u64,
}

impl Assignment {
    /// Whether its unit is one of these.
    #[must_use]
    pub fn is_in(&self, units: UnitSet) -> bool {
        Unit::try_from(self.entry).is_ok_and(|unit| units.contains(unit))
    }
}

/// Why the pool killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Killed {
    /// To show that it does not matter.
    Chaos,
    /// It made no progress, or did not come back.
    Hung,
    /// The pool ends.
    End,
}

/// A stop by chaos.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The signal was sent.
    Asked,
    /// The process is stopped, with a unit in flight.
    Held {
        /// When it goes on, at the earliest.
        until_epoch: u64,
    },
}

/// What a worker had when it lost its slot, or ended.
#[derive(Debug)]
pub struct Settled {
    /// The report to acknowledge; none if there was nothing to report.
    pub report: Option<SlotRef>,
    /// What was in flight.
    pub handed_back: Vec<Assignment>,
    /// Which file the worker was at.
    pub at_work_on: Option<u32>,
    /// Whether `handed_back` is in the queue again, and the report acknowledged.
    pub given_back: bool,
    /// When.
    pub since_ns: u64,
}

/// A worker process.
#[derive(Debug)]
pub struct Tenant {
    /// Its pid, its own until `ended`.
    pub pid: Pid,
    /// Its registration.
    pub owner: Option<Owner>,
    /// What it was offered and has not returned.
    pub assigned: Vec<Assignment>,
    /// Entries that hold none of these, as bits.
    free: u32,
    /// Set once.
    pub settled: Option<Settled>,
    /// How it ended; reaped.
    pub ended: Option<WaitStatus>,
    /// Whether the pool killed it.
    pub killed: Option<Killed>,
    /// Whether chaos has stopped it.
    pub stop: Option<Stop>,
    /// Whether chaos ever had.
    pub was_stopped: bool,
    /// Its steps when they last changed.
    pub steps: u64,
    /// When that was.
    pub stepped_ns: u64,
}

impl Tenant {
    /// A process just spawned.
    #[must_use]
    pub fn new(pid: Pid, now_ns: u64) -> Self {
        Self {
            pid,
            owner: None,
            assigned: Vec::with_capacity(ENTRIES as usize),
            free: u32::MAX,
            settled: None,
            ended: None,
            killed: None,
            stop: None,
            was_stopped: false,
            steps: 0,
            stepped_ns: now_ns,
        }
    }

    /// Whether it may be given work.
    #[must_use]
    pub fn is_serving(&self) -> bool {
        self.settled.is_none() && self.ended.is_none() && self.killed.is_none()
    }

    /// An entry that is free.
    #[must_use]
    pub fn free_entry(&self) -> Option<usize> {
        (self.free != 0).then(|| self.free.trailing_zeros() as usize)
    }

    /// Takes note of an offer.
    pub fn assign(&mut self, assignment: Assignment) {
        self.free &= !(1 << assignment.entry);
        self.assigned.push(assignment);
    }

    /// Removes from the assigned ones those for which `is_over` holds.
    pub fn take_over(&mut self, mut is_over: impl FnMut(&Assignment) -> bool) -> Vec<Assignment> {
        let free = &mut self.free;
        self.assigned
            .extract_if(.., |assignment| is_over(assignment))
            .inspect(|assignment| *free |= 1 << assignment.entry)
            .collect()
    }
}

/// What becomes of what a worker held.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Published, and completed before the fence: to be accepted.
    pub committed: Vec<Assignment>,
    /// In flight at the fence: handed back, whatever the worker says afterwards.
    pub handed_back: Vec<Assignment>,
    /// Never marked, and it never will be.
    pub untouched: Vec<Assignment>,
    /// The file that was being worked on.
    pub at_work_on: Option<u32>,
}

/// Splits by the units that were in flight at the fence. A unit that was not is committed if it is
/// published: it was marked before it was taken, so it was completed before the fence.
#[must_use]
pub fn split(assigned: Vec<Assignment>, entries: &[Entry], in_flight: UnitSet) -> Split {
    let mut split = Split::default();
    for assignment in assigned {
        let state = entries
            .get(assignment.entry)
            .map_or(EntryState::Empty, |entry| entry.state(assignment.ticket));
        if assignment.is_in(in_flight) {
            if state == EntryState::Taken {
                split.at_work_on = Some(assignment.file);
            }
            split.handed_back.push(assignment);
        } else if state == EntryState::Published {
            split.committed.push(assignment);
        } else {
            split.untouched.push(assignment);
        }
    }
    split
}

#[cfg(test)]
mod tests {
    use bumpless_substrate::layout::Shared;

    use super::super::entry::Outcome;
    use super::*;

    fn assignment(entry: usize) -> Assignment {
        Assignment {
            entry,
            file: 10 + entry as u32,
            ticket: 100 + entry as u64,
        }
    }

    /// Entries 0 to 4: offered, offered, taken, published, published.
    fn lane() -> (Vec<Entry>, Vec<Assignment>) {
        let entries: Vec<Entry> = (0..5).map(|_| Entry::zeroed()).collect();
        let assigned: Vec<_> = (0..5).map(assignment).collect();
        for assignment in &assigned {
            let entry = &entries[assignment.entry];
            assert!(entry.offer(assignment.ticket, b"x"));
            assert!(assignment.entry < 2 || entry.take(assignment.ticket));
            if assignment.entry >= 3 {
                entry.publish(assignment.ticket, Outcome::Exited(0));
            }
        }
        (entries, assigned)
    }

    #[test]
    fn the_marks_at_the_fence_decide_and_what_was_published_later_does_not_count() {
        let (entries, assigned) = lane();
        // 1 was marked and not taken, 2 taken, 4 published and not completed.
        let in_flight = UnitSet::from_bits(0b10110);
        let split = split(assigned, &entries, in_flight);
        assert_eq!(split.committed, [assignment(3)]);
        assert_eq!(split.handed_back, [1, 2, 4].map(assignment));
        assert_eq!(split.untouched, [assignment(0)]);
        assert_eq!(split.at_work_on, Some(12));
    }

    #[test]
    fn a_result_under_an_old_ticket_is_not_committed() {
        let (entries, mut assigned) = lane();
        assigned[3].ticket += 1;
        let split = split(assigned, &entries, UnitSet::EMPTY);
        assert_eq!(split.committed, [assignment(4)]);
        assert_eq!(split.at_work_on, None);
    }

    #[test]
    fn entries_are_used_again_when_what_was_in_them_is_over() {
        let mut tenant = Tenant::new(Pid::INIT, 0);
        for _ in 0..ENTRIES {
            let entry = tenant.free_entry().unwrap();
            tenant.assign(assignment(entry));
        }
        assert_eq!(tenant.free_entry(), None);
        let over = tenant.take_over(|assignment| assignment.entry == 7);
        assert_eq!(over, [assignment(7)]);
        assert_eq!(tenant.free_entry(), Some(7));
        assert_eq!(tenant.assigned.len(), ENTRIES as usize - 1);
    }
}
