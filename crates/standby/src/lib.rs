//! Layer 3 of bumpless: a hot-standby pair.
//!
//! Two nodes run the same control loop. The primary drives the actuator and sends its state every cycle;
//! the standby follows, and takes over when the primary falls silent. The protocol reads no clock, no
//! file and no socket: time, what arrived and what is durable are arguments of [`Node::tick`].
#![forbid(unsafe_code)]

pub mod actuator;
pub mod authority;
pub mod checkpoint;
pub mod config;
pub mod drive;
pub mod epoch;
pub mod event;
pub mod frame;
pub mod link;
pub mod loops;
pub mod message;
pub mod node;
pub mod persist;
pub mod plain;
pub mod transfer;
mod unhashed;

pub use actuator::{Actuator, ActuatorConfig};
pub use checkpoint::{Checkpoint, CheckpointError, Controller};
pub use config::{Config, ConfigError, Mode};
pub use epoch::{Epoch, NodeId};
pub use node::{Command, CommandError, Node, Tick};
pub use unhashed::Unhashed;
