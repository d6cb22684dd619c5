//! The tool, run as a user runs it.

mod bench_death;
