//! Marks and completions: 128 at a time, the other half of each untimed.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bumpless_heartbeat::{Unit, UnitSet};

use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::machine::clock_cost_ns;
use crate::mutexes::{Lock, PerSlot, Record, Whole};
use crate::pair::{Batch, Goal, Pair, Stage, in_a_row};

const SLOTS: usize = 64;
const OWN: usize = 31;

pub const PAIRS: &[Pair] = &[
    Pair {
        name: "mark",
        beside: "one locked CAS",
        goal: Goal::AtMost(1.3),
        run: |stage| beside(stage, Half::Mark, &mut exchanges(&Lines::new(1))),
    },
    Pair {
        name: "complete",
        beside: "one locked CAS",
        goal: Goal::AtMost(1.3),
        run: |stage| beside(stage, Half::Complete, &mut exchanges(&Lines::new(1))),
    },
    Pair {
        name: "mark",
        beside: "Mutex<table>, std",
        goal: Goal::Told,
        run: |stage| beside_whole::<Mutex<_>>(stage, Half::Mark),
    },
    Pair {
        name: "mark",
        beside: "Mutex<table>, parking_lot",
        goal: Goal::Told,
        run: |stage| beside_whole::<parking_lot::Mutex<_>>(stage, Half::Mark),
    },
    Pair {
        name: "mark",
        beside: "Vec<Mutex<slot>>, std",
        goal: Goal::Told,
        run: |stage| beside_per_slot::<Mutex<_>, Mutex<_>>(stage, Half::Mark),
    },
    Pair {
        name: "mark",
        beside: "Vec<Mutex<slot>>, parking_lot",
        goal: Goal::Told,
        run: |stage| {
            beside_per_slot::<parking_lot::Mutex<_>, parking_lot::Mutex<_>>(stage, Half::Mark)
        },
    },
    Pair {
        name: "complete",
        beside: "Mutex<table>, std",
        goal: Goal::Told,
        run: |stage| beside_whole::<Mutex<_>>(stage, Half::Complete),
    },
    Pair {
        name: "complete",
        beside: "Mutex<table>, parking_lot",
        goal: Goal::Told,
        run: |stage| beside_whole::<parking_lot::Mutex<_>>(stage, Half::Complete),
    },
    Pair {
        name: "complete",
        beside: "Vec<Mutex<slot>>, std",
        goal: Goal::Told,
        run: |stage| beside_per_slot::<Mutex<_>, Mutex<_>>(stage, Half::Complete),
    },
    Pair {
        name: "complete",
        beside: "Vec<Mutex<slot>>, parking_lot",
        goal: Goal::Told,
        run: |stage| {
            beside_per_slot::<parking_lot::Mutex<_>, parking_lot::Mutex<_>>(stage, Half::Complete)
        },
    },
];

/// Which half is timed.
#[derive(Clone, Copy, PartialEq)]
enum Half {
    Mark,
    Complete,
}

/// A mutex does the same for both halves: it turns one bit over.
fn beside_whole<L: Lock<(u64, Vec<Record>)>>(stage: &mut dyn Stage, half: Half) -> Result<()> {
    let table = Whole::<L>::new(SLOTS);
    let mut marks = in_a_row(|| table.mark(black_box(OWN), black_box(5)));
    beside(stage, half, &mut marks)
}

fn beside_per_slot<C: Lock<u64>, L: Lock<Record>>(stage: &mut dyn Stage, half: Half) -> Result<()> {
    let table = PerSlot::<C, L>::new(SLOTS);
    let mut marks = in_a_row(|| table.mark(black_box(OWN), black_box(5)));
    beside(stage, half, &mut marks)
}

fn exchanges(lines: &Lines) -> impl FnMut(u64) -> Result<f64> {
    let mut value = 0;
    move |times| {
        // Registers of their own: the floor is the exchange, and not where its value is kept.
        let (mut now, mut all_won) = (value, true);
        let ns = in_a_row(|| {
            all_won &= black_box(lines).exchange(now, now + 1);
            now += 1;
        })(times);
        value = now;
        ensure!(all_won, "an exchange failed");
        ns
    }
}

fn beside(stage: &mut dyn Stage, half: Half, other: &mut Batch) -> Result<()> {
    let fleet = Fleet::new(SLOTS, SLOTS - 1, 1)?;
    let (table, handle) = (fleet.table(), fleet.handles[OWN]);
    let units: Vec<Unit> = UnitSet::from_bits(u128::MAX).iter().collect();
    let mut batch = |times: u64| {
        let (mut ns, mut left) = (0.0, times);
        while left > 0 {
            let some = units.get(..left as usize).unwrap_or(&units);
            let started = Instant::now();
            let mut all_done = true;
            for unit in some {
                all_done &= black_box(table).mark_in_flight(handle, *unit).is_ok();
            }
            let marked_ns = started.elapsed().as_nanos() as f64;
            let started = Instant::now();
            for unit in some {
                all_done &= black_box(table).clear_in_flight(handle, *unit).is_ok();
            }
            let completed_ns = started.elapsed().as_nanos() as f64;
            ensure!(all_done, "a unit was refused");
            let timed_ns = if half == Half::Mark {
                marked_ns
            } else {
                completed_ns
            };
            ns += timed_ns - clock_cost_ns();
            left -= some.len() as u64;
        }
        Ok(ns)
    };
    stage.compare(&mut batch, other)?;
    let left = table.snapshot(handle).context("the owner's slot")?;
    ensure!(left.in_flight_bitmap.is_empty(), "units are left");
    Ok(())
}
