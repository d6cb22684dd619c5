//! Models of the seat, of claims, and of going to sleep.
#![cfg(bumpless_loom)]

mod claims;
mod seats;
mod sleeping;
mod world;

#[allow(dead_code, reason = "shared with the models of the slot")]
#[path = "../../../heartbeat/tests/loom/cells.rs"]
mod cells;
#[path = "../../../substrate/tests/loom/seeing.rs"]
mod seeing;
