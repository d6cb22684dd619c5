//! Layer 4 of bumpless: seeing what a table, a watchdog or a node does, without a part in it.
//!
//! An [`ObservationRing`] takes 24 bytes for each operation that is observed, at the price of one locked
//! instruction; one consumer drains it. Beats, which cost less than that, are tallied beside it by one locked
//! instruction, and one in 256 is recorded. A [`BlackBox`] keeps the last events in a file that whoever wrote
//! them does not have to survive. Both are the same [ring](ring::protocol) of words.
//!
//! A [`SidecarBox`] puts such a ring around a table, a watchdog, an election, a barrier, a node, an actuator
//! or an atomic, owned or borrowed. A [`Scanner`], or the thread of a [`Sidecar`], drains the rings into
//! [`InstanceStats`] and asks a [`Policy`], whose answer is a tag in the instance's [`HandshakeHeader`].
#![forbid(unsafe_code)]

#[cfg(not(bumpless_loom))]
pub mod adaptive_grace;
#[cfg(not(bumpless_loom))]
pub mod black_box;
#[cfg(not(bumpless_loom))]
mod error;
#[cfg(not(bumpless_loom))]
pub mod event;
#[cfg(not(bumpless_loom))]
mod flap_guard;
pub mod handshake;
#[cfg(not(bumpless_loom))]
mod instance;
#[cfg(not(bumpless_loom))]
pub mod metric_names;
#[cfg(not(bumpless_loom))]
pub mod observation;
#[cfg(not(bumpless_loom))]
pub mod observed;
#[cfg(not(bumpless_loom))]
pub mod out;
#[cfg(not(bumpless_loom))]
mod policy;
pub mod ring;
#[cfg(not(bumpless_loom))]
mod sidecar;
#[cfg(not(bumpless_loom))]
mod sidecar_box;
#[cfg(not(bumpless_loom))]
mod sink;
#[cfg(not(bumpless_loom))]
pub mod stats;

#[cfg(not(bumpless_loom))]
pub use adaptive_grace::{AdaptiveGrace, GraceTarget};
#[cfg(not(bumpless_loom))]
pub use black_box::{BlackBox, BlackBoxReader};
#[cfg(not(bumpless_loom))]
pub use error::SidecarError;
#[cfg(not(bumpless_loom))]
pub use event::{Event, EventKind};
#[cfg(not(bumpless_loom))]
pub use flap_guard::{FlapGuard, FlapLimits};
pub use handshake::HandshakeHeader;
#[cfg(not(bumpless_loom))]
pub use instance::{AdaptiveInstance, Instruments, RING_CAPACITY};
#[cfg(not(bumpless_loom))]
pub use observation::{Observation, TALLIED_OP};
#[cfg(not(bumpless_loom))]
pub use observed::actuator::ActuatorOp;
#[cfg(not(bumpless_loom))]
pub use observed::atomics::AtomicOp;
#[cfg(not(bumpless_loom))]
pub use observed::barrier::BarrierOp;
#[cfg(not(bumpless_loom))]
pub use observed::election::ElectionOp;
#[cfg(not(bumpless_loom))]
pub use observed::node::NodeOp;
#[cfg(not(bumpless_loom))]
pub use observed::table::{AsTable, TableOp};
#[cfg(not(bumpless_loom))]
pub use observed::watchdog::WatchdogOp;
#[cfg(not(bumpless_loom))]
pub use policy::{FixedPolicy, NoMigrationPolicy, Policy};
#[cfg(not(bumpless_loom))]
pub use ring::{Doorbell, Drained, ObservationReader, ObservationRing, RingCounts};
#[cfg(not(bumpless_loom))]
pub use sidecar::{InstanceId, Registration, Scanned, Scanner, Sidecar};
#[cfg(not(bumpless_loom))]
pub use sidecar_box::{Observe, SidecarBox};
#[cfg(not(bumpless_loom))]
pub use sink::EventSink;
#[cfg(not(bumpless_loom))]
pub use stats::{InstanceStats, Latency, OpStats, Producers};

/// The README's example is a test.
#[cfg(all(doctest, not(bumpless_loom)))]
#[doc = include_str!("../README.md")]
struct Readme;
