//! Models of the barrier's words, with the table as an argument, and of what a slot says of its owner.
#![cfg(bumpless_loom)]

mod bell;
mod dying;
mod hall;
mod joining;
mod laps;
mod presence;
mod releasing;
mod withdrawing;

#[allow(dead_code, reason = "shared with the models of the slot")]
#[path = "../../../heartbeat/tests/loom/cells.rs"]
mod cells;
#[path = "../../../substrate/tests/loom/seeing.rs"]
mod seeing;
