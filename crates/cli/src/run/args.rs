//! What `run` is told on the command line, and what it tells its job.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::pool::duration;

/// Runs any command as a member of a heartbeat table: its death is reported at once, and its hang.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  bumpless run --restart on-failure -- ./worker --fast
  bumpless run --beat-file /tmp/alive --progress-within 5s -- sh -c 'while work; do touch /tmp/alive; done'
  bumpless run --notify --progress-within 10s -- python3 service.py

The command finds the table, its slot and its label in BUMPLESS_TABLE, BUMPLESS_SLOT and BUMPLESS_LABEL.
It shows progress by changing the file (touch is enough), by writing to the descriptor, or by WATCHDOG=1
as systemd's sd_notify has it. While it does, or if it has none of these ways, its slot beats. If it does
not, a watchdog of the table (`bumpless watch`) fences the slot, and the command's process group gets
SIGTERM, and SIGKILL after --stop-within.

Nobody watches a table, the default one included, until somebody starts `bumpless watch`, which takes the
same default. Without it a death is recorded and told to nobody, and a hang leads to nothing: --restart sees
only that the command has ended.

Signals are passed on, each once: TERM, INT, QUIT, USR1, USR2, WINCH, CONT, and, unless they are ignored as
under nohup, HUP and TSTP. After TSTP this process stops like the command. After TERM, INT and QUIT, or when
a signal that was passed on ends the command, it is not restarted. A terminal is not the command's standard
input; anything else is. When this process is killed, the command and what it has started are killed.")]
pub struct RunArguments {
    /// The heartbeat table, made with 1024 slots if it is missing [default: run.table in the folder of
    /// this user, for all of its commands]
    #[arg(long, value_name = "PATH")]
    pub table: Option<PathBuf>,

    /// A name for people and for reports, at most 64 bytes [default: the command's]
    #[arg(long, value_name = "L")]
    pub label: Option<String>,

    #[command(flatten)]
    pub way: WayArguments,

    /// The longest time without progress, from the start on; needs a way to show progress
    #[arg(
        long, value_name = "T", default_value = "30s", value_parser = duration,
        requires = "WayArguments"
    )]
    pub progress_within: Duration,

    /// From SIGTERM to SIGKILL, when the slot was fenced
    #[arg(long, value_name = "T", default_value = "10s", value_parser = duration)]
    pub stop_within: Duration,

    /// When the command is started again; after 200ms, then twice as long each time, at most 30s
    #[arg(long, value_name = "WHEN", value_enum, default_value = "no")]
    pub restart: Restart,

    /// Give up after so many restarts in a row; a run of 60s starts the count anew
    #[arg(long, value_name = "N")]
    pub restart_max: Option<u32>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// How the command shows progress.
#[derive(Debug, Clone, Default, Args)]
#[group(multiple = false)]
pub struct WayArguments {
    /// Progress is a change of this file
    #[arg(long, value_name = "FILE")]
    pub beat_file: Option<PathBuf>,

    /// Progress is anything written to this descriptor, which the command finds open
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(3..=255))]
    pub beat_fd: Option<i32>,

    /// Progress is told by sd_notify: READY=1, WATCHDOG=1 to the socket NOTIFY_SOCKET
    #[arg(long)]
    pub notify: bool,
}

/// When a command that has ended is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Restart {
    /// When it failed, was killed, or was fenced.
    OnFailure,
    /// Also when it ended well.
    Always,
    /// Never.
    No,
}

/// What a job is told.
#[derive(Debug, Args)]
pub struct JobArguments {
    /// The table
    #[arg(long)]
    pub table: PathBuf,

    /// The label
    #[arg(long)]
    pub label: String,

    /// Progress is a change of this file
    #[arg(long)]
    pub beat_file: Option<PathBuf>,

    /// Progress is anything written to this descriptor
    #[arg(long)]
    pub beat_fd: Option<i32>,

    /// Progress is told to a socket in this folder
    #[arg(long)]
    pub notify_folder: Option<PathBuf>,

    /// Nanoseconds without progress
    #[arg(long)]
    pub progress_within_ns: u64,

    /// Nanoseconds from SIGTERM to SIGKILL
    #[arg(long)]
    pub stop_within_ns: u64,

    /// A signal that `run` has blocked
    #[arg(long)]
    pub unblock: Vec<i32>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    pub command: Vec<OsString>,
}
