//! Snapshots, used field by field: a snapshot that is used as a whole is copied through memory, and then
//! the copy is what is measured.

use std::hint::black_box;
use std::sync::Mutex;

use anyhow::{Context, Result};
use bumpless_heartbeat::HeartbeatTable;

use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::mutexes::{PerSlot, Record, Whole};
use crate::pair::{Batch, Goal, Pair, Stage, in_a_row};

const SLOTS: usize = 64;
const SLOT: usize = 31;

/// Snapshots beside their floor and the mutexes.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "snapshot",
        beside: "the loads alone",
        goal: Goal::AtMost(2.5),
        run: |stage| {
            let (lines, index) = (Lines::new(SLOTS), SLOT);
            beside(
                stage,
                &mut in_a_row(|| black_box(&lines).look(*black_box(&index))),
            )
        },
    },
    Pair {
        name: "snapshot",
        beside: "Mutex<table>, std",
        goal: Goal::Faster(7.0),
        run: |stage| {
            let table = Whole::<Mutex<_>>::new(SLOTS);
            beside(stage, &mut in_a_row(|| table.look(black_box(SLOT))))
        },
    },
    Pair {
        name: "snapshot",
        beside: "Mutex<table>, parking_lot",
        goal: Goal::Faster(7.0),
        run: |stage| {
            let table = Whole::<parking_lot::Mutex<_>>::new(SLOTS);
            beside(stage, &mut in_a_row(|| table.look(black_box(SLOT))))
        },
    },
    Pair {
        name: "snapshot",
        beside: "Vec<Mutex<slot>>, std",
        goal: Goal::Faster(7.0),
        run: |stage| {
            let table = PerSlot::<Mutex<u64>, Mutex<Record>>::new(SLOTS);
            beside(stage, &mut in_a_row(|| table.look(black_box(SLOT))))
        },
    },
    Pair {
        name: "snapshot",
        beside: "Vec<Mutex<slot>>, parking_lot",
        goal: Goal::Faster(7.0),
        run: |stage| {
            let table = PerSlot::<parking_lot::Mutex<u64>, parking_lot::Mutex<Record>>::new(SLOTS);
            beside(stage, &mut in_a_row(|| table.look(black_box(SLOT))))
        },
    },
];

/// One snapshot, each field seen by the optimizer as used, and as it is: put together with others, some would
/// go through memory in two parts and come back as one, which waits for both.
#[inline(always)]
pub fn look(table: &HeartbeatTable, slot: usize) {
    let Some(found) = table.snapshot(slot) else {
        return;
    };
    let units = found.in_flight_bitmap.bits();
    black_box(found.pid);
    black_box(found.generation);
    black_box(found.last_seen_epoch);
    black_box(units as u64);
    black_box((units >> 64) as u64);
    black_box(found.role);
    black_box(found.grace_epochs);
    black_box(found.is_fenced);
    black_box(found.certificate);
}

fn beside(stage: &mut dyn Stage, other: &mut Batch) -> Result<()> {
    let fleet = Fleet::new(SLOTS, SLOTS - 1, 1)?;
    let (table, slot) = (fleet.table(), SLOT);
    table.snapshot(slot).context("a snapshot to measure")?;
    stage.compare(
        &mut in_a_row(|| look(black_box(table), *black_box(&slot))),
        other,
    )
}
