//! Elections on real tables, in one process. Deaths, signals and many processes are for the scenarios.
#![cfg(not(bumpless_loom))]
#![forbid(unsafe_code)]

mod damage;
mod leading;
mod places;
mod scene;
mod waiting;
