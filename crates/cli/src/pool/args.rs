//! What the user, and the parent, may say on the command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

const LONG_ABOUT: &str = "\
Gives each file below the PATHs to a worker process, which computes its SHA-256, and writes a manifest \
that `sha256sum -c` reads. Workers may be killed, stopped, or hang: their files are given to others, \
and each file ends exactly once as accepted or failed.

Symlinks below a PATH are not followed (a PATH that is one, is); FIFOs, sockets and devices are \
skipped; a name reached twice counts once; the manifest is left out.

With --exec a command of yours runs for each file instead: a crash-tolerant `xargs -P`. A command \
whose worker died is killed, with its process group, and run again from the start, so its side effects \
happen AT LEAST ONCE; its exit code and output are recorded exactly once.

A file whose worker died or hung on it --max-attempts times is failed and never tried again.";

const EXAMPLES: &str = "\
Examples:
  bumpless pool --workers 4 --manifest sums.txt photos/ && sha256sum -c --quiet sums.txt
  bumpless pool --chaos kill=10/s,stop=3/s --manifest sums.txt photos/
  find photos -name '*.jpg' -print0 | bumpless pool --files-from - -0 > sums.txt
  bumpless pool --exec 'convert {} -resize 50% {}.small' --output-dir log photos/

Exit status: 0 all files accepted; 1 some failed (each is named on standard error); 2 a file was lost \
or counted twice, or the pool could not run; 130 ended by SIGINT or SIGTERM.";

/// Process every file, whatever happens to the workers.
#[derive(Debug, Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct PoolArguments {
    /// Files and folders
    #[arg(value_name = "PATH", required_unless_present = "files_from")]
    pub paths: Vec<PathBuf>,
    /// Number of worker processes, at most 128 [default: one per CPU]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=128))]
    pub workers: Option<u32>,
    /// SIGKILL and SIGSTOP own workers that hold a file, so many times a second
    #[arg(long, value_name = "kill=R/s,stop=R/s", value_parser = chaos_rates)]
    pub chaos: Option<ChaosRates>,
    /// The heartbeat table [default: a new one in shared memory]
    #[arg(long, value_name = "PATH")]
    pub table: Option<PathBuf>,
    /// Keep what happens to workers in this black box, also afterwards; `bumpless events` prints it
    /// [default: one beside the table, deleted with it]
    #[arg(long, value_name = "RING")]
    pub events: Option<PathBuf>,
    /// Where the manifest of the files accepted goes when all is done [default: standard output]
    #[arg(long, short, value_name = "FILE", conflicts_with = "exec")]
    pub manifest: Option<PathBuf>,
    /// Read more PATHs from a file, one a line; `-` is standard input
    #[arg(long, value_name = "FILE|-")]
    pub files_from: Option<PathBuf>,
    /// PATHs in --files-from end with a NUL byte, not with a newline
    #[arg(short = '0', long = "null", requires = "files_from")]
    pub null: bool,
    /// Run this for each file; `{}` is its path (appended if there is no `{}`). Split into words like
    /// a shell would, and run without one
    #[arg(long, value_name = "CMD", requires = "output_dir", value_parser = command_words)]
    pub exec: Option<Words>,
    /// An empty or new folder; gets `N/{status,stdout,stderr}` for the N-th file
    #[arg(long, value_name = "DIR", requires = "exec")]
    pub output_dir: Option<PathBuf>,
    /// How often a file's worker may die or hang on it
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_attempts: u32,
    /// A worker without progress on its file for so long is hung, and killed; with --exec, how long
    /// a command may run (500ms, 30s, 5m, 2h)
    #[arg(long, value_name = "T", default_value = "300s", value_parser = duration)]
    pub unit_timeout: Duration,
    /// Print the summary as one JSON object, the last line of standard error
    #[arg(long)]
    pub json: bool,
    /// Time between two scans of the table; one epoch
    #[arg(long, value_name = "T", default_value = "10ms", value_parser = period)]
    pub period: Duration,
    /// How many epochs a worker may miss before its file is given to another
    #[arg(long, value_name = "EPOCHS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub grace: u64,
}

/// What a parent tells its worker.
#[derive(Debug, Clone, Args)]
pub struct WorkerArguments {
    /// The heartbeat table.
    #[arg(long)]
    pub table: PathBuf,
    /// The lanes.
    #[arg(long)]
    pub lanes: PathBuf,
    /// Which lane is the worker's.
    #[arg(long)]
    pub lane: u32,
    /// The parent's period, in nanoseconds.
    #[arg(long)]
    pub period_ns: u64,
    /// Where commands' output goes.
    #[arg(long)]
    pub output_dir: Option<PathBuf>,
    /// The command's words; none: hash.
    #[arg(last = true)]
    pub words: Vec<OsString>,
}

/// The words of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words(pub Vec<String>);

/// Events per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChaosRates {
    /// SIGKILLs per second.
    pub kill: f64,
    /// SIGSTOPs per second.
    pub stop: f64,
}

fn chaos_rates(text: &str) -> Result<ChaosRates, String> {
    const WANTED: &str = "wanted kill=R/s, stop=R/s or both, R from 0 to 1000";
    let mut rates = ChaosRates::default();
    for part in text.split(',') {
        let found = || format!("{part:?}: {WANTED}");
        let (name, rate) = part.split_once('=').ok_or_else(found)?;
        let rate = rate.strip_suffix("/s").unwrap_or(rate);
        let rate: f64 = rate.parse().map_err(|_| found())?;
        if !(0.0..=1000.0).contains(&rate) {
            return Err(found());
        }
        match name {
            "kill" => rates.kill = rate,
            "stop" => rates.stop = rate,
            _ => return Err(found()),
        }
    }
    Ok(rates)
}

/// Splits a command into words.
///
/// # Errors
/// What is wrong with it.
pub fn command_words(text: &str) -> Result<Words, String> {
    match shlex::split(text) {
        Some(words) if !words.is_empty() => Ok(Words(words)),
        Some(_) => Err("no command".to_owned()),
        None => Err("a quote is not closed, or a backslash ends the command".to_owned()),
    }
}

/// A length of time: a number with ms, s, m or h; seconds without.
///
/// # Errors
/// What was wanted.
pub fn duration(text: &str) -> Result<Duration, String> {
    const WANTED: &str = "wanted a number with ms, s, m or h, above 0 and at most 1000h";
    let found = || format!("{text:?}: {WANTED}");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds_per = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(found()),
    };
    let seconds = digits.parse::<f64>().map_err(|_| found())? * seconds_per;
    let fits = seconds > 0.0 && seconds <= 3_600_000.0;
    fits.then(|| Duration::from_secs_f64(seconds))
        .ok_or_else(found)
}

/// A length of time between two scans.
///
/// # Errors
/// What was wanted.
pub fn period(text: &str) -> Result<Duration, String> {
    let period = duration(text)?;
    let fits = (Duration::from_millis(1)..=Duration::from_secs(60)).contains(&period);
    fits.then_some(period)
        .ok_or_else(|| format!("{text:?}: wanted 1ms to 1m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chaos_rates_are_read_in_any_order() {
        let both = ChaosRates {
            kill: 10.0,
            stop: 3.0,
        };
        assert_eq!(chaos_rates("kill=10/s,stop=3/s"), Ok(both));
        assert_eq!(chaos_rates("stop=3,kill=10"), Ok(both));
        assert_eq!(chaos_rates("kill=0.5/s").unwrap().kill, 0.5);
        for bad in [
            "",
            "kill",
            "kill=x/s",
            "kill=-1/s",
            "die=1/s",
            "kill=NaN",
            "kill=1/m",
            "kill=1,,",
        ] {
            assert!(chaos_rates(bad).unwrap_err().contains("wanted"), "{bad}");
        }
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("300"), Ok(Duration::from_secs(300)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in ["", "s", "0s", "-1s", "1d", "1e9h", "infs", "1 s", "ä"] {
            assert!(duration(bad).unwrap_err().contains("wanted"), "{bad}");
        }
        assert!(period("0.5ms").unwrap_err().contains("1ms"));
    }

    #[test]
    fn a_command_is_split_into_words_like_a_shell_does() {
        let words = command_words("tool -a 'b c' {}").unwrap();
        assert_eq!(words.0, ["tool", "-a", "b c", "{}"]);
        assert!(command_words("a 'b").unwrap_err().contains("quote"));
        assert!(command_words(" ").unwrap_err().contains("no command"));
    }
}
