//! Fencing: owner against watchdogs, over all words of a slot.

use std::sync::Arc;

use bumpless_heartbeat::UnitSet;
use bumpless_heartbeat::slot::{AcknowledgedUnits, FenceOutcome, Slot, SlotError};
use bumpless_substrate::claim::Claim;
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU64, Ordering, is_rmw_pass};
use loom::thread;

use crate::cells::{B, Cells, Owners, first_epoch, unit, units};
use crate::seeing::check_seeing;

/// A unit of word 0.
const LOW: u32 = 0;
/// Another of word 0.
const ALSO_LOW: u32 = 1;
/// A unit of the other word.
const HIGH: u32 = 40;

/// A slot and what its units are about.
struct Job {
    cells: Arc<Cells>,
    live: Claim,
    payload: AtomicU64,
}

impl Job {
    fn with(in_flight: &[u32]) -> Arc<Self> {
        let (cells, live) = Cells::owned(in_flight);
        Arc::new(Self {
            cells,
            live,
            payload: Shared::zeroed(),
        })
    }

    fn slot(&self) -> &Slot {
        &self.cells.slot
    }
}

/// The owner takes a unit and commits another; of each unit exactly one side is told that it is its
/// own, and the reclaimer has what was written before.
#[test]
fn each_unit_goes_to_the_owner_or_to_the_reclaimer() {
    let wanted = ["both done", "only marked", "fenced before both"];
    check_seeing("fence, mark and complete", 3, &wanted, |outcomes| {
        let job = Job::with(&[HIGH]);
        let watchdog = {
            let job = Arc::clone(&job);
            thread::spawn(move || {
                let units = job.cells.fence_in_scans();
                // Relaxed: what the marks publish.
                (units, job.payload.load(Ordering::Relaxed))
            })
        };
        // Relaxed: as above.
        job.payload.store(7, Ordering::Relaxed);
        let marked = job.slot().mark(job.live, unit(LOW));
        let completed = job.slot().complete(job.live, unit(HIGH));
        let (handed_back, payload) = watchdog.join().unwrap();
        let mut wanted = UnitSet::EMPTY;
        if marked.is_ok() {
            wanted = wanted.with(unit(LOW));
            assert_eq!(payload, 7, "handed back without its data");
        }
        if completed.is_err() {
            wanted = wanted.with(unit(HIGH));
        }
        assert_eq!(handed_back, wanted);
        for error in [marked.err(), completed.err()].into_iter().flatten() {
            assert_eq!(error, SlotError::Fenced);
        }
        assert_eq!(job.slot().beat(job.live, 150), Err(SlotError::Fenced));
        outcomes.saw(match (marked.is_ok(), completed.is_ok()) {
            (true, true) => "both done",
            (true, false) => "only marked",
            (false, false) => "fenced before both",
            // Word 0 is fenced first, but the owner can be in the other word already.
            (false, true) => "only completed",
        });
    });
}

/// Word 0 is the decision: an owner that finds any word fenced finds its beat refused. Between
/// fresh looks only: a relaxed look at word 0 may be an old one, which the next scan makes good.
#[test]
fn an_owner_that_meets_the_fence_anywhere_beats_no_more() {
    check_seeing(
        "fence, word 0 first",
        3,
        &["fenced", "not yet"],
        |outcomes| {
            let job = Job::with(&[]);
            let watchdog = {
                let job = Arc::clone(&job);
                thread::spawn(move || job.cells.fence_in_scans())
            };
            let marked = job.slot().mark(job.live, unit(HIGH));
            let beaten = job.slot().beat(job.live, first_epoch(1) + 1);
            watchdog.join().unwrap();
            if marked == Err(SlotError::Fenced) {
                let refused = beaten == Err(SlotError::Fenced);
                assert!(refused || !is_rmw_pass(), "beats on behind a fence");
                outcomes.saw("fenced");
            } else {
                outcomes.saw("not yet");
            }
            let beat = job.slot().peek_beat().epoch_of(1);
            assert_eq!(beat, Some(first_epoch(1) + u64::from(beaten.is_ok())));
        },
    );
}

#[test]
fn two_watchdogs_acknowledge_each_unit_of_a_slot_once() {
    let wanted = [
        "all to main",
        "all to child",
        "shared",
        "completed",
        "fenced",
    ];
    check_seeing("fence, 2 watchdogs and owner", 2, &wanted, |outcomes| {
        let job = Job::with(&[LOW, HIGH]);
        let reclaim = |job: &Job| {
            let units = job.cells.fence_in_scans();
            job.slot().acknowledge(1, units)
        };
        let owner = {
            let job = Arc::clone(&job);
            thread::spawn(move || job.slot().complete(job.live, unit(HIGH)))
        };
        let child = {
            let job = Arc::clone(&job);
            thread::spawn(move || reclaim(&job))
        };
        let main = reclaim(&job);
        let child = child.join().unwrap();
        let completed = owner.join().unwrap();
        let left = if completed.is_ok() {
            units(&[LOW])
        } else {
            units(&[LOW, HIGH])
        };
        let (mine, theirs) = (main.units.bits(), child.units.bits());
        assert_eq!(mine & theirs, 0, "acknowledged twice");
        assert_eq!(
            mine | theirs,
            left.bits(),
            "lost, or completed and handed back"
        );
        assert!(
            main.notice != child.notice,
            "the notice goes to exactly one"
        );
        assert!(job.slot().units(1).is_empty());
        outcomes.saw(if completed.is_ok() {
            "completed"
        } else {
            "fenced"
        });
        outcomes.saw(match (mine, theirs) {
            (_, 0) => "all to main",
            (0, _) => "all to child",
            _ => "shared",
        });
    });
}

/// One report shows less than the other, because it is older or was asked for one unit.
#[test]
fn overlapping_reports_are_acknowledged_once_each() {
    check_seeing(
        "fence, overlapping reports",
        3,
        &["long first", "short first"],
        |outcomes| {
            let job = Job::with(&[LOW, ALSO_LOW, HIGH]);
            let all = job.cells.fence_in_scans();
            let short = {
                let job = Arc::clone(&job);
                thread::spawn(move || job.slot().acknowledge(1, units(&[LOW])))
            };
            let long = job.slot().acknowledge(1, all);
            let short = short.join().unwrap();
            assert_eq!(
                long.units.bits() & short.units.bits(),
                0,
                "acknowledged twice"
            );
            assert_eq!(long.units.bits() | short.units.bits(), all.bits(), "lost");
            assert!(
                long.notice != short.notice,
                "the notice goes to exactly one"
            );
            outcomes.saw(if short.units.is_empty() {
                "long first"
            } else {
                "short first"
            });
        },
    );
}

#[test]
fn an_acknowledgement_of_a_slot_that_is_not_fenced_takes_nothing() {
    check_seeing(
        "acknowledge, not fenced",
        3,
        &["before", "after"],
        |outcomes| {
            let job = Job::with(&[LOW, HIGH]);
            let hasty = {
                let job = Arc::clone(&job);
                thread::spawn(move || job.slot().acknowledge(1, units(&[LOW, HIGH])))
            };
            let completed = [LOW, HIGH].map(|number| job.slot().complete(job.live, unit(number)));
            assert_eq!(
                completed,
                [Ok(()), Ok(())],
                "acknowledged although its owner has it"
            );
            let fenced = job.cells.fence_in_scans();
            assert!(fenced.is_empty());
            let hasty = hasty.join().unwrap();
            assert!(hasty.units.is_empty());
            outcomes.saw(if hasty.notice { "after" } else { "before" });
        },
    );
}

/// A watchdog with a report of generation 1 against the owner of generation 2.
#[test]
fn a_stale_watchdog_changes_nothing_of_the_next_owner() {
    let wanted = [
        "fence in time",
        "fence too late",
        "ack in time",
        "ack too late",
    ];
    check_seeing("fence, stale watchdog", 3, &wanted, |outcomes| {
        let job = Job::with(&[LOW]);
        let shown = job.cells.fence_in_scans();
        job.slot().acknowledge(1, shown);
        assert!(job.cells.give_back(job.live).unwrap().is_empty());
        let stale = {
            let job = Arc::clone(&job);
            thread::spawn(move || {
                let outcome = job.slot().fence(1);
                (
                    outcome,
                    job.slot().acknowledge(1, units(&[LOW, ALSO_LOW, HIGH])),
                )
            })
        };
        let next = job
            .cells
            .register(B, Owners::Unproven)
            .expect("acknowledged and empty");
        let marked = [LOW, HIGH].map(|number| job.slot().mark(next, unit(number)));
        let (outcome, acknowledged) = stale.join().unwrap();
        assert_eq!(marked, [Ok(()), Ok(())], "fenced by a stale watchdog");
        assert_eq!(
            job.slot().units(2),
            units(&[LOW, HIGH]),
            "cleared by a stale watchdog"
        );
        job.slot()
            .beat(next, first_epoch(2) + 1)
            .expect("fenced by a stale watchdog");
        assert_eq!(acknowledged.units, UnitSet::EMPTY);
        match outcome {
            FenceOutcome::Fenced(units) => {
                assert!(units.is_empty());
                outcomes.saw("fence in time");
            }
            FenceOutcome::Moved => outcomes.saw("fence too late"),
            FenceOutcome::LostToOwner => outcomes.saw("lost"),
        }
        // The notice was taken before the slot was given back.
        assert_eq!(acknowledged, AcknowledgedUnits::default());
        let late = outcome == FenceOutcome::Moved;
        outcomes.saw(if late { "ack too late" } else { "ack in time" });
    });
}
