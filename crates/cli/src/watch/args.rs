//! What `watch` is told on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::pool::{Words, command_words, duration, period};

/// Watches a table: tells who died, who hangs, and hands their work to a command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bumpless watch /dev/shm/app/workers.table
  bumpless watch workers.table --exec './give-back --queue jobs' --timeout 20s --json

Each verdict is one line. With --exec the command gets it as one JSON object on its standard input, and
the units in it are handed back to the command: each has a name that no other hand-back ever has, so that
what was done once need not be done twice. If the command exits with 0, the verdict is acknowledged; if
not, or not within --timeout, the command is run again, with the same names: after 200ms, then twice as
long each time, at most 30s. What it prints goes to standard error. When it has ended, who is left of its
process group is killed. Up to 8 run at once, each for another owner of a slot. Without --exec a verdict is
acknowledged when its line is written, and its units are handed to nobody but the reader of the lines.

Started twice for one table, the second one is a standby: it takes over when the first one is gone or
hangs, and what the first one then still acknowledges is refused.")]
pub struct WatchArguments {
    /// The heartbeat table [default: the one of `bumpless run`]
    #[arg(value_name = "TABLE")]
    pub table: Option<PathBuf>,

    /// Time between two scans of the table; one epoch
    #[arg(long, value_name = "T", default_value = "50ms", value_parser = period)]
    pub period: Duration,

    /// How many epochs an owner may miss, unless its slot has a grace of its own
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub grace: u64,

    /// Run this for each verdict. Split into words like a shell would, and run without one
    #[arg(long, value_name = "CMD", value_parser = command_words)]
    pub exec: Option<Words>,

    /// How long the command may run; then its process group is killed
    #[arg(long, value_name = "T", default_value = "30s", value_parser = duration)]
    pub timeout: Duration,

    /// Record what is seen and done in a black box of this name, which is made if it is missing;
    /// TABLE.events is where other commands look for it
    #[arg(long, value_name = "RING")]
    pub events: Option<PathBuf>,

    /// Print each line as a JSON object
    #[arg(long)]
    pub json: bool,

    /// Wait for a table that does not exist yet
    #[arg(long)]
    pub wait: bool,
}
