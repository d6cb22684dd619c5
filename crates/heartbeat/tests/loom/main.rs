//! Models of one slot with its owner, its claimers, its watchdogs and its observers.
#![cfg(bumpless_loom)]

mod cells;
mod registering;
mod turnover;

#[path = "../../../substrate/tests/loom/seeing.rs"]
mod seeing;
