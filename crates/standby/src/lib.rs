//! Layer 3 of bumpless: a hot-standby pair.
//!
//! Two nodes run the same control loop. The primary drives the actuator and sends its state every cycle;
//! the standby follows, and takes over when the primary falls silent. The protocol reads no clock, no
//! file and no socket: time, what arrived and what is durable are arguments of [`Node::tick`].
//!
//! A pair in step, until its primary dies:
//!
//! ```
//! use bumpless_standby::authority::{Authority, LocalFile};
//! use bumpless_standby::message::{Action, Received};
//! use bumpless_standby::persist::FileStore;
//! use bumpless_standby::{Actuator, ActuatorConfig, Checkpoint, CheckpointError, Config, Controller};
//! use bumpless_standby::{Epoch, Node, NodeId};
//!
//! /// Adds its input in every cycle.
//! #[derive(Clone, Debug)]
//! struct Integrator(i64);
//!
//! impl Checkpoint for Integrator {
//!     fn schema(&self) -> u64 {
//!         1
//!     }
//!     fn encode(&self, bytes: &mut Vec<u8>) {
//!         bytes.extend_from_slice(&self.0.to_le_bytes());
//!     }
//!     fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
//!         let found = bytes.len();
//!         let sum = bytes.try_into().map_err(|_| CheckpointError::Length { found, wanted: 8 })?;
//!         Ok(Self(i64::from_le_bytes(sum)))
//!     }
//!     fn check(&self) -> Result<(), CheckpointError> {
//!         Ok(()) // every sum is one that it can have
//!     }
//! }
//!
//! impl Controller for Integrator {
//!     type Input = i64;
//!     type Output = i64;
//!     fn step(&mut self, input: &i64) {
//!         self.0 += input;
//!     }
//!     fn output(&self) -> i64 {
//!         self.0
//!     }
//!     fn input_digest(input: &i64) -> u32 {
//!         *input as u32
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let (period_ns, ids) = (10_000_000, [NodeId(0), NodeId(1)]);
//! let mut level = FileStore::new(folder.path().join("level"));
//! let plant = ActuatorConfig { cluster: 7, nodes: ids, epoch_jump_max: 1024 };
//! let mut actuator = Actuator::start(plant, 99, 0, &mut level)?;
//! actuator.commission(Epoch::NONE, &mut level)?; // an operator vouches: nothing drives yet
//! let mut nodes = Vec::new();
//! let mut authorities = Vec::new();
//! for (own, partner) in [(0, 1), (1, 0)] {
//!     let config = Config::new(7, ids[own], ids[partner], period_ns);
//!     nodes.push(Node::new(config, 10 + own as u64, Integrator(0))?);
//!     authorities.push(LocalFile::new(FileStore::new(folder.path().join(own.to_string()))));
//! }
//! let mut arrived = [vec![], vec![]];
//! let mut accepted = Vec::new();
//! for cycle in 1..100 {
//!     let now_ns = cycle * period_ns; // in a real loop: the monotonic clock
//!     let heard = std::mem::take(&mut arrived);
//!     for own in [0, 1] {
//!         if own == 0 && cycle >= 50 {
//!             continue; // node 0 has died
//!         }
//!         let tick = nodes[own].tick(now_ns, cycle, &10, &heard[own]);
//!         if let Some(heartbeat) = tick.heartbeat {
//!             arrived[1 - own].push(Received::Heartbeat { path: 0, heartbeat });
//!         }
//!         if let Some(request) = tick.request
//!             && let Some(reply) = actuator.receive(now_ns, &request, &mut level)
//!         {
//!             if let Action::Drive(value) = request.action {
//!                 accepted.push((cycle, own, value));
//!             }
//!             arrived[own].push(Received::Reply(reply));
//!         }
//!         if let Some(above) = tick.ballot_wanted {
//!             authorities[own].want(ids[own], above);
//!             arrived[own].extend(authorities[own].poll().map(Received::Grant));
//!         }
//!     }
//! }
//! let last_of_0 = accepted.iter().rposition(|(_, own, _)| *own == 0).unwrap_or(0);
//! let (cycle, _, value) = accepted[last_of_0];
//! assert_eq!(cycle, 49);
//! // Three silent cycles, then the other node, as if nothing had happened.
//! assert_eq!(accepted[last_of_0 + 1], (53, 1, value + 4 * 10));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod actuator;
pub mod authority;
pub mod checkpoint;
pub mod config;
#[cfg(not(bumpless_loom))]
pub mod drive;
pub mod epoch;
pub mod event;
mod field;
pub mod frame;
pub mod link;
pub mod loops;
pub mod message;
pub mod node;
pub mod persist;
pub mod plain;
#[cfg(feature = "rehearsal")]
pub mod rehearsal;
#[cfg(not(bumpless_loom))]
pub mod tag;
pub mod transfer;
mod unhashed;

pub use actuator::{Actuator, ActuatorConfig};
pub use checkpoint::{Checkpoint, CheckpointError, Controller};
pub use config::{Config, ConfigError, Mode};
pub use epoch::{Epoch, NodeId};
pub use node::{Command, CommandError, Node, Tick};
pub use unhashed::Unhashed;
