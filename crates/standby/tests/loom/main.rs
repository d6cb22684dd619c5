//! Models of the words that a pair shares in memory.
#![cfg(bumpless_loom)]

mod lane;

#[path = "../../../substrate/tests/loom/seeing.rs"]
mod seeing;
