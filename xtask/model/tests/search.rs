//! Everything that can happen next, for the checker.
//!
//! | step | means |
//! |---|---|
//! | tick | a node runs a cycle. Each heartbeat that was sent since its last one reaches it, is lost, or becomes late; each late one reaches it or stays late; its request is answered, loses its answer, is lost, or becomes late |
//! | reach | a late request reaches the actuator, with or without an answer |
//! | crash, restart, pause | a node ends, before or after a grant became durable; starts anew as a new life; misses a cycle |
//! | restart actuator | it ends and starts with what it has made durable |
//! | order | the primary is told to hand over |
//!
//! What is late may arrive after anything sent later, and never: so a late message is never lost by a
//! step of its own, and `late_max` bounds only how many late messages arrive after each other. What
//! reaches a node in one cycle comes in the order of sending with the answers last, or the other way
//! round. The rest of the delay is the drift: a node ticks up to so many cycles ahead of the other one.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use stateright::{Model, Property};

use crate::outcomes::{Outcome, Outcomes};
use crate::pair::{Fate, Message, Pair};
use crate::settle;
use crate::setups::Setup;
use crate::shared::Shared;
use bumpless_standby::Command;

/// A configuration as a model.
#[derive(Debug)]
pub struct Search {
    /// What may happen.
    pub setup: Setup,
    /// Each node's last cycle.
    pub end: u64,
    /// What was met.
    pub outcomes: Outcomes,
    /// Ends that were followed on.
    ends: Mutex<HashSet<u64>>,
}

/// What happens next. Messages are called by their place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Tick { node: usize, arrival: Arrival },
    Send { node: usize, fate: Fate },
    Reach { late: usize, is_answered: bool },
    Crash { node: usize, has_saved: bool },
    Restart { node: usize },
    Pause { node: usize },
    RestartActuator,
    Order { node: usize },
}

/// What becomes of the messages for a node in one cycle: first the fresh ones, then the late ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrival {
    heard: Vec<usize>,
    late: Vec<usize>,
    is_reversed: bool,
}

impl Search {
    /// The model of this setup.
    pub fn new(setup: Setup) -> Self {
        let start = Pair::start(&setup);
        Self {
            setup,
            end: start.sides[0].ticks.max(start.sides[1].ticks) + setup.ticks,
            outcomes: Outcomes::default(),
            ends: Mutex::default(),
        }
    }

    /// Every node that is up has run its cycles.
    pub fn is_at_end(&self, pair: &Pair) -> bool {
        pair.sides
            .iter()
            .all(|side| side.node.is_none() || side.ticks >= self.end)
    }

    fn may_pass(&self, pair: &Pair, node: usize) -> bool {
        let (own, other) = (&pair.sides[node], &pair.sides[1 - node]);
        own.ticks < self.end && (other.node.is_none() || own.ticks < other.ticks + self.setup.drift)
    }
}

impl Model for Search {
    type State = Pair;
    type Action = Step;

    fn init_states(&self) -> Vec<Pair> {
        vec![Pair::start(&self.setup)]
    }

    fn actions(&self, pair: &Pair, steps: &mut Vec<Step>) {
        if pair.ghosts.violated().is_some() {
            return;
        }
        for node in 0..2 {
            if !pair.sides[node].outbox.is_empty() {
                let send = |fate| Step::Send { node, fate };
                steps.extend([Fate::Answered, Fate::Unanswered, Fate::Lost].map(send));
                if pair.left.delays > 0 {
                    steps.push(send(Fate::Late));
                }
                return;
            }
        }
        for late in 0..pair.late.len() {
            if pair.late[late].get().receiver().is_none() {
                let reach = |is_answered| Step::Reach { late, is_answered };
                steps.extend([true, false].map(reach));
            }
        }
        for node in 0..2 {
            if pair.sides[node].node.is_none() {
                if pair.left.restarts > 0 {
                    steps.push(Step::Restart { node });
                }
                continue;
            }
            if self.may_pass(pair, node) {
                self.ticks(pair, node, steps);
                if pair.left.pauses > 0 {
                    steps.push(Step::Pause { node });
                }
            }
            if pair.left.crashes > 0 {
                let variants: &[bool] = if pair.sides[node].is_saving() {
                    &[true, false]
                } else {
                    &[true]
                };
                let crash = |has_saved: &bool| Step::Crash {
                    node,
                    has_saved: *has_saved,
                };
                steps.extend(variants.iter().map(crash));
            }
            if pair.left.switch_overs > 0 {
                steps.push(Step::Order { node });
            }
        }
        if pair.left.actuator_restarts > 0 {
            steps.push(Step::RestartActuator);
        }
    }

    fn next_state(&self, pair: &Pair, step: Step) -> Option<Pair> {
        let (setup, outcomes) = (&self.setup, &self.outcomes);
        let mut pair = pair.clone();
        match step {
            Step::Tick { node, arrival } => {
                let heard = take(&mut pair, node, &arrival);
                pair.tick(node, &heard, arrival.is_reversed, setup, outcomes);
            }
            Step::Send { node, fate } => {
                if fate == Fate::Late {
                    pair.left.delays -= 1;
                }
                pair.send(node, fate, outcomes);
            }
            Step::Reach { late, is_answered } => {
                let message = pair.late.remove(late);
                if let Message::Request(request) = message.get() {
                    pair.reach_actuator(request, is_answered, outcomes);
                }
            }
            Step::Crash { node, has_saved } => {
                pair.left.crashes -= 1;
                pair.sides[node].crash(has_saved, setup.lacks);
                pair.carry_along();
            }
            Step::Restart { node } => {
                pair.left.restarts -= 1;
                pair.sides[node].start();
            }
            Step::Pause { node } => {
                pair.left.pauses -= 1;
                pair.pause(node);
            }
            Step::RestartActuator => {
                pair.left.actuator_restarts -= 1;
                pair.restart_actuator(setup);
            }
            Step::Order { node } => {
                pair.left.switch_overs -= 1;
                if !pair.order(node, Command::SwitchOver) {
                    return None;
                }
            }
        }
        Some(pair)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("never", |_: &Self, pair: &Pair| {
                pair.ghosts.violated().is_none()
            }),
            Property::always(settle::SETTLES, settle::settles),
        ]
    }
}

impl Search {
    /// Every cycle of a node that can be the next.
    fn ticks(&self, pair: &Pair, node: usize, steps: &mut Vec<Step>) {
        let fresh = pair.fresh[node].len();
        let is_for_it = |message: &&Shared<Message>| message.get().receiver() == Some(node);
        let late = pair.late.iter().filter(is_for_it).count();
        let has_answers = !pair.sides[node].answers.is_empty();
        let mut arrivals = vec![Arrival::default()];
        for place in 0..fresh + late {
            let so_far = std::mem::take(&mut arrivals);
            for arrival in so_far {
                let mut heard = arrival.clone();
                heard.heard.push(place);
                let mut delayed = arrival.clone();
                delayed.late.push(place);
                if pair.left.duplicates > 0
                    && arrival
                        .late
                        .iter()
                        .all(|place| !arrival.heard.contains(place))
                {
                    let mut both = heard.clone();
                    both.late.push(place);
                    arrivals.push(both);
                }
                arrivals.extend([heard, delayed]);
                if place < fresh {
                    arrivals.push(arrival);
                }
            }
        }
        let delays =
            |arrival: &Arrival| arrival.late.iter().filter(|place| **place < fresh).count();
        arrivals.retain(|arrival| delays(arrival) <= pair.left.delays.into());
        for arrival in arrivals {
            let orders: &[bool] = match arrival.heard.len() + usize::from(has_answers) {
                0 | 1 => &[false],
                _ => &[false, true],
            };
            for is_reversed in orders {
                let arrival = Arrival {
                    is_reversed: *is_reversed,
                    ..arrival.clone()
                };
                steps.push(Step::Tick { node, arrival });
            }
        }
    }

    /// Whether this end differs from all before it in more than the notes of the past.
    pub fn is_new_end(&self, pair: &Pair) -> bool {
        let mut hasher = DefaultHasher::new();
        let applied = pair.ghosts.applied();
        (
            &pair.sides,
            &pair.fresh,
            &pair.late,
            pair.plant_digest(),
            applied,
        )
            .hash(&mut hasher);
        self.ends
            .lock()
            .is_ok_and(|mut ends| ends.insert(hasher.finish()))
    }

    /// What was wanted and not met.
    pub fn missing(&self) -> Vec<Outcome> {
        let wanted = self.setup.wanted.iter().copied();
        wanted
            .filter(|outcome| !self.outcomes.has(*outcome))
            .collect()
    }
}

/// Takes what reaches the node, and makes late what becomes late; what else was fresh is lost.
fn take(pair: &mut Pair, node: usize, arrival: &Arrival) -> Vec<Shared<Message>> {
    let fresh = std::mem::take(&mut pair.fresh[node]);
    let is_for_it = |message: &&Shared<Message>| message.get().receiver() == Some(node);
    let late: Vec<_> = pair.late.iter().filter(is_for_it).cloned().collect();
    pair.late.retain(|message| !is_for_it(&message));
    let fresh_count = fresh.len();
    let all: Vec<_> = fresh.into_iter().chain(late).collect();
    for place in &arrival.late {
        pair.left.delays -= u8::from(*place < fresh_count);
        pair.left.duplicates -= u8::from(arrival.heard.contains(place));
        pair.delay(all[*place].clone());
    }
    let mut heard: Vec<_> = arrival
        .heard
        .iter()
        .map(|place| all[*place].clone())
        .collect();
    if arrival.is_reversed {
        heard.reverse();
    }
    heard
}
