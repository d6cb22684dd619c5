//! A seeded world in discrete time: two nodes, their actuator, the plant and everything between them.
//!
//! What runs is what ships: [`Node`], [`Actuator`], the authorities. The world gives them clocks, a
//! network, disks and sensors, all of which fail as a test or a seed says, and it breaks off the run in
//! the cycle in which a rule of [`ledger`] is broken.
//!
//! ```text
//!   cycle k, from k·T:   sensors show input k ─▶ arrivals and ticks in the order of time ─▶ rules
//!   tick of a node:      arrived since its last ─▶ Node::tick ─▶ two paths to the partner, actuator
//! ```
//!
//! The sensors number the cycles. A node that ticks takes the newest input; if it has had that one, it has
//! ticked too early and does nothing.

mod cycle;
pub mod disk;
mod faults;
pub mod ledger;
pub mod loops;
pub mod net;
mod seat;
pub mod wire;

use std::collections::VecDeque;

use bumpless_standby::message::Heartbeat;
use bumpless_standby::node::State;
use bumpless_standby::{Actuator, ActuatorConfig, Config, Node, NodeId};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use disk::{Disk, Kind, Office};
use ledger::Ledger;
use loops::Plant;
use net::{Links, Queue};
pub use seat::Clock;
use seat::Seat;
use wire::Wire;

/// The cycle of all scenarios.
pub const PERIOD_NS: u64 = 10_000_000;
pub const CLUSTER: u64 = 0xb0;
/// The node with the lower id.
pub const A: usize = 0;
pub const B: usize = 1;
/// Inputs and ideals that are kept, in cycles.
const KEPT: usize = 128;

/// How a world begins.
pub struct Setup {
    pub seed: u64,
    pub authority: Kind,
    pub latency_ns: u64,
    /// When in the cycle each node ticks.
    pub phase_ns: [u64; 2],
    pub clocks: [Clock; 2],
    pub configs: [Config; 2],
}

impl Setup {
    /// A hot pair with 3 missed cycles, two paths, a latency of 2 ms, and files.
    pub fn new(seed: u64) -> Self {
        let config = |node, partner| {
            let mut config = Config::new(CLUSTER, NodeId(node), NodeId(partner), PERIOD_NS);
            config.paths = 2;
            config
        };
        Self {
            seed,
            authority: Kind::LocalFile,
            latency_ns: 2_000_000,
            phase_ns: [0, 0],
            clocks: [Clock::default(); 2],
            configs: [config(0, 1), config(1, 0)],
        }
    }

    /// With this change of both nodes' settings.
    pub fn with(mut self, change: impl Fn(&mut Config)) -> Self {
        self.configs.iter_mut().for_each(change);
        self
    }
}

/// Sees, and may change, every heartbeat as it enters a path; false: it is lost.
pub type Tap = Box<dyn FnMut(&mut Tapped<'_>) -> bool>;

/// A heartbeat on its way into a path.
#[derive(Debug)]
pub struct Tapped<'a> {
    pub from: usize,
    pub path: u8,
    /// Counted from where the pair had settled.
    pub cycle: u64,
    pub heartbeat: &'a mut Heartbeat,
}

/// The world.
pub struct World<P: Plant> {
    pub plant: P,
    pub seats: [Seat<P>; 2],
    pub links: Links,
    pub actuator: Actuator<P::Out>,
    pub actuator_disk: Disk,
    pub ledger: Ledger,
    pub rng: Pcg64Mcg,
    /// When each node last sent an output.
    pub drove_at_ns: [u64; 2],
    /// When each node last became primary.
    pub began_at_ns: [u64; 2],
    pub tap: Option<Tap>,
    /// Everything goes as bytes; `None`: as values.
    pub wire: Option<Wire>,
    seed: u64,
    authority: Kind,
    queue: Queue<P::Out>,
    /// The next cycle.
    cycle: u64,
    /// Cycles of tests are counted from here.
    base: u64,
    inputs: VecDeque<(u64, P::In)>,
    /// Gets every input once, never fails.
    ideal: P::Loop,
    ideals: VecDeque<(u64, P::Out)>,
}

impl<P: Plant> World<P> {
    pub fn new(plant: P, setup: Setup) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(setup.seed);
        let mut actuator_disk = Disk::default();
        let actuator_config = ActuatorConfig {
            cluster: CLUSTER,
            nodes: [NodeId(0), NodeId(1)],
            epoch_jump_max: setup.configs[A].epoch_jump_max,
        };
        let incarnation = rng.random_range(1..=u64::MAX);
        let actuator = Actuator::start(actuator_config, incarnation, 0, &mut actuator_disk)
            .expect("an empty disk can be read");
        let first = 1;
        let mut order = 0..2;
        let seats = setup.configs.map(|config| {
            let index = order.next().expect("two configs");
            let disk = Disk::default();
            Seat {
                node: None,
                office: Office::new(&setup.authority, &disk, 0),
                disk,
                clock: setup.clocks[index],
                inbox: Vec::new(),
                is_paused: false,
                next_tick_ns: first * PERIOD_NS + setup.phase_ns[index],
                last_cycle: 0,
                input_age_cycles: 0,
                sensor: None,
                last_tick_ns: 0,
                config,
            }
        });
        let mut world = Self {
            ideal: plant.controller(),
            plant,
            seats,
            links: Links::with_latency(setup.latency_ns),
            actuator,
            actuator_disk,
            ledger: Ledger::default(),
            rng,
            drove_at_ns: [0; 2],
            began_at_ns: [0; 2],
            tap: None,
            wire: None,
            seed: setup.seed,
            authority: setup.authority,
            queue: Queue::new(),
            cycle: first,
            base: first,
            inputs: VecDeque::with_capacity(KEPT),
            ideals: VecDeque::with_capacity(KEPT),
        };
        world.start(A);
        world.start(B);
        world
    }

    /// A pair that has settled: A drives, B is qualified, and cycles are counted from here.
    pub fn settled(plant: P, setup: Setup) -> Self {
        let mut world = Self::new(plant, setup);
        world.commission();
        world.settle(60);
        assert_eq!(world.primary(), Some(A), "seed {}", world.seed);
        world
    }

    /// Runs until one node drives and the other is qualified, and counts cycles from there.
    pub fn settle(&mut self, cycles_max: u64) {
        self.expect_pair_within(cycles_max);
        self.base = self.cycle;
        self.ledger.clear();
    }

    /// Runs all cycles before this one, counted from where the pair had settled.
    pub fn run_to(&mut self, cycle: u64) {
        if let Err(violation) = self.try_run_to(cycle) {
            panic!("{violation}");
        }
    }

    /// As `run_to`; ends in the cycle in which a rule is broken.
    pub fn try_run_to(&mut self, cycle: u64) -> Result<(), String> {
        while self.cycle < self.base + cycle {
            self.run_cycle();
            if let Some(violation) = &self.ledger.violation {
                let (seed, cycle) = (self.seed, self.cycle - 1 - self.base);
                let tail = self.ledger.tail();
                return Err(format!("seed {seed}, cycle {cycle}: {violation}\n{tail}"));
            }
        }
        Ok(())
    }

    pub fn run(&mut self, cycles: u64) {
        self.run_to(self.now() + cycles);
    }

    /// The next cycle, counted from where the pair had settled.
    pub fn now(&self) -> u64 {
        self.cycle - self.base
    }

    /// The node at this place, which must live.
    pub fn node(&self, index: usize) -> &Node<P::Loop> {
        self.seats[index].node.as_ref().expect("the node lives")
    }

    pub fn state(&self, index: usize) -> Option<State> {
        Some(self.seats[index].node.as_ref()?.state())
    }

    /// The only node that drives; `None` if no one or both do.
    pub fn primary(&self) -> Option<usize> {
        let drives =
            [A, B].map(|index| matches!(self.state(index), Some(State::Primary | State::Solo)));
        match drives {
            [true, false] => Some(A),
            [false, true] => Some(B),
            _ => None,
        }
    }

    /// One primary and one qualified standby, and both know it.
    pub fn is_pair(&self) -> bool {
        let states = [self.state(A), self.state(B)];
        matches!(
            states,
            [Some(State::Primary), Some(State::Qualified)]
                | [Some(State::Qualified), Some(State::Primary)]
        )
    }
}
