//! Models of the judgement of one slot, and of the lease.
#![cfg(bumpless_loom)]

mod certificate;
mod death;
mod lease;
mod silence;
mod world;

#[allow(dead_code, reason = "shared with the models of the slot")]
#[path = "../../../heartbeat/tests/loom/cells.rs"]
mod cells;
#[path = "../../../substrate/tests/loom/seeing.rs"]
mod seeing;
