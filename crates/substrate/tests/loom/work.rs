//! The work word: each unit goes to exactly one side, and with it what was written about it.

use std::sync::Arc;

use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU64, Ordering, die_before_change};
use bumpless_substrate::work::{Acknowledged, Work, WorkError, WorkWord};
use loom::thread;

use crate::seeing::{DIED, check_each_death, check_seeing};

const UNIT: u32 = 0b001;
const OTHER: u32 = 0b010;
const WRITTEN: u64 = 7;
const DONE: u64 = 8;

/// The owners here make fewer changes than would beat this many fences.
const SCANS_MAX: usize = 4;

bumpless_substrate::shared_struct! {
    /// A work word and what its unit is about.
    struct Job[size = 24, align = 8] {
        /// Units and fence.
        0 => word: WorkWord,
        /// What the owner wrote about the unit before it marked it, and its result.
        8 => payload: AtomicU64,
        /// What the reclaimer did with the unit before it acknowledged it.
        16 => reclaimed: AtomicU64,
    }
}

impl Job {
    /// A job of generation 1 with these units in flight.
    fn with(units: u32) -> Arc<Self> {
        let job = Self::zeroed();
        job.word.open(1);
        if units != 0 {
            job.word.mark(1, units).unwrap();
        }
        Arc::new(job)
    }

    /// Fences as often as one scan after the other would.
    fn fence(&self) -> Work {
        for _ in 0..SCANS_MAX {
            match self.word.fence(1) {
                Ok(work) => return work,
                Err(error) => assert!(matches!(error, WorkError::Contended { .. }), "{error}"),
            }
        }
        panic!("the owner changed its word without end");
    }

    fn write(&self, number: u64) {
        // Relaxed: what the work word publishes.
        self.payload.store(number, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        // Relaxed: as above.
        self.payload.load(Ordering::Relaxed)
    }
}

#[test]
fn a_marked_unit_is_handed_back_with_what_was_written_before() {
    check_seeing(
        "work, mark against fence",
        3,
        &["marked", "fenced"],
        |outcomes| {
            let job = Job::with(0);
            let reclaimer = {
                let job = Arc::clone(&job);
                thread::spawn(move || {
                    let fenced = job.fence();
                    (fenced.units(), job.read())
                })
            };
            job.write(WRITTEN);
            let marked = job.word.mark(1, UNIT);
            let (units, payload) = reclaimer.join().unwrap();
            match marked {
                Ok(()) => {
                    assert_eq!((units, payload), (UNIT, WRITTEN));
                    outcomes.saw("marked");
                }
                Err(error) => {
                    assert_eq!((error, units), (WorkError::Fenced, 0));
                    outcomes.saw("fenced");
                }
            }
        },
    );
}

/// Each unit is the owner's (completed) or the reclaimer's, never both's or nobody's; a unit that
/// was completed has its result for whoever finds it gone.
#[test]
fn a_unit_is_completed_or_handed_back_never_both() {
    check_seeing(
        "work, complete against fence",
        3,
        &["completed", "fenced"],
        |outcomes| {
            let job = Job::with(UNIT | OTHER);
            let reclaimer = {
                let job = Arc::clone(&job);
                thread::spawn(move || {
                    let fenced = job.fence();
                    (fenced.units(), job.read())
                })
            };
            job.write(DONE);
            let completed = job.word.complete(1, UNIT);
            let (units, payload) = reclaimer.join().unwrap();
            match completed {
                Ok(()) => {
                    assert_eq!((units, payload), (OTHER, DONE));
                    outcomes.saw("completed");
                }
                Err(error) => {
                    assert_eq!((error, units), (WorkError::Fenced, UNIT | OTHER));
                    outcomes.saw("fenced");
                }
            }
        },
    );
}

#[test]
fn who_sees_a_unit_gone_sees_its_result() {
    check_seeing(
        "work, complete and reader",
        3,
        &["in flight", "gone"],
        |outcomes| {
            let job = Job::with(UNIT);
            let reader = {
                let job = Arc::clone(&job);
                thread::spawn(move || (job.word.load().units(), job.read()))
            };
            job.write(DONE);
            job.word.complete(1, UNIT).unwrap();
            let (units, payload) = reader.join().unwrap();
            if units == 0 {
                assert_eq!(payload, DONE, "committed before its result");
                outcomes.saw("gone");
            } else {
                outcomes.saw("in flight");
            }
        },
    );
}

/// The owner gives back with a unit in flight; whoever then finds the word fenced has the payload.
#[test]
fn a_unit_left_by_its_owner_is_handed_back_with_what_was_written_before() {
    check_seeing(
        "work, own fence",
        3,
        &["left", "fenced before"],
        |outcomes| {
            let job = Job::with(0);
            let reclaimer = {
                let job = Arc::clone(&job);
                thread::spawn(move || {
                    let fenced = job.fence();
                    (fenced.units(), job.read())
                })
            };
            job.write(WRITTEN);
            let marked = job.word.mark(1, UNIT);
            job.word.fence_own();
            let (units, payload) = reclaimer.join().unwrap();
            if marked.is_ok() {
                assert_eq!((units, payload), (UNIT, WRITTEN));
                outcomes.saw("left");
            } else {
                assert_eq!(units, 0);
                outcomes.saw("fenced before");
            }
        },
    );
}

/// Fences, reads the payload and acknowledges, as one watchdog does.
fn reclaim(job: &Job, shown: u32) -> (u32, u64, Result<Acknowledged, WorkError>) {
    let units = job.fence().units();
    (
        units,
        job.read(),
        job.word.acknowledge(1, units & shown, true),
    )
}

#[test]
fn two_watchdogs_acknowledge_each_unit_and_the_notice_once() {
    let wanted = ["all to main", "all to child", "completed", "fenced"];
    check_seeing("work, 2 watchdogs and owner", 2, &wanted, |outcomes| {
        let job = Job::with(OTHER);
        let spawn = |shown| {
            let job = Arc::clone(&job);
            thread::spawn(move || reclaim(&job, shown))
        };
        let owner = {
            let job = Arc::clone(&job);
            thread::spawn(move || {
                job.write(WRITTEN);
                (job.word.mark(1, UNIT), job.word.complete(1, OTHER))
            })
        };
        let child = spawn(u32::MAX);
        let (main_units, main_payload, main) = reclaim(&job, u32::MAX);
        let (child_units, child_payload, child) = child.join().unwrap();
        let (marked, completed) = owner.join().unwrap();
        let (main, child) = (main.unwrap(), child.unwrap());

        let mut left = 0;
        if marked.is_ok() {
            left |= UNIT;
            for (units, payload) in [(main_units, main_payload), (child_units, child_payload)] {
                assert!(
                    units & UNIT == 0 || payload == WRITTEN,
                    "handed back without its data"
                );
            }
        }
        if completed.is_err() {
            left |= OTHER;
        }
        assert_eq!(main.units & child.units, 0, "acknowledged twice");
        assert_eq!(
            main.units | child.units,
            left,
            "lost, or acknowledged and completed"
        );
        assert!(
            main.notice != child.notice,
            "the notice goes to exactly one"
        );
        let end = job.word.load();
        assert!(end.units() == 0 && end.is_fenced() && end.is_acked() && end.generation() == 1);
        outcomes.saw(if completed.is_ok() {
            "completed"
        } else {
            "fenced"
        });
        if child == Acknowledged::default() {
            outcomes.saw("all to main");
        } else if main == Acknowledged::default() {
            outcomes.saw("all to child");
        }
    });
}

/// Two reports that overlap: one shows both units, one shows one of them.
#[test]
fn an_acknowledgement_takes_only_what_its_report_showed() {
    let wanted = ["the long one first", "the short one first"];
    check_seeing("work, overlapping reports", 3, &wanted, |outcomes| {
        let job = Job::with(UNIT | OTHER);
        job.word.fence(1).unwrap();
        let short = {
            let job = Arc::clone(&job);
            thread::spawn(move || job.word.acknowledge(1, UNIT, false).unwrap())
        };
        let long = job.word.acknowledge(1, UNIT | OTHER, true).unwrap();
        let short = short.join().unwrap();
        assert_eq!(long.units & short.units, 0, "acknowledged twice");
        assert_eq!(long.units | short.units, UNIT | OTHER, "lost");
        assert_eq!((long.notice, short.notice), (true, false));
        outcomes.saw(if short.units == 0 {
            "the long one first"
        } else {
            "the short one first"
        });
    });
}

#[test]
fn what_was_not_shown_stays_for_the_next_report() {
    check_seeing(
        "work, short report",
        3,
        &["both in flight", "one in flight"],
        |outcomes| {
            let job = Job::with(UNIT);
            let owner = {
                let job = Arc::clone(&job);
                thread::spawn(move || job.word.mark(1, OTHER))
            };
            let shown = UNIT;
            let fenced = job.fence();
            let taken = job.word.acknowledge(1, shown, true).unwrap();
            let marked = owner.join().unwrap();
            let left = if marked.is_ok() { OTHER } else { 0 };
            assert_eq!((fenced.units(), taken.units), (UNIT | left, UNIT));
            assert_eq!(job.word.load().units(), left, "acknowledged unseen");
            assert_eq!(job.word.load().generation(), 1);
            outcomes.saw(if left == 0 {
                "one in flight"
            } else {
                "both in flight"
            });
        },
    );
}

/// A report of an owner that was never fenced is not acknowledged: its units are still its own.
#[test]
fn an_acknowledgement_before_the_fence_takes_nothing() {
    check_seeing(
        "work, acknowledge unfenced",
        3,
        &["before", "after"],
        |outcomes| {
            let job = Job::with(UNIT);
            let hasty = {
                let job = Arc::clone(&job);
                thread::spawn(move || job.word.acknowledge(1, UNIT, true))
            };
            let marked = job.word.mark(1, OTHER);
            let completed = job.word.complete(1, UNIT);
            let fenced = job.fence();
            let hasty = hasty.join().unwrap();
            assert_eq!((marked, completed, fenced.units()), (Ok(()), Ok(()), OTHER));
            match hasty {
                Err(error) => {
                    assert_eq!(error, WorkError::NotFenced);
                    outcomes.saw("before");
                }
                Ok(taken) => {
                    assert_eq!(
                        taken,
                        Acknowledged {
                            units: 0,
                            notice: true
                        }
                    );
                    outcomes.saw("after");
                }
            }
        },
    );
}

/// The next owner opens the word while a watchdog still holds a report of the last one.
#[test]
fn a_watchdog_of_an_earlier_generation_changes_nothing() {
    let wanted = [
        "fence in time",
        "fence too late",
        "ack in time",
        "ack too late",
    ];
    check_seeing("work, stale watchdog", 3, &wanted, |outcomes| {
        let job = Job::with(UNIT);
        job.word.fence(1).unwrap();
        job.word.acknowledge(1, UNIT, false).unwrap();
        let stale = {
            let job = Arc::clone(&job);
            thread::spawn(move || (job.word.fence(1), job.word.acknowledge(1, u32::MAX, true)))
        };
        job.word.open(2);
        let marked = job.word.mark(2, UNIT);
        let completed = job.word.complete(2, UNIT);
        let again = job.word.mark(2, OTHER);
        let (fence, acknowledged) = stale.join().unwrap();
        assert_eq!((marked, completed, again), (Ok(()), Ok(()), Ok(())));
        assert_eq!(
            job.word.load(),
            Work::new(2, OTHER),
            "a stale watchdog changed the word"
        );
        match fence {
            Ok(work) => assert_eq!(work.units(), 0),
            Err(error) => assert_eq!(
                error,
                WorkError::Generation {
                    found: 2,
                    wanted: 1
                }
            ),
        }
        assert!(acknowledged.is_err() || acknowledged.is_ok_and(|taken| taken.units == 0));
        outcomes.saw(if fence.is_ok() {
            "fence in time"
        } else {
            "fence too late"
        });
        outcomes.saw(if acknowledged.is_ok() {
            "ack in time"
        } else {
            "ack too late"
        });
    });
}

/// A late thread of the last owner, against the next owner.
#[test]
fn a_late_owner_marks_and_completes_nothing_of_the_next() {
    check_seeing(
        "work, late owner",
        3,
        &["fenced", "of another generation"],
        |outcomes| {
            let job = Job::with(UNIT);
            job.word.fence_own();
            job.word.acknowledge(1, UNIT, false).unwrap();
            let late = {
                let job = Arc::clone(&job);
                thread::spawn(move || [job.word.mark(1, OTHER), job.word.complete(1, UNIT)])
            };
            job.word.open(2);
            let marked = job.word.mark(2, UNIT);
            let late = late.join().unwrap();
            assert_eq!(marked, Ok(()));
            assert_eq!(
                job.word.load(),
                Work::new(2, UNIT),
                "a late owner changed the word"
            );
            for result in late {
                match result {
                    Err(WorkError::Fenced) => outcomes.saw("fenced"),
                    Err(WorkError::Generation { .. }) => outcomes.saw("of another generation"),
                    other => panic!("{other:?}"),
                }
            }
        },
    );
}

/// What the reclaimer did with a unit happened before the record is used again.
#[test]
fn who_finds_the_word_empty_sees_what_the_reclaimer_did() {
    check_seeing("work, reuse", 3, &["units left", "empty"], |outcomes| {
        let job = Job::with(UNIT);
        job.word.fence(1).unwrap();
        let claimer = {
            let job = Arc::clone(&job);
            thread::spawn(move || {
                let work = job.word.load();
                // Relaxed: what the acknowledgement publishes.
                (work.units(), job.reclaimed.load(Ordering::Relaxed))
            })
        };
        // Relaxed: as above.
        job.reclaimed.store(DONE, Ordering::Relaxed);
        job.word.acknowledge(1, UNIT, true).unwrap();
        let (units, reclaimed) = claimer.join().unwrap();
        if units == 0 {
            assert_eq!(reclaimed, DONE, "reused before the hand-back was done");
            outcomes.saw("empty");
        } else {
            outcomes.saw("units left");
        }
    });
}

/// An owner that changes its word between each look of the watchdog and its fence lives.
#[test]
fn a_fence_that_loses_to_the_owner_says_so_and_changes_nothing() {
    check_seeing("work, fence lost", 4, &["lost", "fenced"], |outcomes| {
        let job = Job::with(0);
        let watchdog = {
            let job = Arc::clone(&job);
            thread::spawn(move || job.word.fence(1))
        };
        let marked = job.word.mark(1, UNIT);
        let completed = job.word.complete(1, UNIT);
        match watchdog.join().unwrap() {
            Err(error) => {
                assert!(matches!(error, WorkError::Contended { .. }), "{error}");
                assert_eq!((marked, completed), (Ok(()), Ok(())));
                assert_eq!(job.word.load(), Work::new(1, 0));
                outcomes.saw("lost");
            }
            Ok(_) => outcomes.saw("fenced"),
        }
    });
}

/// A watchdog dies between any two changes of fence and acknowledgement; the next one finishes.
#[test]
fn a_watchdog_that_dies_leaves_every_unit_to_the_next() {
    let wanted = [
        DIED,
        "taken by the dead one",
        "taken by the next",
        "completed",
    ];
    check_each_death("work, watchdog dies", 2, &wanted, |outcomes, changes| {
        let job = Job::with(UNIT);
        let owner = {
            let job = Arc::clone(&job);
            thread::spawn(move || job.word.complete(1, UNIT))
        };
        let first = die_before_change(changes, || {
            let units = job.fence().units();
            job.word.acknowledge(1, units, true).unwrap()
        });
        if first.is_none() {
            outcomes.saw(DIED);
        }
        let first = first.unwrap_or_default();
        let units = job.fence().units();
        let second = job.word.acknowledge(1, units, true).unwrap();
        let completed = owner.join().unwrap();
        let owners = if completed.is_ok() { UNIT } else { 0 };
        assert_eq!(first.units + second.units + owners, UNIT, "lost or twice");
        assert!(
            first.notice != second.notice,
            "the notice goes to exactly one"
        );
        outcomes.saw(match (completed.is_ok(), first.units) {
            (true, _) => "completed",
            (false, 0) => "taken by the next",
            (false, _) => "taken by the dead one",
        });
    });
}
