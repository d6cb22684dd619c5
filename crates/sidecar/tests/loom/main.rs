//! Models of the ring, and of the handshake between an instance and those who steer it.
#![cfg(bumpless_loom)]

mod handshake;

#[path = "../../../substrate/tests/loom/seeing.rs"]
mod seeing;
