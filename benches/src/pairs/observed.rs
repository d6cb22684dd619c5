//! Beats that are observed: what the box adds, and what draining costs the other side.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bumpless_sidecar::{RING_CAPACITY, Scanner, SidecarBox};

use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::machine::clock_cost_ns;
use crate::pair::{Goal, Pair, Stage, in_a_row};

const SLOTS: usize = 64;
const OWN: usize = 31;
/// Observations between two drains: the ring never fills.
const CHUNK: u64 = RING_CAPACITY as u64 / 2;

pub const PAIRS: &[Pair] = &[
    Pair {
        name: "observed beat, drained",
        beside: "a beat and one locked operation",
        goal: Goal::AtMost(2.0),
        run: |stage| observed(stage, Timed::Beats),
    },
    Pair {
        name: "drain, for each observation",
        beside: "a beat and one locked operation",
        goal: Goal::Told,
        run: |stage| observed(stage, Timed::Drains),
    },
];

/// Which side is timed.
#[derive(Clone, Copy, PartialEq)]
enum Timed {
    Beats,
    Drains,
}

fn observed(stage: &mut dyn Stage, timed: Timed) -> Result<()> {
    let fleet = Fleet::new(SLOTS, SLOTS - 1, 1)?;
    let (table, handle) = (fleet.table(), fleet.handles[OWN]);
    let boxed = SidecarBox::new(table);
    let mut scanner = Scanner::new();
    let id = scanner.register(&boxed);
    let lines = Lines::new(1);
    let mut now_ns = 1;
    stage.compare(
        &mut |times| {
            let (mut ns, mut left) = (0.0, times);
            while left > 0 {
                let some = left.min(CHUNK);
                let mut all_beat = true;
                let started = Instant::now();
                for _ in 0..some {
                    all_beat &= black_box(&boxed).beat(*black_box(&handle)).is_ok();
                }
                let beats_ns = started.elapsed().as_nanos() as f64;
                ensure!(all_beat, "a beat was refused");
                now_ns += 1;
                let started = Instant::now();
                black_box(scanner.scan(now_ns));
                let drain_ns = started.elapsed().as_nanos() as f64;
                let timed_ns = if timed == Timed::Beats {
                    beats_ns
                } else {
                    drain_ns
                };
                ns += timed_ns - clock_cost_ns();
                left -= some;
            }
            Ok(ns)
        },
        &mut in_a_row(|| {
            black_box(black_box(table).beat(*black_box(&handle)).is_ok());
            black_box(&lines).add();
        }),
    )?;
    let stats = scanner.stats(id).context("the box's figures")?;
    ensure!(stats.dropped == 0, "{} observations dropped", stats.dropped);
    Ok(())
}
