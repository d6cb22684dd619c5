//! What the measurements are told on the command line.

use std::path::PathBuf;

use clap::Args;

/// Time from a worker's SIGKILL to the hand-back of its units, by three detectors in turn.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example: bumpless bench death --rss 64MiB --runs 20

seen         the watching thread knows of the death
handed back  the dead worker's units are in the report that the watchdog's user gets

robust       the kernel's death certificate: the watchdog's own loop, asleep on the worker's word
pidfd        asleep in poll on a descriptor of the process, then one scan
beats        missed heartbeats alone: the loop, and a worker whose certificate the kernel cannot fill in

Both start at the moment right before kill(2), read by the killer. Period 10 ms, grace 3 epochs.")]
pub struct DeathArguments {
    /// Memory that the worker has touched when it is killed: bytes, or with KiB, MiB, GiB
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    pub rss: u64,

    /// Other live workers, each a process that beats at the period
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=4_000))]
    pub others: u32,

    /// Kills for each detector
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub runs: u32,

    /// Print one line of JSON instead of the table
    #[arg(long)]
    pub json: bool,
}

/// Round trip between two processes over a barrier, beside that over a bare futex word.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example: bumpless bench barrier --blocks 20

futex    one process writes a word in shared memory and wakes the other, which does the same
barrier  one epoch of a barrier with two members: each has heard of the other before it goes on

Both in turn between the same two processes, a block of round trips each; the figures are of blocks.")]
pub struct BarrierArguments {
    /// Round trips in one block
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: u32,

    /// Blocks of each kind
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub blocks: u32,

    /// Print one line of JSON instead of the table
    #[arg(long)]
    pub json: bool,
}

/// What the other process of a barrier's measurement is told.
#[derive(Debug, Clone, Args)]
pub struct PeerArguments {
    /// The heartbeat table
    #[arg(long)]
    pub table: PathBuf,

    /// Round trips in one block
    #[arg(long)]
    pub rounds: u32,

    /// Blocks of each kind
    #[arg(long)]
    pub blocks: u32,
}

/// What a child of a measurement is told.
#[derive(Debug, Clone, Args)]
pub struct RoleArguments {
    /// The heartbeat table
    #[arg(long)]
    pub table: PathBuf,

    /// The slot's own grace in epochs
    #[arg(long)]
    pub grace: u16,

    /// Nanoseconds between two beats
    #[arg(long)]
    pub period_ns: u64,

    /// Bytes to touch before registering
    #[arg(long, default_value_t = 0)]
    pub rss: u64,

    /// Units to mark
    #[arg(long, value_delimiter = ',')]
    pub units: Vec<u32>,

    /// Spoil the death certificate, so that only missed beats tell of the death
    #[arg(long)]
    pub beats_only: bool,
}

/// A number of bytes.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        other => return Err(format!("unit `{other}`: KiB, MiB, GiB, or none for bytes")),
    };
    let count: u64 = digits
        .parse()
        .map_err(|_| format!("`{digits}` is no whole number"))?;
    count
        .checked_mul(unit)
        .filter(|bytes| isize::try_from(*bytes).is_ok())
        .ok_or_else(|| format!("more than {} bytes", isize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_or_have_a_binary_unit() {
        assert_eq!(size("4096"), Ok(4_096));
        assert_eq!(size("1GiB"), Ok(1 << 30));
        assert_eq!(size("64M"), Ok(64 << 20));
    }

    #[test]
    fn what_is_no_size_is_named() {
        for (text, said) in [
            ("1GB", "`GB`"),
            ("MiB", "``"),
            ("1.5MiB", "`1.5`"),
            ("-1", "`-1`"),
            ("9000000000GiB", "more than"),
        ] {
            let error = size(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
