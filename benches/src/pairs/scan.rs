//! Scans: all alive, some dead, all dead, few in a large table, beside writers on another core.
//!
//! An owner that beats once between two scans is one epoch behind at the second, because a scan ticks
//! first: "all alive" is a lag of exactly 1. So all owners beat before each scan, untimed, and the scan
//! finds their lines as the same core wrote them. The watchdog's own slot is one of those counted.
//!
//! Relaxed: a flag and a counter between two threads, of which nothing is read through them.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use anyhow::{Result, ensure};
use bumpless_failover::{FailoverWatchdog, ReclaimReport};
use bumpless_substrate::clock::monotonic_ns;

use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::mutexes::{PerSlot, Record};
use crate::pair::{Batch, Goal, Pair, Stage, in_a_row, one_by_one};

const FLOOR: &str = "the loads, one locked add, one clock read";

pub const PAIRS: &[Pair] = &[
    Pair {
        name: "scan of 64, all alive",
        beside: FLOOR,
        goal: Goal::AtMost(2.0),
        run: |stage| beside_floor(stage, 64),
    },
    Pair {
        name: "scan of 1,024, all alive",
        beside: FLOOR,
        goal: Goal::AtMost(2.0),
        run: |stage| beside_floor(stage, 1_024),
    },
    Pair {
        name: "scan of 65,536, all alive",
        beside: FLOOR,
        goal: Goal::Told,
        run: |stage| beside_floor(stage, 65_536),
    },
    Pair {
        name: "scan of 64, all alive",
        beside: "Vec<Mutex<slot>>, std",
        goal: Goal::Faster(10.0),
        run: |stage| {
            let table = PerSlot::<Mutex<u64>, Mutex<Record>>::new(64);
            all_alive(
                stage,
                64,
                &mut in_a_row(|| {
                    black_box(table.scan(u64::MAX));
                }),
            )
        },
    },
    Pair {
        name: "scan of 64, all alive",
        beside: "Vec<Mutex<slot>>, parking_lot",
        goal: Goal::Faster(10.0),
        run: |stage| {
            let table = PerSlot::<parking_lot::Mutex<u64>, parking_lot::Mutex<Record>>::new(64);
            all_alive(
                stage,
                64,
                &mut in_a_row(|| {
                    black_box(table.scan(u64::MAX));
                }),
            )
        },
    },
    Pair {
        name: "scan of 1,024, all alive",
        beside: "Vec<Mutex<slot>>, std",
        goal: Goal::Faster(10.0),
        run: |stage| {
            let table = PerSlot::<Mutex<u64>, Mutex<Record>>::new(1_024);
            all_alive(
                stage,
                1_024,
                &mut in_a_row(|| {
                    black_box(table.scan(u64::MAX));
                }),
            )
        },
    },
    Pair {
        name: "scan of 64, exactly 4 dead",
        beside: "scan of 64, all alive",
        goal: Goal::AtMost(1.3),
        run: |stage| beside_all_alive(stage, Fleet::new(64, 63, 1)?, Some(16)),
    },
    Pair {
        name: "scan of 64, all dead",
        beside: "scan of 64, all alive",
        goal: Goal::Told,
        run: |stage| beside_all_alive(stage, Fleet::new(64, 63, 1)?, Some(1)),
    },
    Pair {
        name: "scan of 65,536, of which 64 are registered",
        beside: "scan of 64, all alive",
        goal: Goal::AtMost(3.0),
        run: |stage| beside_all_alive(stage, Fleet::new(65_536, 63, 1_024)?, None),
    },
    Pair {
        name: "scan of 65,536, of which 64 are registered",
        beside: "the same loads from the same 64 places",
        goal: Goal::Told,
        run: beside_sparse_floor,
    },
    Pair {
        name: "scan of 64, another core beats",
        beside: "scan of 64, all alive",
        goal: Goal::Told,
        run: beside_a_writer,
    },
];

/// A watchdog's scan, and what it found last.
struct Watch<'t> {
    watchdog: FailoverWatchdog<'t>,
    report: ReclaimReport,
}

impl Watch<'_> {
    fn scan(&mut self) {
        self.watchdog.scan_into(&mut self.report);
    }
}

/// Scans of a fleet that beats in between; after each batch exactly `dead` must have been reported, and
/// nobody be more than one epoch behind.
fn scans<'f>(
    fleet: &'f Fleet,
    watch: &'f mut Watch<'_>,
    dead: usize,
) -> impl FnMut(u64) -> Result<f64> + 'f {
    move |times| {
        let ns = one_by_one(
            watch,
            |_| {
                fleet.beat_all();
                Ok(())
            },
            Watch::scan,
        )(times)?;
        let report = &watch.report;
        let (found, lag) = (report.dead_slots.len(), report.largest_lag_epochs);
        ensure!(found == dead, "{found} dead, not {dead}");
        ensure!(dead > 0 || lag == 1, "a lag of {lag} epochs");
        Ok(ns)
    }
}

fn all_alive(stage: &mut dyn Stage, slots: usize, other: &mut Batch) -> Result<()> {
    let fleet = Fleet::new(slots, slots - 1, 1)?;
    let watched = fleet.open()?;
    let mut watch = watching(&watched, &fleet);
    stage.compare(&mut scans(&fleet, &mut watch, 0), other)
}

fn watching<'t>(watched: &'t bumpless_heartbeat::HeartbeatTable, fleet: &Fleet) -> Watch<'t> {
    let mut watch = Watch {
        watchdog: FailoverWatchdog::with_grace(watched, 3),
        report: ReclaimReport::default(),
    };
    // The first registers the watchdog and sees everybody for the first time.
    for _ in 0..2 {
        fleet.beat_all();
        watch.scan();
    }
    watch
}

/// The floor's lines are written before each round, too.
pub fn beside_floor(stage: &mut dyn Stage, slots: usize) -> Result<()> {
    let mut lines = Lines::new(slots);
    all_alive(
        stage,
        slots,
        &mut one_by_one(
            &mut lines,
            |lines| {
                for index in 0..slots {
                    lines.beat(index);
                }
                Ok(())
            },
            |lines| {
                black_box(monotonic_ns());
                lines.add();
                black_box(&*lines).scan(1);
            },
        ),
    )
}

/// Lines 64 KiB apart fall into one set of the caches: most of them come from the last level.
fn beside_sparse_floor(stage: &mut dyn Stage) -> Result<()> {
    let fleet = Fleet::new(65_536, 63, 1_024)?;
    let watched = fleet.open()?;
    let mut watch = watching(&watched, &fleet);
    let lines = Lines::new(65_536);
    stage.compare(
        &mut scans(&fleet, &mut watch, 0),
        &mut in_a_row(|| black_box(&lines).scan(1_024)),
    )
}

fn beside_all_alive(stage: &mut dyn Stage, fleet: Fleet, kill: Option<usize>) -> Result<()> {
    let watched = fleet.open()?;
    let mut watch = watching(&watched, &fleet);
    let dead = match kill {
        Some(step) => fleet.kill_every(step)?,
        None => 0,
    };
    watch.scan();
    let mut batch = scans(&fleet, &mut watch, dead);
    all_alive_beside(stage, &mut batch)
}

fn all_alive_beside(stage: &mut dyn Stage, a: &mut Batch) -> Result<()> {
    let plain = Fleet::new(64, 63, 1)?;
    let plainly_watched = plain.open()?;
    let mut plain_watch = watching(&plainly_watched, &plain);
    stage.compare(a, &mut scans(&plain, &mut plain_watch, 0))
}

/// All owners beat without a pause on another core; the scans follow each other.
fn beside_a_writer(stage: &mut dyn Stage) -> Result<()> {
    let fleet = Fleet::new(64, 63, 1)?;
    let watched = fleet.open()?;
    let watchdog = FailoverWatchdog::with_grace(&watched, 1 << 40);
    let mut report = ReclaimReport::default();
    let done = AtomicBool::new(false);
    let writing = AtomicBool::new(false);
    thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Relaxed) {
                if writing.load(Relaxed) {
                    fleet.beat_all();
                } else {
                    std::hint::spin_loop();
                }
            }
        });
        let mut batch = in_a_row(|| watchdog.scan_into(&mut report));
        let measured = all_alive_beside(stage, &mut |times| {
            writing.store(true, Relaxed);
            let ns = batch(times);
            writing.store(false, Relaxed);
            ns
        });
        done.store(true, Relaxed);
        measured
    })?;
    ensure!(report.dead_slots.is_empty(), "somebody was fenced");
    Ok(())
}
