//! The watchdog on real tables, in one process. Deaths by signal, and watchdogs that die, are for the
//! scenarios with real processes.
#![cfg(not(bumpless_loom))]
#![forbid(unsafe_code)]

mod acknowledging;
mod damage;
mod scene;
mod verdicts;
mod watchdogs;
