//! Models of the ring, and of the handshake between an instance and those who steer it.
#![cfg(bumpless_loom)]

mod dying;
mod following;
mod handshake;
mod late;
mod memory;
mod pushing;
mod sleeping;

#[path = "../../../substrate/tests/loom/seeing.rs"]
mod seeing;
