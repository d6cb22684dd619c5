//! The actuator's cycle: answer every request, apply what is accepted, tell the nodes what is measured.

use super::FRAMES_PER_CYCLE;
use crate::actuator::Actuator;
use crate::epoch::{Epoch, NodeId};
use crate::frame::{Frame, Value, decode, encode_reply, encode_sample};
use crate::link::Server;
use crate::message::{Action, Refusal, Sample, Verdict};
use crate::persist::Store;

/// A fenced actuator with its link.
#[derive(Debug)]
pub struct PlantDriver<V, S: Server, T> {
    actuator: Actuator<V>,
    server: S,
    store: T,
    cluster: u64,
    /// Where each node of the pair was last heard.
    peers: [Option<(NodeId, S::Peer)>; 2],
    /// The latest cycle of a node of the pair.
    nodes_cycle: u64,
    frame: Vec<u8>,
    undecodable: u64,
}

/// An output that came, and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied<V> {
    /// Its sender.
    pub node: NodeId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its cycle.
    pub seq: u64,
    /// Its value.
    pub value: V,
    /// Why it was refused; `None`: it was applied.
    pub refusal: Option<Refusal>,
}

impl<V: Value + Clone, S: Server, T: Store> PlantDriver<V, S, T> {
    /// An actuator on its link.
    pub fn new(actuator: Actuator<V>, server: S, store: T, cluster: u64) -> Self {
        Self {
            actuator,
            server,
            store,
            cluster,
            peers: [None; 2],
            nodes_cycle: 0,
            frame: Vec::new(),
            undecodable: 0,
        }
    }

    /// Answers what has arrived; each output goes to `applied`, in order.
    pub fn answer(&mut self, now_ns: u64, mut applied: impl FnMut(Applied<V>)) {
        for _ in 0..FRAMES_PER_CYCLE {
            let Some(peer) = self.server.receive(&mut self.frame) else {
                return;
            };
            let Ok(Frame::Request(request)) = decode::<V>(&self.frame) else {
                self.undecodable += 1;
                continue;
            };
            let Some(reply) = self.actuator.receive(now_ns, &request, &mut self.store) else {
                continue;
            };
            self.note_peer(request.node, peer);
            self.nodes_cycle = self.nodes_cycle.max(request.seq);
            self.frame.clear();
            encode_reply(&reply, &mut self.frame);
            self.server.send(peer, &self.frame);
            if let Action::Drive(value) = request.action {
                let refusal = match reply.verdict {
                    Verdict::Nack(refusal) => Some(refusal),
                    Verdict::Ack | Verdict::Granted { .. } => None,
                };
                applied(Applied {
                    node: request.node,
                    epoch: request.epoch,
                    seq: request.seq,
                    value,
                    refusal,
                });
            }
        }
    }

    /// Tells both nodes what was measured in this cycle.
    pub fn tell(&mut self, cycle: u64, value: V) {
        let sample = Sample {
            cluster: self.cluster,
            actuator: self.actuator.incarnation(),
            cycle,
            value,
        };
        self.frame.clear();
        encode_sample(&sample, &mut self.frame);
        for (_, peer) in self.peers.iter().flatten() {
            self.server.send(*peer, &self.frame);
        }
    }

    /// The latest cycle that a node of the pair named; 0: none yet.
    pub fn nodes_cycle(&self) -> u64 {
        self.nodes_cycle
    }

    /// The actuator.
    pub fn actuator(&self) -> &Actuator<V> {
        &self.actuator
    }

    /// The actuator and its memory, for an operator's order.
    pub fn actuator_mut(&mut self) -> (&mut Actuator<V>, &mut T) {
        (&mut self.actuator, &mut self.store)
    }

    /// The link.
    pub fn server(&self) -> &S {
        &self.server
    }

    /// Frames that were none, or no request.
    pub fn undecodable(&self) -> u64 {
        self.undecodable
    }

    fn note_peer(&mut self, node: NodeId, peer: S::Peer) {
        let place = self
            .peers
            .iter()
            .position(|known| known.is_some_and(|(id, _)| id == node))
            .or_else(|| self.peers.iter().position(Option::is_none));
        if let Some(known) = place.and_then(|place| self.peers.get_mut(place)) {
            *known = Some((node, peer));
        }
    }
}
