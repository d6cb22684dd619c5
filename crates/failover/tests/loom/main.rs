//! Models of the judgement of one slot, of the lease, and of whom a scan knows.
#![cfg(bumpless_loom)]

mod certificate;
mod death;
mod lease;
mod roster;
mod silence;
mod world;

#[allow(dead_code, reason = "shared with the models of the occupancy")]
#[path = "../../../heartbeat/tests/loom/bits.rs"]
mod bits;
#[allow(dead_code, reason = "shared with the models of the slot")]
#[path = "../../../heartbeat/tests/loom/cells.rs"]
mod cells;
#[path = "../../../substrate/tests/loom/seeing.rs"]
mod seeing;
