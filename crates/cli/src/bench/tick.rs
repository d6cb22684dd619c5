//! `bench tick`: what one control cycle of a hot-standby pair costs, without links and disks.
//!
//! A pair talks to itself once, in step, and the conversation is kept. Then each side alone is given
//! its half again, from the same state, and a whole block of cycles is timed with one reading of the
//! clock before and one after. Beside it, in turn: the work that no cycle can be without (one step, one
//! encoding, one CRC, one buffer to send). The medians of the blocks are told.

use std::hint::black_box;
use std::time::Instant;

use bumpless_standby::actuator::{Actuator, ActuatorConfig};
use bumpless_standby::authority::{Authority, LocalFile};
use bumpless_standby::checkpoint::{Checkpoint, CheckpointError, Controller};
use bumpless_standby::message::Received;
use bumpless_standby::persist::{Store, StoreError};
use bumpless_standby::{Config, Node, NodeId};
use clap::Args;
use serde::Serialize;

use super::error::BenchError;
use super::show;

const PERIOD_NS: u64 = 1_000_000;
/// Cycles until the pair is a primary and a qualified standby.
const SETTLED: u64 = 64;
const BLOCK: usize = 1024;
const CLUSTER: u64 = 1;

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

/// Eight integrators.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop([f64; 8]);

impl Checkpoint for Loop {
    fn schema(&self) -> u64 {
        8
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let mut encoded = [0; 64];
        for (chunk, value) in encoded.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *chunk = value.to_le_bytes();
        }
        bytes.extend_from_slice(&encoded);
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (chunks, []) = bytes.as_chunks::<8>() else {
            return Err(length(bytes));
        };
        let chunks: &[[u8; 8]; 8] = chunks.try_into().map_err(|_| length(bytes))?;
        Ok(Self(chunks.map(f64::from_le_bytes)))
    }

    fn check(&self) -> Result<(), CheckpointError> {
        match self.0.iter().find(|value| !value.is_finite()) {
            None => Ok(()),
            Some(value) => Err(CheckpointError::OutOfRange {
                what: "an integrator",
                found: value.to_string(),
                wanted: "finite".to_owned(),
            }),
        }
    }
}

fn length(bytes: &[u8]) -> CheckpointError {
    CheckpointError::Length {
        found: bytes.len(),
        wanted: 64,
    }
}

impl Controller for Loop {
    type Input = f64;
    type Output = f64;

    fn step(&mut self, input: &f64) {
        for value in &mut self.0 {
            *value += input;
        }
    }

    fn output(&self) -> f64 {
        self.0[0]
    }

    fn input_digest(input: &f64) -> u32 {
        let bits = input.to_bits();
        bits as u32 ^ (bits >> 32) as u32
    }
}

/// Memory: the disks are the driver's.
#[derive(Debug, Default)]
struct InMemory(Option<Vec<u8>>);

impl Store for InMemory {
    fn load(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.clone())
    }

    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.0 = Some(bytes.to_vec());
        Ok(())
    }
}

/// One side of a settled pair, and what it hears from then on.
pub struct Side {
    pub node: Node<Loop>,
    hears: Vec<Vec<Received>>,
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

/// A settled pair's two halves of a conversation.
pub fn converse() -> Result<[Side; 2], BenchError> {
    let mut pair = Pair::new()?;
    for cycle in 1..SETTLED {
        pair.cycle(cycle);
    }
    let mut sides = pair.nodes.clone().map(|node| Side {
        node,
        hears: Vec::new(),
    });
    for cycle in SETTLED..SETTLED + BLOCK as u64 {
        for (side, hears) in sides.iter_mut().zip(&pair.inboxes) {
            side.hears.push(hears.clone());
        }
        pair.cycle(cycle);
    }
    Ok(sides)
}

/// Two nodes in step: what one hears in a cycle was said in the one before.
struct Pair {
    nodes: [Node<Loop>; 2],
    inboxes: [Vec<Received>; 2],
    authorities: [LocalFile<InMemory>; 2],
    actuator: Actuator<f64>,
    store: InMemory,
}

impl Pair {
    fn new() -> Result<Self, BenchError> {
        let node = |id: u8| {
            let config = Config::new(CLUSTER, NodeId(id), NodeId(1 - id), PERIOD_NS);
            Node::new(config, 10 + u64::from(id), Loop([0.0; 8]))
        };
        let mut store = InMemory::default();
        let config = ActuatorConfig {
            cluster: CLUSTER,
            nodes: [NodeId(0), NodeId(1)],
            epoch_jump_max: 1024,
        };
        Ok(Self {
            nodes: [node(0)?, node(1)?],
            inboxes: Default::default(),
            authorities: [0, 1].map(|_| LocalFile::new(InMemory::default())),
            actuator: Actuator::start(config, 1, 0, &mut store)?,
            store,
        })
    }

    fn cycle(&mut self, cycle: u64) {
        let now_ns = cycle * PERIOD_NS;
        let mut said: [Vec<Received>; 2] = Default::default();
        for index in [0, 1] {
            let node = &mut self.nodes[index];
            let tick = node.tick(now_ns, cycle, &1.0, &self.inboxes[index]);
            if let Some(heartbeat) = tick.heartbeat {
                said[1 - index].push(Received::Heartbeat { path: 0, heartbeat });
            }
            if let Some(request) = tick.request {
                let reply = self.actuator.receive(now_ns, &request, &mut self.store);
                said[index].extend(reply.map(Received::Reply));
            }
            if let Some(above) = tick.ballot_wanted {
                let authority = &mut self.authorities[index];
                authority.want(node.config().node, above);
                said[index].extend(authority.poll().map(Received::Grant));
            }
        }
        self.inboxes = said;
    }
}

/// Nanoseconds a tick, over one block.
pub fn time_ticks(side: &Side) -> f64 {
    let mut node = side.node.clone();
    time_block(side, |now_ns, cycle, hears| {
        black_box(node.tick(now_ns, cycle, &1.0, hears));
    })
}

/// Nanoseconds of one call of `tick`, which is given time, cycle and what is heard, over one block.
pub fn time_block(side: &Side, mut tick: impl FnMut(u64, u64, &[Received])) -> f64 {
    let started = Instant::now();
    for (cycle, hears) in (SETTLED..).zip(&side.hears) {
        tick(cycle * PERIOD_NS, cycle, black_box(hears));
    }
    per_cycle_ns(started)
}

/// Nanoseconds of what no cycle can be without, over one block.
fn time_floor() -> f64 {
    let mut state = Loop([0.0; 8]);
    let mut encoded = Vec::with_capacity(64);
    let started = Instant::now();
    for _ in 0..BLOCK {
        state.step(black_box(&1.0));
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
