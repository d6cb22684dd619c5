//! The work word between watchdogs: each unit and each notice is acknowledged once.

use std::sync::Arc;

use bumpless_substrate::sync::{Ordering, die_before_change};
use bumpless_substrate::work::{Acknowledged, Work, WorkError};
use loom::thread;

use crate::job::{DONE, Job, OTHER, UNIT, WRITTEN};
use crate::seeing::{DIED, check_each_death, check_seeing};

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

/// A watchdog dies between any two changes of fence and acknowledgement; the next one finishes.
#[test]
fn a_watchdog_that_dies_leaves_every_unit_to_the_next() {
    let wanted = [
        DIED,
        "taken by the dead one",
        "taken by the next",
        "completed",
    ];
    check_each_death("work, watchdog dies", 3, &wanted, |outcomes, changes| {
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
