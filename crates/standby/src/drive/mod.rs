//! The core on real links: one call per cycle for a node, one for a plant.
//!
//! Contract: a cycle reads what has arrived, ticks, and sends; it never waits, and the work that others
//! can cause in it is bounded by [`FRAMES_PER_CYCLE`]. The clock, the pace and the inputs are the
//! caller's. What is durable is written by a thread of its own ([`Background`]), never by the cycle, but
//! for the one level that the actuator must save before it applies the first output of a new epoch.

mod background;
mod device;
mod histogram;
mod node;
mod numbering;
mod pace;
mod plant;

pub use background::Background;
pub use device::{DeviceError, WatchdogDevice};
pub use histogram::Histogram;
pub use node::{Cycle, NodeDriver};
pub use numbering::Numbering;
pub use pace::{Beat, Pace};
pub use plant::{Applied, PlantDriver};

/// So many frames are read from one link in one cycle, beside the parts of one whole state.
pub const FRAMES_PER_CYCLE: u32 = 64;
