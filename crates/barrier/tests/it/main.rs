//! The barrier on real tables, in one process. Deaths by signal are for the scenarios with real
//! processes.
#![cfg(not(bumpless_loom))]
#![forbid(unsafe_code)]

mod absence;
mod damage;
mod files;
mod releasing;
mod scene;
