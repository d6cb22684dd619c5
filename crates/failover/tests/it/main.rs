//! The watchdog on real tables, in one process, and with other processes where the tiers of detection
//! differ. Other deaths by signal, and watchdogs that die, are for the scenarios with real processes.
#![cfg(not(bumpless_loom))]
#![forbid(unsafe_code)]

mod acknowledging;
mod damage;
// Under the portable tier none of the calls is made.
#[cfg(not(bumpless_portable))]
mod denied;
mod judging;
mod peer;
mod proven;
mod scene;
mod verdicts;
mod watchdogs;
