//! Models of the seat and of claims.
#![cfg(bumpless_loom)]
