//! Models of one slot with its owner, its claimers, its watchdogs and its observers.
#![cfg(bumpless_loom)]

mod bits;
mod cells;
mod epochs;
mod fencing;
mod occupancy;
mod owner_deaths;
mod owner_threads;
mod peer_deaths;
mod recycling;
mod registering;
mod turnover;
mod verdicts;

#[path = "../../../substrate/tests/loom/seeing.rs"]
mod seeing;
