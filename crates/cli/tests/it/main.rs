//! The tool, run as a user runs it: the real binary, real processes, real files.

mod bench_barrier;
mod bench_death;
mod bench_lead;
mod bench_observe;
mod chaos;
mod command;
mod deaths;
mod ends;
mod fuzz;
mod lead;
mod look;
mod manifest;
mod operator;
mod orders;
mod removal;
mod rig;
mod run;
mod terminal;
mod watch;
