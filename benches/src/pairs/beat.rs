//! Beats: alone, each waiting for the last, and beside a scanner on another core.
//!
//! Relaxed: read by the thread that stored it.

use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use anyhow::{Context, Result, ensure};
use bumpless_failover::{FailoverWatchdog, ReclaimReport};
use bumpless_heartbeat::{Handle, HeartbeatTable};

use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::mutexes::{PerSlot, Record, Whole};
use crate::other_core::with_other_core;
use crate::pair::{Batch, Goal, Pair, Stage, each_after_the_last, in_a_row};

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

/// What a beat stored decides (always in the same way) which slot the next one is for, and where it looks for
/// what that one stored: an address that is known before would let the processor guess the value.
fn dependent(stage: &mut dyn Stage) -> Result<()> {
    let fleet = Fleet::new(SLOTS, SLOTS - 1, 1)?;
    let lines = Lines::new(SLOTS);
    let table = fleet.table();
    let handles = black_box([fleet.handles[OWN]; 2]);
    let indices = black_box([OWN; 2]);
    let slots = black_box([table.cells(handles[0].slot()).context("a slot")?.slot; 2]);
    let stored = black_box([lines.stored(OWN).context("a line")?; 2]);
    let mut all_beat = true;
    // Never set here: neither in an epoch nor in a beat of an early generation.
    let top_bit = |word: u64| (word >> 63) as usize;
    stage.compare(
        &mut each_after_the_last(|next| {
            all_beat &= table.beat(handles[next]).is_ok();
            top_bit(slots[next].peek_beat().bits())
        }),
        &mut each_after_the_last(|next| {
            lines.beat(indices[next]);
            top_bit(stored[next].load(Relaxed))
        }),
    )?;
    ensure!(all_beat, "a beat was refused");
    Ok(())
}

/// The other core scans without a pause while the batch runs. Nobody is late: all 63 others never beat, and
/// the grace is without end.
fn beside_a_scanner(stage: &mut dyn Stage) -> Result<()> {
    let fleet = Fleet::new(SLOTS, SLOTS - 1, 1)?;
    let watched = fleet.open()?;
    let handle = fleet.handles[OWN];
    let watchdog = FailoverWatchdog::with_grace(&watched, u64::MAX);
    let mut report = ReclaimReport::default();
    with_other_core(
        || watchdog.scan_into(&mut report),
        |scanner| {
            let mut batch = beats(fleet.table(), handle);
            stage.compare(
                &mut |times| scanner.beside(&mut batch, times),
                &mut beats(fleet.table(), handle),
            )
        },
    )?;
    ensure!(report.is_empty(), "somebody was found dead");
    Ok(())
}
