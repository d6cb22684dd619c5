//! `bench tick`: what one control cycle of a hot-standby pair costs, without links and disks.
//!
//! A pair talks to itself once, in step, and the conversation is kept. Then each side alone is given
//! its half again, from the same state, and a whole block of cycles is timed with one reading of the
//! clock before and one after. Beside it, in turn: the work that no cycle can be without (one step, one
//! encoding, one CRC, one buffer to send). The medians of the blocks are told.

use std::hint::black_box;
use std::time::Instant;

use bumpless_standby::message::Received;
use bumpless_standby::rehearsal::{self, INPUT, Integrators, Side};
use bumpless_standby::{Checkpoint, Controller};
use clap::Args;
use serde::Serialize;

use super::error::BenchError;
use super::show;

const BLOCK: usize = 1024;

/// Nanoseconds of one cycle's `tick` with a state of 64 bytes: primary, standby, and the floor.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example: bumpless bench tick --json

primary   hears the standby and the actuator; steps, sends its checkpoint, drives
standby   hears the primary and the actuator; adopts, steps, compares
floor     one step, one encoding, one CRC-32C and one copied buffer, without a protocol

No link, no disk, no clock inside: those are the driver's.")]
pub struct TickArguments {
    /// Blocks of 1,024 cycles
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub blocks: u32,

    /// Print one line of JSON instead of the table
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct TickFigures {
    state_len: usize,
    blocks: u32,
    primary_ns: f64,
    standby_ns: f64,
    floor_ns: f64,
}

/// Measures and prints.
pub fn run(arguments: &TickArguments) -> Result<(), BenchError> {
    let [primary, standby] = converse()?;
    let blocks = arguments.blocks as usize;
    let (mut primary_ns, mut standby_ns, mut floor_ns) = (vec![], vec![], vec![]);
    for _ in 0..blocks {
        primary_ns.push(time_ticks(&primary));
        standby_ns.push(time_ticks(&standby));
        floor_ns.push(time_floor());
    }
    let figures = TickFigures {
        state_len: 64,
        blocks: arguments.blocks,
        primary_ns: median(&mut primary_ns),
        standby_ns: median(&mut standby_ns),
        floor_ns: median(&mut floor_ns),
    };
    if arguments.json {
        show(&format!("{}\n", serde_json::json!(figures)))?;
    } else {
        show(&format!(
            "one tick, state of 64 bytes, median of {blocks} blocks of {BLOCK} cycles, in ns\n\n  \
             primary  {:>8.1}\n  standby  {:>8.1}\n  floor    {:>8.1}\n",
            figures.primary_ns, figures.standby_ns, figures.floor_ns
        ))?;
    }
    Ok(())
}

/// A settled pair's two halves of a conversation of one block.
pub fn converse() -> Result<[Side; 2], BenchError> {
    Ok(rehearsal::converse(BLOCK)?)
}

/// Nanoseconds a tick, over one block.
pub fn time_ticks(side: &Side) -> f64 {
    let mut node = side.node.clone();
    time_block(side, |now_ns, cycle, hears| {
        black_box(node.tick(now_ns, cycle, &INPUT, hears));
    })
}

/// Nanoseconds of one call of `tick`, which is given time, cycle and what is heard, over one block.
pub fn time_block(side: &Side, mut tick: impl FnMut(u64, u64, &[Received])) -> f64 {
    let started = Instant::now();
    side.replay(BLOCK, |now_ns, cycle, hears| {
        tick(now_ns, cycle, black_box(hears));
    });
    per_cycle_ns(started)
}

/// Nanoseconds of what no cycle can be without, over one block.
fn time_floor() -> f64 {
    let mut state = Integrators::default();
    let mut encoded = Vec::with_capacity(64);
    let started = Instant::now();
    for _ in 0..BLOCK {
        state.step(black_box(&INPUT));
        encoded.clear();
        state.encode(&mut encoded);
        black_box(crc32c::crc32c(&encoded));
        black_box(encoded.clone());
    }
    per_cycle_ns(started)
}

fn per_cycle_ns(started: Instant) -> f64 {
    started.elapsed().as_nanos() as f64 / BLOCK as f64
}

/// The middle one, or 0.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
