//! Rings of fixed records: many producers, and either one consumer or readers that take nothing away.
//!
//! `protocol.rs` is the protocol, on references; `lines.rs` and `slot.rs` are its words; `cursor.rs` is a
//! reader's place. `observation_ring.rs` and `reader.rs` carry it to the heap and to files.

pub mod cursor;
#[cfg(not(bumpless_loom))]
mod doorbell;
pub mod lines;
#[cfg(not(bumpless_loom))]
mod observation_ring;
pub mod protocol;
#[cfg(not(bumpless_loom))]
mod reader;
#[cfg(not(bumpless_loom))]
pub(crate) mod shared;
pub mod slot;

#[cfg(not(bumpless_loom))]
pub use doorbell::Doorbell;
pub use lines::RingCounts;
#[cfg(not(bumpless_loom))]
pub use observation_ring::{OBSERVATIONS, ObservationRing};
pub use protocol::{Drained, Mode, PATIENCE_NS};
#[cfg(not(bumpless_loom))]
pub use reader::{ObservationReader, Reader};
