//! The heartbeat table on real files, in one process. Deaths, signals and other users are for the
//! scenarios with real processes.
#![cfg(not(bumpless_loom))]
#![forbid(unsafe_code)]

mod damage;
mod life;
mod misuse;
mod observing;
mod scene;
