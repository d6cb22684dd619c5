//! Beats: alone, each waiting for the last, and beside a scanner on another core.
//!
//! Relaxed: a flag and a counter between two threads, of which nothing is read through them.

use std::hint::{black_box, spin_loop};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;

use anyhow::{Context, Result, ensure};
use bumpless_failover::{FailoverWatchdog, ReclaimReport};
use bumpless_heartbeat::{Handle, HeartbeatTable};

use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::mutexes::{PerSlot, Record, Whole};
use crate::pair::{Batch, Goal, Pair, Stage, in_a_row};

const SLOTS: usize = 64;
/// The owner that beats: in the middle.
const OWN: usize = 31;

pub const PAIRS: &[Pair] = &[
    Pair {
        name: "beat",
        beside: "one load, one store",
        goal: Goal::AtMost(1.7),
        run: beside_floor,
    },
    Pair {
        name: "beat",
        beside: "Mutex<table>, std",
        goal: Goal::Faster(12.0),
        run: |stage| {
            let table = Whole::<Mutex<_>>::new(SLOTS);
            beside(stage, &mut in_a_row(|| table.beat(black_box(OWN))))
        },
    },
    Pair {
        name: "beat",
        beside: "Mutex<table>, parking_lot",
        goal: Goal::Faster(12.0),
        run: |stage| {
            let table = Whole::<parking_lot::Mutex<_>>::new(SLOTS);
            beside(stage, &mut in_a_row(|| table.beat(black_box(OWN))))
        },
    },
    Pair {
        name: "beat",
        beside: "Vec<Mutex<slot>>, std",
        goal: Goal::Faster(24.0),
        run: |stage| {
            let table = PerSlot::<Mutex<u64>, Mutex<Record>>::new(SLOTS);
            beside(stage, &mut in_a_row(|| table.beat(black_box(OWN))))
        },
    },
    Pair {
        name: "beat",
        beside: "Vec<Mutex<slot>>, parking_lot",
        goal: Goal::Faster(24.0),
        run: |stage| {
            let table = PerSlot::<parking_lot::Mutex<u64>, parking_lot::Mutex<Record>>::new(SLOTS);
            beside(stage, &mut in_a_row(|| table.beat(black_box(OWN))))
        },
    },
    Pair {
        name: "beat, each after the last",
        beside: "load, store, load, each after the last",
        goal: Goal::Told,
        run: dependent,
    },
    Pair {
        name: "beat, another core scans",
        beside: "beat",
        goal: Goal::AtMost(3.0),
        run: beside_a_scanner,
    },
];

/// Beats through references that the optimizer knows nothing about.
fn beats(table: &HeartbeatTable, handle: Handle) -> impl FnMut(u64) -> Result<f64> {
    move |times| {
        let mut all_beat = true;
        let ns = in_a_row(|| all_beat &= black_box(table).beat(*black_box(&handle)).is_ok())(times);
        ensure!(all_beat, "a beat was refused");
        ns
    }
}

fn beside(stage: &mut dyn Stage, other: &mut Batch) -> Result<()> {
    let fleet = Fleet::new(SLOTS, SLOTS - 1, 1)?;
    let handle = fleet.handles[OWN];
    stage.compare(&mut beats(fleet.table(), handle), other)?;
    fleet.table().beat(handle).context("the last beat")
}

fn beside_floor(stage: &mut dyn Stage) -> Result<()> {
    let lines = Lines::new(SLOTS);
    let index = OWN;
    beside(
        stage,
        &mut in_a_row(|| black_box(&lines).beat(*black_box(&index))),
    )
}

/// What a beat stored decides (always in the same way) which handle the next one uses.
fn dependent(stage: &mut dyn Stage) -> Result<()> {
    let fleet = Fleet::new(SLOTS, SLOTS - 1, 1)?;
    let lines = Lines::new(SLOTS);
    let table = fleet.table();
    let handles = [fleet.handles[OWN]; 2];
    let indices = [OWN; 2];
    let slot = table.cells(handles[0].slot()).context("a slot")?.slot;
    let (mut next, mut next_index) = (0, 0);
    stage.compare(
        &mut in_a_row(|| {
            let beat = table.beat(handles[next]).is_ok();
            // Bit 47 of an epoch is never set here.
            next = (slot.peek_beat().bits() >> 63) as usize;
            black_box(beat);
        }),
        &mut in_a_row(|| {
            next_index = (lines.beat_and_read(indices[next_index]) >> 47 & 1) as usize;
        }),
    )
}

/// The other core scans without a pause while the batch runs. Nobody is late: all 63 others never beat, and
/// the grace is without end.
fn beside_a_scanner(stage: &mut dyn Stage) -> Result<()> {
    let fleet = Fleet::new(SLOTS, SLOTS - 1, 1)?;
    let watched = fleet.open()?;
    let handle = fleet.handles[OWN];
    let (scanning, done, scans) = (
        AtomicBool::new(false),
        AtomicBool::new(false),
        AtomicU64::new(0),
    );
    thread::scope(|threads| {
        threads.spawn(|| {
            let watchdog = FailoverWatchdog::with_grace(&watched, u64::MAX);
            let mut report = ReclaimReport::default();
            while !done.load(Relaxed) {
                if scanning.load(Relaxed) {
                    watchdog.scan_into(&mut report);
                    scans.fetch_add(1, Relaxed);
                } else {
                    // Stands still, but stays on its core: waking it would be part of the batch.
                    spin_loop();
                }
            }
        });
        let mut batch = beats(fleet.table(), handle);
        let measured = stage.compare(
            &mut |times| {
                let before = scans.load(Relaxed);
                scanning.store(true, Relaxed);
                while scans.load(Relaxed) < before + 2 {
                    thread::yield_now();
                }
                let ns = batch(times);
                scanning.store(false, Relaxed);
                ns
            },
            &mut beats(fleet.table(), handle),
        );
        done.store(true, Relaxed);
        measured
    })?;
    ensure!(fleet.table().beat(handle).is_ok(), "the owner was fenced");
    Ok(())
}
