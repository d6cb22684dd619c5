//! Layer 0 of bumpless: what everything above stands on, and the only crate with `unsafe`.

pub mod claim;
#[cfg(not(bumpless_loom))]
pub mod clock;
#[cfg(not(bumpless_loom))]
pub mod fork_guard;
#[cfg(not(bumpless_loom))]
pub mod futex;
#[cfg(not(bumpless_loom))]
pub mod guard;
#[cfg(not(bumpless_loom))]
pub mod identity;
#[cfg(not(bumpless_loom))]
pub mod keeper;
pub mod layout;
#[cfg(not(bumpless_loom))]
pub mod locks;
pub mod proof;
#[cfg(not(bumpless_loom))]
pub mod realtime;
#[cfg(not(bumpless_loom))]
pub mod region;
pub mod seqlock;
#[cfg(not(bumpless_loom))]
pub mod shared_atomic;
pub mod sync;
#[cfg(not(bumpless_loom))]
pub mod unusual;
#[cfg(not(bumpless_loom))]
pub mod view;
pub mod work;

// The README's example runs as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
