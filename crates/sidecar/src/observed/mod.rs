//! What can be put into a [`SidecarBox`](crate::SidecarBox), one file for each layer's type.

pub mod actuator;
pub mod atomics;
pub mod barrier;
pub mod election;
pub mod node;
pub mod table;
mod told;
pub mod watchdog;
