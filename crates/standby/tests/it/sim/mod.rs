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

pub mod disk;
mod faults;
pub mod ledger;
pub mod loops;
pub mod net;
mod seat;

use std::collections::VecDeque;

use bumpless_standby::event::{Event, Promotion};
use bumpless_standby::message::{Action, Heartbeat, Received, Request, Verdict};
use bumpless_standby::node::State;
use bumpless_standby::{Actuator, ActuatorConfig, Config, Controller, Node, NodeId, Tick};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use disk::{Disk, Kind, Office};
use ledger::{Accepted, Before, Ledger};
use loops::Plant;
use net::{Links, Message, Queue};
pub use seat::Clock;
use seat::Seat;

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
                return Err(format!("seed {seed}, cycle {cycle}: {violation}"));
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

    fn run_cycle(&mut self) {
        let end_ns = (self.cycle + 1) * PERIOD_NS;
        self.sample();
        loop {
            let ticks_ns = [self.seats[A].next_tick_ns, self.seats[B].next_tick_ns];
            let arrival_ns = self.queue.next_at_ns();
            let first_ns = arrival_ns.min(ticks_ns[A]).min(ticks_ns[B]);
            if first_ns >= end_ns {
                break;
            }
            if arrival_ns == first_ns {
                if let Some(message) = self.queue.pop() {
                    self.deliver(arrival_ns, message);
                }
            } else {
                let index = if ticks_ns[A] == first_ns { A } else { B };
                self.seats[index].next_tick_ns += self.seats[index].clock.period_ns();
                self.tick(index, first_ns);
            }
        }
        self.cycle += 1;
    }

    /// The sensors show the input of this cycle, and the ideal controller takes it.
    fn sample(&mut self) {
        let held = self.actuator.held().map(|held| &held.value);
        let input = self.plant.sample(self.cycle, held);
        self.ideal.step(&input);
        if self.inputs.len() == KEPT {
            self.inputs.pop_front();
            self.ideals.pop_front();
        }
        self.inputs.push_back((self.cycle, input));
        self.ideals.push_back((self.cycle, self.ideal.output()));
    }

    fn tick(&mut self, index: usize, now_ns: u64) {
        let Some(before) = self.before(index, now_ns) else {
            return;
        };
        let seat = &mut self.seats[index];
        let shown = self.cycle.saturating_sub(seat.input_age_cycles);
        let (Some((_, newest)), found) = (
            self.inputs.back(),
            self.inputs.iter().rev().find(|(cycle, _)| *cycle == shown),
        ) else {
            return;
        };
        let input = found.map_or(newest, |(_, input)| input).clone();
        let Some(mut tick) = seat.tick(now_ns, self.cycle, input) else {
            return;
        };
        if let Some(Action::Drive(_)) = tick.request.as_ref().map(|request| &request.action) {
            self.drove_at_ns[index] = now_ns;
        }
        if tick
            .events
            .iter()
            .any(|event| matches!(event, Event::Promoted { .. }))
        {
            self.began_at_ns[index] = now_ns;
        }
        self.note(index, before, &mut tick);
        self.send(index, now_ns, tick);
    }

    fn before(&self, index: usize, now_ns: u64) -> Option<Before> {
        let other = &self.seats[1 - index];
        let is_in_time = now_ns < other.last_tick_ns + PERIOD_NS / 4 * 7;
        let partner_is_primary = other.is_running()
            && is_in_time
            && matches!(self.state(1 - index), Some(State::Primary | State::Solo));
        Some(Before {
            adopted: self.seats[index].node.as_ref()?.adopted(),
            partner_is_primary,
        })
    }

    fn note(&mut self, index: usize, before: Before, tick: &mut Tick<P::Out>) {
        let (Some(node), Some(heartbeat)) = (&self.seats[index].node, &tick.heartbeat) else {
            return;
        };
        // A plant that starts from nothing: the ideal starts with it.
        let starts = tick.events.iter().any(is_start);
        if starts && before.adopted.0 == bumpless_standby::Epoch::NONE {
            self.ideal = node.controller().clone();
            let output = self.ideal.output();
            if let Some(ideal) = self.ideals.back_mut() {
                ideal.1 = output;
            }
        }
        let status = node.status();
        let node_is = (&status, node.config().mode, node.adopted());
        let events = std::mem::take(&mut tick.events);
        self.ledger
            .note_tick(self.cycle, index, before, heartbeat, events, node_is);
    }

    fn send(&mut self, index: usize, now_ns: u64, tick: Tick<P::Out>) {
        let to = 1 - index;
        let paths = self.seats[index].config.paths;
        for path in 0..paths {
            let link = &self.links.sync[usize::from(path)][index];
            if let Some(mut heartbeat) = tick.heartbeat.clone() {
                let is_sent = self.tap.as_mut().is_none_or(|tap| {
                    tap(&mut Tapped {
                        from: index,
                        path,
                        cycle: self.cycle.saturating_sub(self.base),
                        heartbeat: &mut heartbeat,
                    })
                });
                if !is_sent {
                    continue;
                }
                let message = Message::Heartbeat {
                    to,
                    path,
                    heartbeat,
                };
                self.queue.send(now_ns, link, &mut self.rng, message);
            }
            for fragment in tick.fragments.iter().cloned() {
                let message = Message::Fragment { to, path, fragment };
                self.queue.send(now_ns, link, &mut self.rng, message);
            }
        }
        let link = &self.links.requests[index];
        if let Office::Witness(witness) = &self.seats[index].office
            && let Some((epoch, action)) = witness.request()
            && let Some(heartbeat) = &tick.heartbeat
        {
            let request = Request {
                cluster: heartbeat.cluster,
                node: heartbeat.node,
                incarnation: heartbeat.incarnation,
                epoch,
                seq: heartbeat.seq,
                actuator: 0,
                action,
            };
            let message = Message::Request(request);
            self.queue.send(now_ns, link, &mut self.rng, message);
        }
        if let Some(request) = tick.request {
            let message = Message::Request(request);
            self.queue.send(now_ns, link, &mut self.rng, message);
        }
    }

    fn deliver(&mut self, now_ns: u64, message: Message<P::Out>) {
        let (to, received) = match message {
            Message::Request(request) => return self.actuate(now_ns, &request),
            Message::Heartbeat {
                to,
                path,
                heartbeat,
            } => (to, Received::Heartbeat { path, heartbeat }),
            Message::Fragment { to, path, fragment } => (to, Received::Fragment { path, fragment }),
            Message::Reply { to, reply } => {
                if let Office::Witness(witness) = &mut self.seats[to].office {
                    witness.receive(&reply);
                }
                (to, Received::Reply(reply))
            }
        };
        let seat = &mut self.seats[to];
        if seat.node.is_some() {
            seat.inbox.push(received);
        }
    }

    fn actuate(&mut self, now_ns: u64, request: &Request<P::Out>) {
        let reply = self
            .actuator
            .receive(now_ns, request, &mut self.actuator_disk);
        let Some(reply) = reply else { return };
        let writer = usize::from(request.node.0);
        if let (Action::Drive(value), Verdict::Ack) = (&request.action, reply.verdict) {
            let ideal = self
                .ideals
                .iter()
                .rev()
                .find(|(cycle, _)| *cycle == request.seq);
            let bump = ideal.map_or(0.0, |(_, ideal)| self.plant.steps_between(value, ideal));
            self.ledger.note_accepted(Accepted {
                writer,
                epoch: request.epoch,
                seq: request.seq,
                cycle: self.cycle,
                bump,
            });
        }
        let message = Message::Reply { to: writer, reply };
        self.queue
            .send(now_ns, &self.links.replies[writer], &mut self.rng, message);
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

fn is_start(event: &Event) -> bool {
    matches!(
        event,
        Event::Promoted {
            cause: Promotion::ColdStartWithPartner
                | Promotion::ColdStartByAuthority
                | Promotion::Forced,
            ..
        }
    )
}
