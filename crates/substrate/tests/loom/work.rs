//! The work word: each unit goes to exactly one side, and with it what was written about it.

use std::sync::Arc;

use bumpless_substrate::work::{Work, WorkError};
use loom::thread;

use crate::job::{DONE, Job, OTHER, UNIT, WRITTEN};
use crate::seeing::check_seeing;

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
