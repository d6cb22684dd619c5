//! Layer 4 of bumpless: seeing what a table, a watchdog or a node does, without a part in it.
//!
//! An [`ObservationRing`] takes 24 bytes for each operation that is observed, at the price of one locked
//! instruction; one consumer drains it. A [`BlackBox`] keeps the last events in a file that whoever wrote
//! them does not have to survive. Both are the same [ring](ring::protocol) of words.
#![forbid(unsafe_code)]

#[cfg(not(bumpless_loom))]
pub mod black_box;
#[cfg(not(bumpless_loom))]
mod error;
#[cfg(not(bumpless_loom))]
pub mod event;
#[cfg(not(bumpless_loom))]
pub mod observation;
pub mod ring;

#[cfg(not(bumpless_loom))]
pub use black_box::{BlackBox, BlackBoxReader};
#[cfg(not(bumpless_loom))]
pub use error::SidecarError;
#[cfg(not(bumpless_loom))]
pub use event::{Event, EventKind};
#[cfg(not(bumpless_loom))]
pub use observation::Observation;
#[cfg(not(bumpless_loom))]
pub use ring::{Doorbell, Drained, ObservationReader, ObservationRing, RingCounts};

/// The README's example is a test.
#[cfg(all(doctest, not(bumpless_loom)))]
#[doc = include_str!("../README.md")]
struct Readme;
