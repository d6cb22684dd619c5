//! What a test does to the world, and asks of it.

use bumpless_standby::event::Event;
use bumpless_standby::message::{Heartbeat, Request};
use bumpless_standby::{Actuator, ActuatorConfig, Command, CommandError, Epoch, Node, NodeId};
use rand::RngExt;

use super::disk::Office;
use super::ledger::Accepted;
use super::loops::Plant;
use super::net::Message;
use super::{CLUSTER, PERIOD_NS, World};

impl<P: Plant> World<P> {
    /// A process of the node starts, in a new life.
    pub fn start(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        let incarnation = self.rng.random_range(1..=u64::MAX);
        let node = Node::new(seat.config.clone(), incarnation, self.plant.controller());
        seat.node = Some(node.expect("the settings work"));
        seat.office = Office::new(&self.authority, &seat.disk, incarnation);
        seat.inbox.clear();
        seat.is_paused = false;
        self.ledger.forget_alarm(index);
    }

    /// Its process is killed: it sends nothing more, what is under way stays so.
    pub fn crash(&mut self, index: usize) {
        self.seats[index].node = None;
        self.seats[index].inbox.clear();
    }

    /// Its process is stopped; what arrives is queued.
    pub fn pause(&mut self, index: usize) {
        self.seats[index].is_paused = true;
    }

    pub fn resume(&mut self, index: usize) {
        self.seats[index].is_paused = false;
    }

    /// The actuator starts anew, with what its disk has.
    pub fn restart_actuator(&mut self) {
        let config = ActuatorConfig {
            cluster: CLUSTER,
            nodes: [NodeId(0), NodeId(1)],
            epoch_jump_max: self.seats[0].config.epoch_jump_max,
        };
        let incarnation = self.rng.random_range(1..=u64::MAX);
        let now_ns = self.cycle * PERIOD_NS;
        self.actuator = Actuator::start(config, incarnation, now_ns, &mut self.actuator_disk)
            .expect("the actuator's disk can be read");
    }

    /// The operator vouches for a plant that nothing has ever driven.
    pub fn commission(&mut self) {
        self.actuator
            .commission(Epoch::NONE, &mut self.actuator_disk)
            .expect("the actuator's disk can be written");
    }

    /// An order to a node that lives.
    pub fn command(&mut self, index: usize, command: Command) -> Result<(), CommandError> {
        if command == Command::ClearAlarms {
            self.ledger.forget_alarm(index);
        }
        let node = self.seats[index].node.as_mut().expect("the node lives");
        node.command(command)
    }

    /// A heartbeat that nobody sent now arrives in the middle of the next cycle.
    pub fn inject(&mut self, to: usize, path: u8, heartbeat: Heartbeat) {
        let at_ns = self.cycle * PERIOD_NS + PERIOD_NS / 2;
        let message = Message::Heartbeat {
            to,
            path,
            heartbeat,
        };
        self.queue.put(at_ns, message);
    }

    /// A request that was sent long ago now reaches the actuator, first in the next cycle.
    pub fn inject_request(&mut self, request: Request<P::Out>) {
        let at_ns = self.cycle * PERIOD_NS;
        self.queue.put(at_ns, Message::Request(request));
    }

    /// Runs on until the pair is one, at most so many cycles.
    pub fn expect_pair_within(&mut self, cycles_max: u64) {
        let from = self.now();
        while !self.is_pair() {
            assert!(
                self.now() < from + cycles_max,
                "seed {}: after {cycles_max} cycles {:?} and {:?}",
                self.seed,
                self.state(0),
                self.state(1)
            );
            self.run(1);
        }
    }

    /// The first event of this kind since the pair had settled, or since `clear`: in which cycle.
    pub fn first(&self, node: usize, wanted: impl Fn(&Event) -> bool) -> Option<u64> {
        let mut events = self.ledger.events.iter();
        let found = events.find(|logged| logged.node == node && wanted(&logged.event));
        found.map(|logged| logged.cycle - self.base)
    }

    /// How often there was such an event, on both nodes.
    pub fn count(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        let events = self.ledger.events.iter();
        events.filter(|logged| wanted(&logged.event)).count()
    }

    pub fn promotions(&self) -> usize {
        self.count(|event| matches!(event, Event::Promoted { .. }))
    }

    /// The first accepted output of this node since the pair had settled: in which cycle, and which.
    pub fn first_accepted(&self, writer: usize) -> Option<(u64, Accepted)> {
        let found = self.ledger.accepted.iter().find(|one| one.writer == writer);
        found.map(|one| (one.cycle - self.base, *one))
    }

    /// The last accepted output: in which cycle, and which.
    pub fn last_accepted(&self) -> Option<(u64, Accepted)> {
        let found = self.ledger.accepted.back();
        found.map(|one| (one.cycle - self.base, *one))
    }

    /// Accepted outputs of this node.
    pub fn accepted_by(&self, writer: usize) -> usize {
        let accepted = self.ledger.accepted.iter();
        accepted.filter(|one| one.writer == writer).count()
    }

    /// In how many of these cycles the actuator accepted nothing.
    pub fn cycles_without_output(&self, cycles: std::ops::Range<u64>) -> usize {
        cycles
            .filter(|cycle| {
                let mut accepted = self.ledger.accepted.iter();
                !accepted.any(|one| one.seq - self.base == *cycle)
            })
            .count()
    }

    /// The number of a cycle on the wire, of one that is counted from where the pair had settled.
    pub fn seq(&self, cycle: u64) -> u64 {
        self.base + cycle
    }
}
