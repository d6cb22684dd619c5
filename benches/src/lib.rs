//! What the crates cost, each figure beside one that it is compared with in the same run.
//!
//! Contract: a [`Pair`](pair::Pair) is two pieces of work, A and B, made ready once and then done in
//! turn, many times, in one process; what is told is the middle one of the ratios, and their spread. B
//! is a *floor* (what nothing that does the job can leave out) or a *baseline* (what one would write
//! without these crates). Nothing here compares figures of different runs or machines.
//!
//! The same pairs run in [`alternate`], whose ratios count, and under criterion, for a look at single
//! figures.
#![forbid(unsafe_code)]

pub mod across;
pub mod alternate;
pub mod conversation;
pub mod count;
pub mod fleet;
pub mod floor;
mod folder;
#[cfg(feature = "plot")]
pub mod growth;
mod locks;
pub mod machine;
pub mod mutexes;
mod other_core;
pub mod pair;
pub mod pairs;
pub mod report;
mod tool;
mod values;
