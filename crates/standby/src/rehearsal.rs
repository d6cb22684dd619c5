//! A settled pair that talks to itself, and what each of the two hears from then on: for measurements and
//! examples. Only with the feature `rehearsal`.
//!
//! Contract: the two talk in step, over no link, with an actuator and authorities in memory, until one is the
//! primary and the other could take over. Then what each hears is kept, so that one alone can be given its half
//! again, from the same state: a tick by itself, without the other and without links, disks and a clock.
//!
//! ```text
//!   both   silent ─ SETTLED cycles ─▶ primary, qualified ─ as many cycles as wanted ─▶ what each heard
//!   one    its node as it was ─ replay: the same cycles, alone ─▶ the same states
//! ```

use crate::actuator::{Actuator, ActuatorConfig};
use crate::authority::{Authority, LocalFile};
use crate::checkpoint::{Checkpoint, CheckpointError, Controller};
use crate::config::{Config, ConfigError};
use crate::epoch::NodeId;
use crate::message::Received;
use crate::node::{Node, State};
use crate::persist::{Store, StoreError};

/// Cycles until the two are a primary and a standby that could take over.
pub const SETTLED: u64 = 64;
/// One cycle.
pub const PERIOD_NS: u64 = 1_000_000;
/// What both read from their plant in every cycle.
pub const INPUT: f64 = 1.0;
const CLUSTER: u64 = 1;

/// Why there is no conversation.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What is kept, in memory here.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The two did not settle, or did not stay so.
    #[error("after {cycles} cycles the pair is {found:?}, not a primary and a qualified standby")]
    Unsettled {
        /// How many they had.
        cycles: u64,
        /// What they are.
        found: [State; 2],
    },
}

/// One of the two, and what it hears from now on.
#[derive(Debug)]
pub struct Side {
    /// As it is after the last cycle before [`SETTLED`].
    pub node: Node<Integrators>,
    /// For each cycle from [`SETTLED`] on.
    pub hears: Vec<Vec<Received>>,
}

impl Side {
    /// Calls `tick` with the time, the number and what is heard of each of the first so many cycles.
    #[inline]
    pub fn replay(&self, cycles: usize, mut tick: impl FnMut(u64, u64, &[Received])) {
        for (cycle, heard) in (SETTLED..).zip(self.hears.iter().take(cycles)) {
            tick(cycle * PERIOD_NS, cycle, heard);
        }
    }
}

/// The primary's side and the standby's of a conversation of so many cycles.
///
/// # Errors
/// [`RehearsalError`].
pub fn converse(cycles: usize) -> Result<[Side; 2], RehearsalError> {
    let mut duo = Duo::new()?;
    for cycle in 1..SETTLED {
        duo.cycle(cycle);
    }
    let mut sides = duo.nodes.clone().map(|node| Side {
        node,
        hears: Vec::with_capacity(cycles),
    });
    for cycle in (SETTLED..).take(cycles) {
        for (side, heard) in sides.iter_mut().zip(&duo.heard) {
            side.hears.push(heard.clone());
        }
        duo.cycle(cycle);
    }
    match duo.nodes.each_ref().map(Node::state) {
        [State::Primary, State::Qualified] => Ok(sides),
        found => Err(RehearsalError::Unsettled {
            cycles: SETTLED + cycles as u64,
            found,
        }),
    }
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
    fn new() -> Result<Self, RehearsalError> {
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
        let mut said: [Vec<Received>; 2] = [vec![], vec![]];
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

/// Eight sums, and the last that was put out is the first of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Integrators([f64; 8]);

impl Checkpoint for Integrators {
    fn schema(&self) -> u64 {
        8
    }

    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) {
        // In one piece: eight calls that look for room would be what is measured.
        let mut encoded = [0; 64];
        for (place, value) in encoded.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *place = value.to_le_bytes();
        }
        bytes.extend_from_slice(&encoded);
    }

    #[inline]
    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (values, rest) = bytes.as_chunks::<8>();
        match <&[[u8; 8]; 8]>::try_from(values) {
            Ok(values) if rest.is_empty() => Ok(Self(values.map(f64::from_le_bytes))),
            _ => Err(CheckpointError::Length {
                found: bytes.len(),
                wanted: 64,
            }),
        }
    }

    #[inline]
    fn check(&self) -> Result<(), CheckpointError> {
        match self.0.iter().find(|value| !value.is_finite()) {
            None => Ok(()),
            Some(value) => Err(CheckpointError::OutOfRange {
                what: "a sum",
                found: value.to_string(),
                wanted: "finite".to_owned(),
            }),
        }
    }
}

impl Controller for Integrators {
    type Input = f64;
    type Output = f64;

    #[inline]
    fn step(&mut self, input: &f64) {
        for sum in &mut self.0 {
            *sum += input;
        }
    }

    #[inline]
    fn output(&self) -> f64 {
        self.0[0]
    }

    #[inline]
    fn input_digest(input: &f64) -> u32 {
        let bits = input.to_bits();
        (bits ^ (bits >> 32)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_alone_stays_what_it_is_with_its_half_of_the_conversation() {
        for side in converse(300).unwrap() {
            let mut node = side.node.clone();
            side.replay(300, |now_ns, cycle, heard| {
                node.tick(now_ns, cycle, &INPUT, heard);
            });
            assert_eq!(node.state(), side.node.state());
        }
    }

    #[test]
    fn a_state_comes_back_from_its_bytes_and_another_length_or_an_infinity_is_refused() {
        let mut state = Integrators::default();
        state.step(&1.5);
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        assert_eq!(state.decode(&bytes), Ok(state.clone()));
        assert!(state.decode(&bytes[..63]).is_err());
        assert!(state.check().is_ok());
        state.step(&f64::INFINITY);
        assert!(state.check().is_err());
    }
}
