//! The measuring program, run as `cargo xtask bench` runs it, with few samples.

mod across;
mod deaths;
mod program;
mod report;
