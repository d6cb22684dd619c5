//! A node's cycle: read the links, tick, send.

use std::collections::VecDeque;
use std::fmt;

use bumpless_substrate::clock::monotonic_ns;

use super::FRAMES_PER_CYCLE;
use crate::authority::Authority;
use crate::checkpoint::Controller;
use crate::epoch::Epoch;
use crate::event::Event;
use crate::frame::{Frame, Value, decode, encode_fragment, encode_heartbeat, encode_request};
use crate::link::Link;
use crate::message::{Action, Received, Request, Sample};
use crate::node::Node;

/// So many of the plant's samples are kept: the one of the cycle before, also when later ones came.
const SAMPLES_KEPT: usize = 4;

/// A node with its links.
pub struct NodeDriver<C: Controller, P, A, Z> {
    node: Node<C>,
    partner: P,
    actuator: A,
    authority: Z,
    received: Vec<Received>,
    /// The plant's last ones, by their cycles.
    samples: VecDeque<Sample<C::Output>>,
    frame: Vec<u8>,
    undecodable: u64,
}

impl<C: Controller, P: fmt::Debug, A: fmt::Debug, Z> fmt::Debug for NodeDriver<C, P, A, Z> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeDriver")
            .field("status", &self.node.status())
            .field("partner", &self.partner)
            .field("actuator", &self.actuator)
            .finish_non_exhaustive()
    }
}

/// What a cycle did.
#[derive(Debug, Clone, PartialEq)]
pub struct Cycle<V> {
    /// What happened.
    pub events: Vec<Event>,
    /// The output that was sent, if this node drives.
    pub output: Option<V>,
    /// From the begin of the call to its end; unit: ns.
    pub spent_ns: u64,
}

impl<C, P, A, Z> NodeDriver<C, P, A, Z>
where
    C: Controller,
    C::Output: Value,
    P: Link,
    A: Link,
    Z: Authority,
{
    /// A node on its links: `partner` with one or two paths, `actuator` with one.
    pub fn new(node: Node<C>, partner: P, actuator: A, authority: Z) -> Self {
        Self {
            node,
            partner,
            actuator,
            authority,
            received: Vec::new(),
            samples: VecDeque::with_capacity(SAMPLES_KEPT + 1),
            frame: Vec::new(),
            undecodable: 0,
        }
    }

    /// Asks the plant before the first cycle: it tells its samples, and with them the number of the
    /// cycle, to those that it has heard.
    pub fn ask_plant(&mut self) {
        self.send_question(Epoch::NONE, 0, Action::Probe);
    }

    /// Reads what has arrived. Called before the cycle's input is made, as that may come from the plant.
    pub fn hear(&mut self) {
        let config = self.node.config();
        let parts = config.state_len_max / config.part_len_max.max(1);
        // Two paths deliver every part twice.
        let limit = FRAMES_PER_CYCLE.saturating_add(parts.saturating_mul(2));
        for _ in 0..limit {
            let Some(path) = self.partner.receive(&mut self.frame) else {
                break;
            };
            match decode::<C::Output>(&self.frame) {
                Ok(Frame::Heartbeat(heartbeat)) => {
                    self.received.push(Received::Heartbeat { path, heartbeat });
                }
                Ok(Frame::Fragment(fragment)) => {
                    self.received.push(Received::Fragment { path, fragment });
                }
                Ok(_) | Err(_) => self.undecodable += 1,
            }
        }
        for _ in 0..FRAMES_PER_CYCLE {
            if self.actuator.receive(&mut self.frame).is_none() {
                break;
            }
            match decode::<C::Output>(&self.frame) {
                Ok(Frame::Reply(reply)) => {
                    self.authority.hear(&reply);
                    self.received.push(Received::Reply(reply));
                }
                Ok(Frame::Sample(sample)) if sample.cluster == self.node.config().cluster => {
                    self.keep(sample);
                }
                Ok(_) | Err(_) => self.undecodable += 1,
            }
        }
        self.received
            .extend(self.authority.poll().map(Received::Grant));
    }

    /// What the plant measured last before this cycle; `None`: nothing that is still known.
    ///
    /// That is the same sample for both nodes, wherever in the cycle each of them reads it.
    pub fn sample_before(&self, cycle: u64) -> Option<&Sample<C::Output>> {
        let mut latest_first = self.samples.iter().rev();
        latest_first.find(|sample| sample.cycle < cycle)
    }

    /// The number of the plant's cycle, as far as it told; `None`: it told nothing yet.
    pub fn plant_cycle(&self) -> Option<u64> {
        self.samples.back().map(|sample| sample.cycle)
    }

    fn keep(&mut self, sample: Sample<C::Output>) {
        let place = self
            .samples
            .partition_point(|kept| kept.cycle < sample.cycle);
        if self
            .samples
            .get(place)
            .is_some_and(|kept| kept.cycle == sample.cycle)
        {
            return;
        }
        self.samples.insert(place, sample);
        if self.samples.len() > SAMPLES_KEPT {
            self.samples.pop_front();
        }
    }

    /// One control cycle with this input.
    pub fn cycle(&mut self, now_ns: u64, cycle: u64, input: &C::Input) -> Cycle<C::Output> {
        let tick = self.node.tick(now_ns, cycle, input, &self.received);
        self.received.clear();
        let mut output = None;
        if let Some(request) = tick.request {
            // First of all: what the plant waits for.
            self.send_request(&request);
            if let Action::Drive(value) = request.action {
                output = Some(value);
            }
        }
        if let Some(heartbeat) = &tick.heartbeat {
            self.frame.clear();
            encode_heartbeat(heartbeat, &mut self.frame);
            self.partner.send(&self.frame);
        }
        for fragment in &tick.fragments {
            self.frame.clear();
            encode_fragment(fragment, &mut self.frame);
            self.partner.send(&self.frame);
        }
        if let Some(above) = tick.ballot_wanted {
            self.authority.want(self.node.config().node, above);
        }
        if let Some(above) = self.authority.asks_actuator() {
            self.send_question(above, cycle, Action::Reserve);
        }
        Cycle {
            events: tick.events,
            output,
            spent_ns: monotonic_ns().saturating_sub(now_ns),
        }
    }

    fn send_question(&mut self, epoch: Epoch, seq: u64, action: Action<C::Output>) {
        let config = self.node.config();
        let request = Request {
            cluster: config.cluster,
            node: config.node,
            incarnation: self.node.incarnation(),
            epoch,
            seq,
            actuator: 0,
            action,
        };
        self.send_request(&request);
    }

    fn send_request(&mut self, request: &Request<C::Output>) {
        self.frame.clear();
        encode_request(request, &mut self.frame);
        self.actuator.send(&self.frame);
    }

    /// The node.
    pub fn node(&self) -> &Node<C> {
        &self.node
    }

    /// The node, for orders.
    pub fn node_mut(&mut self) -> &mut Node<C> {
        &mut self.node
    }

    /// The link to the partner.
    pub fn partner_link(&self) -> &P {
        &self.partner
    }

    /// The link to the actuator.
    pub fn actuator_link(&self) -> &A {
        &self.actuator
    }

    /// Frames that were none, or of a kind that has no business there.
    pub fn undecodable(&self) -> u64 {
        self.undecodable
    }
}
