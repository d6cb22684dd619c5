//! What `bumpless standby` is told on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bumpless_substrate::realtime;
use clap::{Args, ValueEnum};

use super::ways::Place;
use crate::pool::args::{Words, command_words, duration};

/// The fenced actuator of a pair: accepts one writer at a time, and never one of the past.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example: bumpless standby plant --listen 127.0.0.1:7000 --state-dir /var/lib/plant

A PLACE is ADDRESS:PORT, or shm:PATH for a mailbox in shared memory.
Prints what it accepts and refuses when it ends (SIGTERM), as one line of JSON.")]
pub struct PlantArguments {
    /// Where the nodes send their outputs: an address, or two mailboxes, of node 0 and node 1
    #[arg(long, value_name = "PLACE", value_delimiter = ',', required = true)]
    pub listen: Vec<Place>,

    /// Where the level is kept; the folder must exist
    #[arg(long, value_name = "DIR")]
    pub state_dir: PathBuf,

    /// The operator vouches that nothing drives now: an actuator without memory accepts outputs at once
    #[arg(long)]
    pub commission: bool,

    /// A line for each output that came: time, node, epoch, cycle, value, refusal
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    #[command(flatten)]
    pub realtime: RealtimeArguments,

    #[command(flatten)]
    pub pair: PairArguments,
}

/// What all three processes must be told alike.
#[derive(Debug, Clone, Args)]
pub struct PairArguments {
    /// Names the pair
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub cluster: u64,

    /// The control cycle
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = cycle)]
    pub period: Duration,

    /// A key of at least 32 bytes: frames without its mark are dropped
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
}

/// How the loop asks the kernel to be run.
#[derive(Debug, Clone, Args)]
pub struct RealtimeArguments {
    /// Run with SCHED_FIFO and this priority
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(i32).range(1..=99))]
    pub rt_priority: Option<i32>,

    /// Keep all memory resident
    #[arg(long)]
    pub lock_memory: bool,
}

impl RealtimeArguments {
    /// Asks. What is refused is said, and the loop of `role` runs without.
    pub fn apply(&self, role: &str) {
        if self.lock_memory
            && let Err(errno) = realtime::lock_memory()
        {
            tell!("bumpless standby {role}: memory is not locked: {errno}");
        }
        if let Some(priority) = self.rt_priority
            && let Err(errno) = realtime::use_fifo(priority)
        {
            tell!("bumpless standby {role}: no real-time priority {priority}: {errno}");
        }
    }
}

/// One node of a pair.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example, on one machine:
  bumpless standby node --id 0 --listen 127.0.0.1:7010 --peer 127.0.0.1:7011 \\
      --actuator 127.0.0.1:7000 --state-dir /var/lib/node0
  bumpless standby node --id 1 --listen 127.0.0.1:7011 --peer 127.0.0.1:7010 \\
      --actuator 127.0.0.1:7000 --state-dir /var/lib/node1

  or, with mailboxes in shared memory, --peer shm:/dev/shm/pair --actuator shm:/dev/shm/plant0

With --exec, the program gets a line `CYCLE MEASURED STATE` every cycle (STATE is `-` at first) and
answers with a line `OUTPUT STATE`; it keeps nothing itself.

Prints its events as lines of JSON.")]
pub struct NodeArguments {
    /// This node: 0 or 1. At a start of both, 0 becomes primary
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=1))]
    pub id: u8,

    /// Where the partner sends to; two for two paths, none for a mailbox
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    pub listen: Vec<SocketAddr>,

    /// The partner: its address, two for two paths, or the mailbox that both share
    #[arg(long, value_name = "PLACE", value_delimiter = ',', required = true)]
    pub peer: Vec<Place>,

    /// The actuator: its address, or the mailbox that it has for this node
    #[arg(long, value_name = "PLACE")]
    pub actuator: Place,

    /// Where the node keeps its epochs and takes its orders; the folder must exist
    #[arg(long, value_name = "DIR")]
    pub state_dir: PathBuf,

    /// Silent cycles after which the standby takes over
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub miss: u32,

    /// The built-in controller
    #[arg(
        long,
        value_name = "NAME",
        default_value = "integrator",
        conflicts_with = "exec"
    )]
    pub controller: BuiltIn,

    /// Your own controller, as one shell word list
    #[arg(long, value_name = "CMD", value_parser = command_words)]
    pub exec: Option<Words>,

    /// Who grants epochs
    #[arg(long, value_name = "WHO", default_value = "actuator")]
    pub authority: GrantedBy,

    /// The node that shall be primary when both can
    #[arg(long)]
    pub preferred: bool,

    /// Take the role back after having been qualified for this long
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "preferred")]
    pub preempt_after: Option<Duration>,

    /// So many cycles does the partner drive in a switch test
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub test_dwell: u32,

    /// Test the switch-over by itself, this often
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub test_every: Option<Duration>,

    /// A hardware watchdog to feed every cycle, for instance /dev/watchdog
    #[arg(long, value_name = "DEVICE")]
    pub watchdog: Option<PathBuf>,

    /// A line for each cycle: number, begin, lateness, duration, output
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    #[command(flatten)]
    pub realtime: RealtimeArguments,

    #[command(flatten)]
    pub pair: PairArguments,
}

/// A controller that the tool brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BuiltIn {
    /// Adds one in every cycle
    Integrator,
    /// Brings what the plant measures to 100
    Pid,
}

/// Where epochs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GrantedBy {
    /// The actuator: the nodes need no disk
    Actuator,
    /// A file in the state folder
    File,
}

/// Which running node is meant.
#[derive(Debug, Clone, Args)]
pub struct OrderArguments {
    /// The node's state folder
    #[arg(long, value_name = "DIR")]
    pub state_dir: PathBuf,
}

/// A running node, as it says of itself.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example: bumpless standby status --state-dir /var/lib/node0")]
pub struct StatusArguments {
    /// The node's state folder
    #[arg(long, value_name = "DIR")]
    pub state_dir: PathBuf,

    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// A cycle: 100 us to 1 s.
pub fn cycle(text: &str) -> Result<Duration, String> {
    let found = || format!("{text:?}: wanted a number with us, ms or s, 100us to 1s");
    let cycle = match text.strip_suffix("us") {
        Some(digits) => Duration::from_micros(digits.parse().map_err(|_| found())?),
        None => duration(text).map_err(|_| found())?,
    };
    let fits = (Duration::from_micros(100)..=Duration::from_secs(1)).contains(&cycle);
    fits.then_some(cycle).ok_or_else(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_has_a_unit_and_its_limits() {
        assert_eq!(cycle("100us"), Ok(Duration::from_micros(100)));
        assert_eq!(cycle("10ms"), Ok(Duration::from_millis(10)));
        for wrong in ["99us", "2s", "us", "-1ms", "1h", ""] {
            assert!(cycle(wrong).is_err(), "{wrong:?}");
        }
    }
}
