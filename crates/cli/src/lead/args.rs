//! What `lead` is told on the command line, and what it tells its job.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::pool::duration;

/// Runs a command while this process leads: of many that are started, one runs it.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example, started any number of times:
  bumpless lead --name backup -- ./backup-daemon

The command finds the term of its leader in BUMPLESS_TERM: a number that rises with each leader and never
comes again. Whatever the command changes should refuse a term below the highest it has seen. It also
finds BUMPLESS_ELECTION, the name, and BUMPLESS_LEADER_SLOT. Its standard input is empty.

When another process leads, the command's process group gets SIGTERM, and SIGKILL after the grace. When
this process dies, however, the group gets SIGKILL at once. SIGTERM and SIGINT are passed on. When the
command ends by itself, so does this process, with its exit code, and the next one leads. Whoever the
command leaves behind gets SIGKILL when it has ended, also outside of its process group.")]
pub struct LeadArguments {
    /// The election's name: letters, digits, - and _
    #[arg(long, value_name = "NAME")]
    pub name: String,

    /// A heartbeat table that exists and has a watchdog of its own [default: one for all leads of this user]
    #[arg(long, value_name = "PATH")]
    pub table: Option<PathBuf>,

    /// From SIGTERM to SIGKILL, when the leadership is lost
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration)]
    pub grace: Duration,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// What a job is told.
#[derive(Debug, Clone, Args)]
pub struct JobArguments {
    /// The table
    #[arg(long)]
    pub table: PathBuf,

    /// The election's name
    #[arg(long)]
    pub name: String,

    /// The term in which the command is run
    #[arg(long)]
    pub term: u64,

    /// Nanoseconds from SIGTERM to SIGKILL
    #[arg(long)]
    pub grace_ns: u64,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}
