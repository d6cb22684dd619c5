//! Scans: all alive, some dead, all dead, few in a large table, beside writers on another core.
//!
//! An owner that beats once between two scans is one epoch behind at the second, because a scan ticks
//! first: "all alive" is a lag of exactly 1. So all owners beat before each scan, untimed, and the scan
//! finds their lines as the same core wrote them. So do the owners of the floors and of the mutexes. The
//! watchdog's own slot is one of those counted.

use std::hint::black_box;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use bumpless_failover::{FailoverWatchdog, ReclaimReport};
use bumpless_heartbeat::{HeartbeatTable, UnitSet};
use bumpless_substrate::clock::monotonic_ns;

use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::mutexes::{Lock, PerSlot, Record};
use crate::other_core::with_other_core;
use crate::pair::{Batch, Goal, Pair, Stage, in_a_row, one_by_one};

/// What each of the dead was working on.
const LEFT: UnitSet = UnitSet::from_bits(1 << 3 | 1 << 17 | 1 << 40 | 1 << 71 | 1 << 99 | 1 << 126);
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
        run: |stage| beside_mutexes::<Mutex<u64>, Mutex<Record>>(stage, 64),
    },
    Pair {
        name: "scan of 64, all alive",
        beside: "Vec<Mutex<slot>>, parking_lot",
        goal: Goal::Faster(10.0),
        run: |stage| {
            beside_mutexes::<parking_lot::Mutex<u64>, parking_lot::Mutex<Record>>(stage, 64)
        },
    },
    Pair {
        name: "scan of 1,024, all alive",
        beside: "Vec<Mutex<slot>>, std",
        goal: Goal::Faster(10.0),
        run: |stage| beside_mutexes::<Mutex<u64>, Mutex<Record>>(stage, 1_024),
    },
    Pair {
        name: "scan of 1,024, all alive",
        beside: "Vec<Mutex<slot>>, parking_lot",
        goal: Goal::Faster(10.0),
        run: |stage| {
            beside_mutexes::<parking_lot::Mutex<u64>, parking_lot::Mutex<Record>>(stage, 1_024)
        },
    },
    Pair {
        name: "scan of 65,536, all alive",
        beside: "Vec<Mutex<slot>>, std",
        goal: Goal::Told,
        run: |stage| beside_mutexes::<Mutex<u64>, Mutex<Record>>(stage, 65_536),
    },
    Pair {
        name: "scan of 65,536, all alive",
        beside: "Vec<Mutex<slot>>, parking_lot",
        goal: Goal::Told,
        run: |stage| {
            beside_mutexes::<parking_lot::Mutex<u64>, parking_lot::Mutex<Record>>(stage, 65_536)
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
    dead: Vec<usize>,
}

impl Watch<'_> {
    fn scan(&mut self) {
        self.watchdog.scan_into(&mut self.report);
    }

    /// The last scan has told of the dead, and when there are none, of nobody more than one epoch behind.
    fn require_dead(&self) -> Result<()> {
        let told = self
            .report
            .dead_slots
            .iter()
            .map(|(slot, _)| slot.slot as usize);
        ensure!(
            told.eq(self.dead.iter().copied()),
            "dead are {:?}, not {:?}",
            self.report.dead_slots,
            self.dead
        );
        let lag = self.report.largest_lag_epochs;
        ensure!(!self.dead.is_empty() || lag == 1, "a lag of {lag} epochs");
        Ok(())
    }

    /// All others are one epoch behind, and the dead are fenced, with nothing acknowledged.
    fn require_lives(&self, fleet: &Fleet) -> Result<()> {
        let seen = self.report.new_global_epoch - 1;
        for handle in &fleet.handles {
            let found = fleet.table().snapshot(*handle).context("an owner")?;
            if self.dead.contains(&handle.slot()) {
                let is_left = found.in_flight_bitmap == LEFT;
                ensure!(is_left && found.is_fenced, "one of the dead: {found:?}");
            } else {
                let is_alive = found.last_seen_epoch == seen && !found.is_fenced;
                ensure!(is_alive, "alive in epoch {seen}: {found:?}");
            }
        }
        Ok(())
    }
}

/// Scans of a fleet that beats in between. Each must have found the dead, and nobody else.
fn scans<'f>(fleet: &'f Fleet, watch: &'f mut Watch<'_>) -> impl FnMut(u64) -> Result<f64> + 'f {
    move |times| {
        let ready = |watch: &mut Watch<'_>| {
            // What the scan before this one found.
            watch.require_dead()?;
            fleet.beat_all();
            Ok(())
        };
        let ns = one_by_one(watch, ready, Watch::scan)(times)?;
        watch.require_dead()?;
        watch.require_lives(fleet)?;
        Ok(ns)
    }
}

fn all_alive(stage: &mut dyn Stage, slots: usize, other: &mut Batch) -> Result<()> {
    let fleet = Fleet::new(slots, slots - 1, 1)?;
    let watched = fleet.open()?;
    let mut watch = watching(&watched, &fleet);
    stage.compare(&mut scans(&fleet, &mut watch), other)
}

fn watching<'t>(watched: &'t HeartbeatTable, fleet: &Fleet) -> Watch<'t> {
    let mut watch = Watch {
        watchdog: FailoverWatchdog::with_grace(watched, 3),
        report: ReclaimReport::default(),
        dead: Vec::new(),
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
    let lines = Lines::new(slots);
    let mut loads = floor_scans(lines, 1, |lines| {
        black_box(monotonic_ns());
        lines.add();
        black_box(lines).scan(1);
    });
    all_alive(stage, slots, &mut loads)
}

/// Every `step`th line is written, untimed, before each scan.
fn floor_scans(
    mut lines: Lines,
    step: usize,
    scan: impl Fn(&Lines),
) -> impl FnMut(u64) -> Result<f64> {
    move |times| {
        let ready = |lines: &mut Lines| {
            for index in (0..lines.own.len()).step_by(step) {
                lines.beat(index);
            }
            Ok(())
        };
        one_by_one(&mut lines, ready, |lines| scan(lines))(times)
    }
}

fn beside_mutexes<C: Lock<u64>, R: Lock<Record>>(
    stage: &mut dyn Stage,
    slots: usize,
) -> Result<()> {
    let mut table = PerSlot::<C, R>::new(slots);
    let mut found = 0;
    let mut batch = |times| {
        let ready = |table: &mut PerSlot<C, R>| {
            for index in 0..slots {
                table.beat(index);
            }
            Ok(())
        };
        one_by_one(&mut table, ready, |table| found += black_box(table).scan(3))(times)
    };
    all_alive(stage, slots, &mut batch)?;
    ensure!(found == 0, "{found} late");
    Ok(())
}

/// Lines 64 KiB apart fall into one set of the caches: most of them come from the last level.
fn beside_sparse_floor(stage: &mut dyn Stage) -> Result<()> {
    let fleet = Fleet::new(65_536, 63, 1_024)?;
    let watched = fleet.open()?;
    let mut watch = watching(&watched, &fleet);
    let lines = Lines::new(65_536);
    let mut loads = floor_scans(lines, 1_024, |lines| black_box(lines).scan(1_024));
    stage.compare(&mut scans(&fleet, &mut watch), &mut loads)
}

fn beside_all_alive(stage: &mut dyn Stage, fleet: Fleet, kill: Option<usize>) -> Result<()> {
    let watched = fleet.open()?;
    let mut watch = watching(&watched, &fleet);
    if let Some(step) = kill {
        watch.dead = fleet.kill_every(step, LEFT)?;
    }
    // Fences the dead; the next one is as all that follow.
    fleet.beat_all();
    watch.scan();
    let mut batch = scans(&fleet, &mut watch);
    all_alive_beside(stage, &mut batch)
}

fn all_alive_beside(stage: &mut dyn Stage, a: &mut Batch) -> Result<()> {
    let plain = Fleet::new(64, 63, 1)?;
    let plainly_watched = plain.open()?;
    let mut plain_watch = watching(&plainly_watched, &plain);
    stage.compare(a, &mut scans(&plain, &mut plain_watch))
}

/// All owners beat without a pause on another core; the scans follow each other.
fn beside_a_writer(stage: &mut dyn Stage) -> Result<()> {
    let fleet = Fleet::new(64, 63, 1)?;
    let watched = fleet.open()?;
    let watchdog = FailoverWatchdog::with_grace(&watched, 1 << 40);
    let mut report = ReclaimReport::default();
    with_other_core(
        || fleet.beat_all(),
        |writer| {
            let mut batch = in_a_row(|| watchdog.scan_into(&mut report));
            all_alive_beside(stage, &mut |times| writer.beside(&mut batch, times))
        },
    )?;
    ensure!(report.is_empty(), "somebody was found dead");
    Ok(())
}
