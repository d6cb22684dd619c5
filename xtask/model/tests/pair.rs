//! Two nodes, the actuator, what is on its way and what is durable: one state of the search.
//!
//! The nodes and the actuator are the shipped ones. What stands around them here is what a driver
//! program, a disk and a network are at run time:
//!
//! ```text
//!             Grant, with the next tick                     heartbeat
//!   disk ◀── LocalFile ◀── ballot_wanted ── Node 0 ◀──────────────────────▶ Node 1 ── ...
//!                                            │  ▲                 │  ▲
//!                              request       ▼  │  reply          ▼  │
//!                                         Actuator ── level ──▶ disk
//! ```
//!
//! A grant reaches the node with its next tick; a crash before that loses it, and hits before or after it
//! became durable. What is sent to a node that is down is lost.

use bumpless_standby::event::{Event, Promotion};
use bumpless_standby::message::{Action as Asked, Heartbeat, Request, Verdict};
use bumpless_standby::node::State;
use bumpless_standby::{Actuator, ActuatorConfig, Command, Epoch};

use crate::ghosts::{Ghosts, Never};
use crate::outcomes::{Outcome, Outcomes};
use crate::setups::{Budget, Lack, Setup, Start};
use crate::shared::Shared;
use crate::side::{CLUSTER, Disk, IDS, PERIOD_NS, Side};

/// Cycles without a fault in which a cold pair becomes a primary and a qualified standby.
const RISE_TICKS: u64 = 8;
/// So many heartbeats wait for a node's next cycle; an older one is lost.
const FRESH_MAX: usize = 2;

/// One state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pair {
    /// The nodes.
    pub sides: [Side; 2],
    plant: Shared<Plant>,
    /// Sent since their receiver's last cycle, by receiver, oldest first.
    pub fresh: [Vec<Shared<Message>>; 2],
    /// Delayed, in the order of their digests.
    pub late: Vec<Shared<Message>>,
    /// What may still go wrong.
    pub left: Budget,
    /// What the onlooker noted.
    pub ghosts: Ghosts,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Plant {
    actuator: Actuator<u64>,
    lives: u64,
    disk: Disk,
}

/// Something on its way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Message {
    /// To the other node.
    Heartbeat(Heartbeat),
    /// To the actuator.
    Request(Request<u64>),
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It reaches the actuator at once, and the answer the node with its next cycle.
    Answered,
    /// It reaches the actuator at once; the answer is lost.
    Unanswered,
    /// It reaches nobody.
    Lost,
    /// It is delayed.
    Late,
}

impl Message {
    /// The node that it is for; `None`: for the actuator.
    pub fn receiver(&self) -> Option<usize> {
        match self {
            Self::Heartbeat(heartbeat) => Some(1 - usize::from(heartbeat.node.0)),
            Self::Request(_) => None,
        }
    }
}

impl Pair {
    /// Where the setup begins.
    pub fn start(setup: &Setup) -> Self {
        let mut disk = Disk::default();
        let mut actuator = start_actuator(1, &mut disk);
        // Of a plant that is put into service: nothing has ever driven it.
        let commissioned = actuator.commission(Epoch::NONE, &mut &mut disk);
        assert_eq!(commissioned, Ok(()), "the store takes everything");
        let mut pair = Self {
            sides: [0, 1].map(Side::new),
            plant: Shared::new(Plant {
                actuator,
                lives: 1,
                disk,
            }),
            fresh: [Vec::new(), Vec::new()],
            late: Vec::new(),
            left: setup.faults,
            ghosts: Ghosts::new(),
        };
        let unnoted = Outcomes::default();
        if setup.start != Start::Cold {
            for _ in 0..RISE_TICKS {
                pair.tick_perfectly(setup, &unnoted);
            }
            assert!(pair.is_redundant(), "a healthy pair rises: {pair:#?}");
            pair.fresh = [Vec::new(), Vec::new()];
        }
        if let Start::Split { .. } | Start::Restarted = setup.start {
            for _ in 0..2 {
                pair.fresh = [Vec::new(), Vec::new()];
                pair.tick(0, &[], false, setup, &unnoted);
                pair.send(0, Fate::Answered, &unnoted);
                pair.tick(1, &[], false, setup, &unnoted);
            }
            let output = if setup.start == (Start::Split { is_applied: false }) {
                Fate::Lost
            } else {
                Fate::Unanswered
            };
            pair.send(1, output, &unnoted);
            pair.fresh = [Vec::new(), Vec::new()];
            let both = [0, 1].map(|index| pair.drives(index));
            assert_eq!(
                both, [true; 2],
                "a standby that hears nothing takes over: {pair:#?}"
            );
        }
        if setup.start == Start::Restarted {
            pair.sides[1].crash(false, setup.lacks);
            pair.sides[1].start();
        }
        pair
    }

    /// The actuator ends and starts anew.
    pub fn restart_actuator(&mut self, setup: &Setup) {
        let mut plant = self.plant.get().clone();
        plant.lives += 1;
        if setup.lacks == Some(Lack::ActuatorMemory) {
            plant.disk = Disk::default();
        }
        plant.actuator = start_actuator(plant.lives, &mut plant.disk);
        if setup.lacks == Some(Lack::ActuatorMemory) {
            let commissioned = plant.actuator.commission(Epoch::NONE, &mut &mut plant.disk);
            assert_eq!(commissioned, Ok(()), "the store takes everything");
        }
        self.plant = Shared::new(plant);
    }

    /// A node misses a cycle.
    pub fn pause(&mut self, index: usize) {
        self.sides[index].ticks += 1;
        self.carry_along();
    }

    /// An order to a node, if it takes it.
    pub fn order(&mut self, index: usize, command: Command) -> bool {
        let Some(node) = &self.sides[index].node else {
            return false;
        };
        let mut node = node.get().clone();
        let is_taken = node.command(command).is_ok();
        self.sides[index].node = Some(Shared::new(node));
        is_taken
    }

    /// One cycle of a node that is up, with what reaches it in this cycle; `answers_first`: in which order.
    pub fn tick(
        &mut self,
        index: usize,
        heard: &[Shared<Message>],
        answers_first: bool,
        setup: &Setup,
        outcomes: &Outcomes,
    ) {
        let partner_drives = self.drives(1 - index);
        let side = &mut self.sides[index];
        let Some(node) = &side.node else { return };
        let mut node = node.get().clone();
        side.ticks += 1;
        let cycle = side.ticks;
        let received = side.receive(heard, answers_first);
        let held = node.adopted();
        let tick = node.tick(cycle * PERIOD_NS, cycle, &cycle, &received);
        let (life, is_restarted) = (side.life(), side.lives > 1);

        let is_blank = held.0 == Epoch::NONE;
        self.ghosts.adopts(held, node.adopted());
        for event in &tick.events {
            if let Event::Promoted { cause, .. } = event {
                // By the primary itself, by a partner that follows nobody, by the authority.
                let was_let = !matches!(cause, Promotion::Takeover);
                if is_blank && !was_let && partner_drives {
                    self.ghosts.violate(Never::BlankTakeover);
                }
            }
            note_event(event, is_restarted, outcomes);
        }
        if let Some(above) = tick.ballot_wanted {
            side.want(above, setup.authority);
        }
        let reserve = side.witness.request().map(|(above, action)| Request {
            cluster: CLUSTER,
            node: IDS[index],
            incarnation: life,
            epoch: above,
            seq: cycle,
            actuator: 0,
            action,
        });
        side.node = Some(Shared::new(node));
        if let Some(part) = tick.heartbeat.iter().find_map(|sent| sent.part.as_ref()) {
            self.ghosts.sends(&part.bytes, cycle);
        }
        if let Some(heartbeat) = tick.heartbeat
            && self.sides[1 - index].node.is_some()
        {
            let fresh = &mut self.fresh[1 - index];
            fresh.push(Shared::new(Message::Heartbeat(heartbeat)));
            if fresh.len() > FRESH_MAX {
                fresh.remove(0);
            }
        }
        let outbox = &mut self.sides[index].outbox;
        outbox.extend(tick.request.into_iter().chain(reserve));
        for request in outbox {
            if matches!(request.action, Asked::Drive(_)) {
                self.ghosts.owns(request.epoch, life);
            }
        }
        self.carry_along();
    }

    /// What becomes of the last request that a node has sent.
    pub fn send(&mut self, index: usize, fate: Fate, outcomes: &Outcomes) {
        let Some(request) = self.sides[index].outbox.pop() else {
            return;
        };
        match fate {
            Fate::Answered => self.reach_actuator(&request, true, outcomes),
            Fate::Unanswered => self.reach_actuator(&request, false, outcomes),
            Fate::Lost => {}
            Fate::Late => self.delay(Shared::new(Message::Request(request))),
        }
    }

    /// One more message is late.
    pub fn delay(&mut self, message: Shared<Message>) {
        let place = self.late.partition_point(|other| *other < message);
        self.late.insert(place, message);
    }

    /// A request reaches the actuator; the answer reaches the node with its next cycle, or is lost.
    pub fn reach_actuator(
        &mut self,
        request: &Request<u64>,
        is_answered: bool,
        outcomes: &Outcomes,
    ) {
        let mut plant = self.plant.get().clone();
        let now_ns = self.sides[0].ticks.max(self.sides[1].ticks) * PERIOD_NS;
        let reply = plant
            .actuator
            .receive(now_ns, request, &mut &mut plant.disk);
        self.plant = Shared::new(plant);
        let Some(reply) = reply else { return };
        if matches!(request.action, Asked::Drive(_)) {
            if reply.verdict == Verdict::Ack {
                if self.ghosts.applies(request.epoch, request.seq) {
                    outcomes.note(Outcome::TakeoverApplied);
                }
            } else {
                outcomes.note(Outcome::Refused);
            }
        }
        let index = usize::from(reply.node.0);
        let asker = &mut self.sides[index];
        // An earlier life will never hear it.
        if is_answered && asker.node.is_some() && asker.life() == reply.incarnation {
            asker.answers.push(reply);
        }
    }

    /// Cycles without a fault: everything arrives at once, the actuator's answer with the next cycle.
    pub fn tick_perfectly(&mut self, setup: &Setup, outcomes: &Outcomes) {
        for index in 0..2 {
            let heard = std::mem::take(&mut self.fresh[index]);
            self.tick(index, &heard, false, setup, outcomes);
            while !self.sides[index].outbox.is_empty() {
                self.send(index, Fate::Answered, outcomes);
            }
        }
    }

    /// Tells two states of the plant apart.
    pub fn plant_digest(&self) -> u64 {
        self.plant.digest()
    }

    /// One primary, and the other node qualified.
    pub fn is_redundant(&self) -> bool {
        let states = [0, 1].map(|index| self.state(index));
        states.contains(&Some(State::Primary)) && states.contains(&Some(State::Qualified))
    }

    /// Where a node stands; `None`: down.
    pub fn state(&self, index: usize) -> Option<State> {
        let node = self.sides[index].node.as_ref()?;
        Some(node.get().state())
    }

    fn drives(&self, index: usize) -> bool {
        matches!(self.state(index), Some(State::Primary | State::Solo))
    }

    /// The cycle is the plant's: a node that is down finds it where the other one is.
    pub fn carry_along(&mut self) {
        for index in 0..2 {
            if self.sides[index].node.is_none() {
                let there = self.sides[1 - index].ticks;
                let here = &mut self.sides[index].ticks;
                *here = there.max(*here);
            }
        }
    }
}

fn start_actuator(life: u64, mut disk: &mut Disk) -> Actuator<u64> {
    let config = ActuatorConfig {
        cluster: CLUSTER,
        nodes: IDS,
        epoch_jump_max: 1024,
    };
    let actuator = Actuator::start(config, life, 0, &mut disk);
    actuator.expect("the store holds what the actuator has saved")
}

fn note_event(event: &Event, is_restarted: bool, outcomes: &Outcomes) {
    let outcome = match event {
        Event::Promoted { cause, .. } => match cause {
            Promotion::Takeover => Outcome::Takeover,
            Promotion::ColdStartWithPartner => Outcome::ColdStart,
            Promotion::ColdStartByAuthority => Outcome::StartByAuthority,
            Promotion::SwitchOver | Promotion::Forced => return,
        },
        Event::SwitchOver { .. } => Outcome::SwitchOver,
        Event::Renewed { .. } => Outcome::Renewal,
        Event::Suspended { .. } => Outcome::Suspended,
        Event::Qualified { .. } if is_restarted => Outcome::Requalified,
        _ => return,
    };
    outcomes.note(outcome);
}
