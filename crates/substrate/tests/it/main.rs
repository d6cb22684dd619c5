//! The substrate against the real system: files, mappings, locks, processes and their deaths.

mod atomics;
mod attach;
mod create;
mod fuzz;
mod guard;
mod killed;
mod locks;
mod other_users;
mod peer;
mod proof;
mod replace;
mod scene;
mod views;
