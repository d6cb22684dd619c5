//! Models of the ring.
#![cfg(bumpless_loom)]
