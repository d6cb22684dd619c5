//! A standby pair that is settled, and what each of the two hears from then on.
//!
//! Contract: the two talk in step, over no link, with an actuator and authorities in memory, until one is the
//! primary and the other could take over. Then what each hears is kept, so that one alone can be given its
//! half again, from the same state: a tick by itself, without the other and without links and disks.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use bumpless_standby::authority::{Authority, LocalFile};
use bumpless_standby::message::{Heartbeat, Received};
use bumpless_standby::node::State;
use bumpless_standby::persist::{Store, StoreError};
use bumpless_standby::{Actuator, ActuatorConfig, Config, Node, NodeId};

use crate::integrators::Integrators;
use crate::machine::clock_cost_ns;

/// Cycles that can be given to one side again.
pub const CYCLES: usize = 4_096;
/// Ticks that are timed together: what is heard in them stays in the processor's caches, as what a node heard
/// from a socket a moment ago does.
const BLOCK: usize = 256;
/// Cycles until the two are a primary and a standby that could take over.
const SETTLED: u64 = 64;
const PERIOD_NS: u64 = 1_000_000;
const CLUSTER: u64 = 1;
const INPUT: f64 = 1.0;

/// One of the two, and what it hears from now on.
#[derive(Debug)]
pub struct Side {
    node: Node<Integrators>,
    hears: Vec<Vec<Received>>,
}

/// A conversation: the primary's side and the standby's.
///
/// # Errors
/// The two did not settle.
pub fn converse() -> Result<[Side; 2]> {
    let mut duo = Duo::new()?;
    for cycle in 1..SETTLED {
        duo.cycle(cycle);
    }
    let mut sides = duo.nodes.clone().map(|node| Side {
        node,
        hears: Vec::with_capacity(CYCLES),
    });
    for cycle in (SETTLED..).take(CYCLES) {
        for (side, heard) in sides.iter_mut().zip(&duo.heard) {
            side.hears.push(heard.clone());
        }
        duo.cycle(cycle);
    }
    let states = || duo.nodes.iter().map(Node::state);
    ensure!(
        states().eq([State::Primary, State::Qualified]),
        "the pair is {:?}",
        states().collect::<Vec<_>>()
    );
    Ok(sides)
}

impl Side {
    /// So many ticks, as often from the beginning as needed; the nanoseconds that they took.
    ///
    /// # Errors
    /// The side does not stand where it stood.
    pub fn ticks(&self, times: u64) -> Result<f64> {
        let (mut ns, mut left) = (0.0, times as usize);
        while left > 0 {
            let some = left.min(BLOCK);
            let mut node = self.node.clone();
            let started = Instant::now();
            self.replay(&mut node, some);
            ns += started.elapsed().as_nanos() as f64 - clock_cost_ns();
            ensure!(
                node.state() == self.node.state(),
                "{:?} after {some} ticks",
                node.state()
            );
            left -= some;
        }
        Ok(ns)
    }

    /// The first ticks, without a look at the clock: at most [`CYCLES`].
    pub fn first_ticks(&self, times: usize) {
        self.replay(&mut self.node.clone(), times);
    }

    fn replay(&self, node: &mut Node<Integrators>, times: usize) {
        for (cycle, heard) in (SETTLED..).zip(self.hears.iter().take(times)) {
            black_box(node.tick(cycle * PERIOD_NS, cycle, &INPUT, black_box(heard)));
        }
    }

    /// The standby hears nothing any more. The nanoseconds of the tick in which it takes over, which is to be
    /// the one in the last cycle of its miss limit and no other.
    ///
    /// # Errors
    /// It takes over in another one, or not at all.
    pub fn take_over(&self) -> Result<f64> {
        let mut node = self.node.clone();
        let silent_cycles = u64::from(node.config().miss_limit);
        let promoting = SETTLED + silent_cycles;
        // What was said in the last cycle before the silence arrives in this one.
        black_box(node.tick(SETTLED * PERIOD_NS, SETTLED, &INPUT, &self.hears[0]));
        for cycle in SETTLED + 1..promoting {
            black_box(node.tick(cycle * PERIOD_NS, cycle, &INPUT, &[]));
            ensure!(
                !drives(&node),
                "took over {} cycles early",
                promoting - cycle
            );
        }
        let started = Instant::now();
        black_box(node.tick(promoting * PERIOD_NS, promoting, &INPUT, &[]));
        let ns = started.elapsed().as_nanos() as f64 - clock_cost_ns();
        ensure!(
            drives(&node),
            "{:?} after {silent_cycles} silent cycles",
            node.state()
        );
        Ok(ns)
    }

    /// The first heartbeat that this side hears.
    #[must_use]
    pub fn heartbeat(&self) -> Option<&Heartbeat> {
        self.hears.iter().flatten().find_map(|heard| match heard {
            Received::Heartbeat { heartbeat, .. } => Some(heartbeat),
            _ => None,
        })
    }
}

fn drives(node: &Node<Integrators>) -> bool {
    matches!(node.state(), State::Primary | State::Solo)
}

/// Two nodes in step: what one hears in a cycle was said in the one before.
struct Duo {
    nodes: [Node<Integrators>; 2],
    heard: [Vec<Received>; 2],
    authorities: [LocalFile<InMemory>; 2],
    actuator: Actuator<f64>,
    level: InMemory,
}

impl Duo {
    fn new() -> Result<Self> {
        let ids = [NodeId(0), NodeId(1)];
        let node = |own: usize| {
            let config = Config::new(CLUSTER, ids[own], ids[1 - own], PERIOD_NS);
            Node::new(config, 10 + own as u64, Integrators::default())
        };
        let plant = ActuatorConfig {
            cluster: CLUSTER,
            nodes: ids,
            epoch_jump_max: 1_024,
        };
        let mut level = InMemory::default();
        Ok(Self {
            nodes: [node(0)?, node(1)?],
            heard: [vec![], vec![]],
            authorities: [InMemory::default(), InMemory::default()].map(LocalFile::new),
            actuator: Actuator::start(plant, 1, 0, &mut level)?,
            level,
        })
    }

    fn cycle(&mut self, cycle: u64) {
        let now_ns = cycle * PERIOD_NS;
        let mut said = [vec![], vec![]];
        for own in [0, 1] {
            let node = &mut self.nodes[own];
            let tick = node.tick(now_ns, cycle, &INPUT, &self.heard[own]);
            let heartbeat = tick.heartbeat;
            said[1 - own]
                .extend(heartbeat.map(|heartbeat| Received::Heartbeat { path: 0, heartbeat }));
            if let Some(request) = tick.request {
                let reply = self.actuator.receive(now_ns, &request, &mut self.level);
                said[own].extend(reply.map(Received::Reply));
            }
            if let Some(above) = tick.ballot_wanted {
                let authority = &mut self.authorities[own];
                authority.want(node.config().node, above);
                said[own].extend(authority.poll().map(Received::Grant));
            }
        }
        self.heard = said;
    }
}

/// What would be on a disk: disks are the driver's, not the tick's.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standby_takes_over_in_the_last_cycle_of_its_miss_limit_and_the_primary_never_does() {
        let [primary, standby] = converse().unwrap();
        standby.take_over().unwrap();
        assert!(primary.take_over().is_err(), "it drives already");
        standby.ticks(2 * BLOCK as u64 + 1).unwrap();
    }
}
