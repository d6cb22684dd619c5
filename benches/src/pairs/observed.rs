//! Beats that are observed, and observations on their way through a ring.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use bumpless_sidecar::{Observation, ObservationRing, RING_CAPACITY, Scanner, SidecarBox, TableOp};

use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::machine::clock_cost_ns;
use crate::pair::{Goal, Pair, Stage, in_a_row};

const SLOTS: usize = 64;
const OWN: usize = 31;
/// Observations between two drains: the ring never fills.
const CHUNK: u64 = RING_CAPACITY as u64 / 2;

/// Beats between two drains: one in 256 is recorded, the others are counted where they are.
const BEATS: u64 = 128 * CHUNK;

pub const PAIRS: &[Pair] = &[
    Pair {
        name: "observed beat, drained",
        beside: "a beat and one locked operation",
        goal: Goal::AtMost(2.0),
        run: observed_beat,
    },
    Pair {
        name: "push",
        beside: "one locked operation",
        goal: Goal::Told,
        run: |stage| through_a_ring(stage, Timed::Push),
    },
    Pair {
        name: "drain, for each observation",
        beside: "one locked operation",
        goal: Goal::Told,
        run: |stage| through_a_ring(stage, Timed::Drain),
    },
];

/// Which side of the ring is timed.
#[derive(Clone, Copy, PartialEq)]
enum Timed {
    Push,
    Drain,
}

fn observed_beat(stage: &mut dyn Stage) -> Result<()> {
    let fleet = Fleet::new(SLOTS, SLOTS - 1, 1)?;
    let (table, handle) = (fleet.table(), fleet.handles[OWN]);
    let boxed = SidecarBox::new(table);
    let mut scanner = Scanner::new();
    let id = scanner.register(&boxed);
    let lines = Lines::new(1);
    let (mut now_ns, mut observed) = (1, 0);
    stage.compare(
        &mut |times| {
            let (mut ns, mut left) = (0.0, times);
            while left > 0 {
                let some = left.min(BEATS);
                let mut all_beat = true;
                let beat = || all_beat &= black_box(&boxed).beat(*black_box(&handle)).is_ok();
                ns += in_a_row(beat)(some)?;
                ensure!(all_beat, "a beat was refused");
                (now_ns, observed, left) = (now_ns + 1, observed + some, left - some);
                black_box(scanner.scan(now_ns));
            }
            Ok(ns)
        },
        &mut |times| {
            let mut all_beat = true;
            let ns = in_a_row(|| {
                all_beat &= black_box(table).beat(*black_box(&handle)).is_ok();
                black_box(&lines).add();
            })(times);
            ensure!(all_beat, "a beat was refused");
            ns
        },
    )?;
    let stats = scanner.stats(id).context("the box's figures")?;
    let counted = stats.op(TableOp::Beat).count;
    ensure!(counted == observed, "{counted} of {observed} beats counted");
    ensure!(stats.dropped == 0, "{} observations dropped", stats.dropped);
    Ok(())
}

/// Half a ring full is pushed, then drained.
fn through_a_ring(stage: &mut dyn Stage, timed: Timed) -> Result<()> {
    let ring = ObservationRing::with_capacity(RING_CAPACITY);
    let observation = Observation {
        value: 1,
        ..Observation::default()
    };
    let lines = Lines::new(1);
    let mut now_ns = 1;
    stage.compare(
        &mut |times| {
            let (mut ns, mut left) = (0.0, times);
            while left > 0 {
                let some = left.min(CHUNK);
                let (mut all_pushed, mut drained) = (true, 0);
                let push = || all_pushed &= black_box(&ring).push(*black_box(&observation));
                let push_ns = in_a_row(push)(some)?;
                ensure!(all_pushed, "an observation was dropped");
                now_ns += 1;
                let started = Instant::now();
                while drained < some {
                    let before = drained;
                    ring.drain(now_ns, &mut |observation| {
                        black_box(observation.value);
                        drained += 1;
                    });
                    ensure!(drained > before, "{drained} of {some} drained");
                }
                let drain_ns = started.elapsed().as_nanos() as f64;
                let timed_ns = if timed == Timed::Push {
                    push_ns
                } else {
                    drain_ns
                };
                ns += timed_ns - clock_cost_ns();
                left -= some;
            }
            Ok(ns)
        },
        &mut in_a_row(|| black_box(&lines).add()),
    )
}
