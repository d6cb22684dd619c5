//! `bumpless bench lead`: what a claim costs beside a bare compare-and-swap, and how long a killed leader
//! is missed.
//!
//! Contract: claims and bare operations take turns in blocks, so that they meet the same machine. Each
//! claim of a block is in an election of its own, in which nobody leads and nobody stands. For the
//! takeovers, the leader is a process that is killed; the standby is a thread that sleeps until then, and
//! must lead in the next term.
//!
//! ```text
//!   standby     follow ─ sleep ─────────────▶ awake ─ claim ─ token ─ step down
//!   killer      start leader ─ settle ─ stamp, kill ─ sleep
//!   leader      register ─ claim ─ beat… ✝
//! ```

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use bumpless_election::{Leadership, SharedLeaderElection};
use bumpless_heartbeat::{Handle, HeartbeatTable};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::sync::{AtomicU64, Ordering};
use clap::Args;
use serde::Serialize;

use super::children::BenchWorker;
use super::error::BenchError;
use super::figures::{Spread, load};
use super::{private_folder, show};
use crate::signals::Signals;

/// Claims, and bare operations, in a block.
const ELECTIONS: usize = 64;

/// Blocks of each kind.
const BLOCKS: usize = 400;

/// How long a takeover is awaited.
const TAKEOVER_LIMIT: Duration = Duration::from_secs(30);

/// What a leader's takeover is measured in.
const NAME: &str = "takeover";

/// What a claim costs beside a bare compare-and-swap; time from a leader's SIGKILL to the next token.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example: bumpless bench lead --runs 20

claim     nobody leads and nobody stands: the caller stands and leads
held      a claim while the caller leads: the loads of the table and of the election alone
cas       one bare locked compare-and-swap that succeeds
takeover  from right before kill(2) to the return of the claim that has the token")]
pub struct LeadArguments {
    /// Leaders to kill
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,

    /// Print one line of JSON instead of the table
    #[arg(long)]
    json: bool,
}

/// What a leader that is to be killed is told.
#[derive(Debug, Clone, Args)]
pub struct LeaderArguments {
    #[arg(long)]
    table: PathBuf,
}

/// What `bench lead` found.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct LeadFigures {
    /// Takeovers.
    runs: u32,
    /// A claim that leads, in nanoseconds.
    claim_ns: Spread,
    /// A claim by who leads, in nanoseconds.
    held_ns: Spread,
    /// A bare compare-and-swap, in nanoseconds.
    cas_ns: Spread,
    /// From the kill to the token, in microseconds.
    takeover_us: Spread,
}

/// Measures and prints.
///
/// # Errors
/// [`BenchError`].
pub fn run(arguments: &LeadArguments) -> Result<(), BenchError> {
    let signals = Signals::install().map_err(BenchError::file(
        "install handlers for",
        "SIGINT and SIGTERM",
    ))?;
    let folder = private_folder()?;
    let path = folder.path().join("lead.tbl");
    let table = HeartbeatTable::create(&path, 4)?;
    let me = table.register(std::process::id())?;
    let [claim_ns, held_ns, cas_ns] = costs(&table, me)?;
    let mut takeovers_ns = Vec::new();
    for run in 0..arguments.runs {
        if signals.asked() {
            return Err(BenchError::Interrupted);
        }
        takeovers_ns.push(takeover(&table, &path, me, run)?);
    }
    let figures = LeadFigures {
        runs: arguments.runs,
        claim_ns,
        held_ns,
        cas_ns,
        takeover_us: Spread::of_ns(takeovers_ns),
    };
    if arguments.json {
        show(&format!("{}\n", serde_json::to_string(&figures)?))?;
    } else {
        show(&figures.table(&load()))?;
    }
    Ok(())
}

/// A claim, a claim by who leads, a bare compare-and-swap.
fn costs(table: &HeartbeatTable, me: Handle) -> Result<[Spread; 3], BenchError> {
    let elections: Result<Vec<_>, _> = (0..ELECTIONS)
        .map(|number| SharedLeaderElection::open(table, &format!("cost-{number}")))
        .collect();
    let elections = elections?;
    let words: Vec<Line> = (0..ELECTIONS).map(|_| Line::default()).collect();
    let mut blocks: [Vec<u64>; 3] = Default::default();
    for block in 0..BLOCKS as u64 {
        let [claims, held, bare] = &mut blocks;
        claims.push(timed(&elections, |election| mine(election, me))?);
        held.push(timed(&elections, |election| mine(election, me))?);
        bare.push(timed(&words, |word| {
            // AcqRel: a claim's own is no weaker on any machine; there is no partner to pair with.
            let swapped =
                word.0
                    .compare_exchange(block, block + 1, Ordering::AcqRel, Ordering::Relaxed);
            std::hint::black_box(swapped).map(drop).or(Ok(()))
        })?);
        for election in &elections {
            election.step_down(me)?;
        }
    }
    // The spread of picoseconds is in nanoseconds.
    let each_ps = |block_ns: u64| block_ns * 1_000 / ELECTIONS as u64;
    Ok(blocks.map(|blocks_ns| Spread::of_ns(blocks_ns.into_iter().map(each_ps))))
}

/// A word alone in its cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicU64);

fn timed<T>(
    items: &[T],
    mut operation: impl FnMut(&T) -> Result<(), BenchError>,
) -> Result<u64, BenchError> {
    let began_ns = monotonic_ns();
    for item in items {
        operation(item)?;
    }
    Ok(monotonic_ns() - began_ns)
}

fn mine(election: &SharedLeaderElection<'_>, me: Handle) -> Result<(), BenchError> {
    match election.try_claim_leadership(me)? {
        Leadership::Mine(_) => Ok(()),
        Leadership::Theirs(leader) => Err(BenchError::OtherLeader {
            found: leader.pid,
            wanted: std::process::id(),
        }),
    }
}

/// One takeover, in nanoseconds since the kill.
fn takeover(table: &HeartbeatTable, path: &Path, me: Handle, run: u32) -> Result<u64, BenchError> {
    let election = SharedLeaderElection::open(table, NAME)?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("bumpless")
        .args(["bench", "leader", "--table"])
        .arg(path);
    let leader = BenchWorker::start_by(command)?;
    let Leadership::Theirs(seen) = election.try_claim_leadership(me)? else {
        let (found, wanted) = (std::process::id(), leader.pid());
        return Err(BenchError::OtherLeader { found, wanted });
    };
    let (sender, taken) = channel();
    let killed_ns = thread::scope(|scope| {
        scope.spawn(|| {
            let changed = election.wait_for_change(Some(seen), TAKEOVER_LIMIT);
            let claimed = changed.and_then(|_| election.try_claim_leadership(me));
            // The receiver is there until this thread has ended.
            let _ = sender.send((monotonic_ns(), claimed));
        });
        settle(run);
        leader.kill()
    })?;
    let (taken_ns, claimed) = taken.recv().map_err(|_| BenchError::NoTakeover { run })?;
    match claimed? {
        Leadership::Mine(token) if token.term() == seen.term + 1 => {}
        _ => return Err(BenchError::NoTakeover { run }),
    }
    election.step_down(me)?;
    Ok(taken_ns.saturating_sub(killed_ns))
}

/// Lets the standby fall asleep, each time for another while.
fn settle(run: u32) {
    thread::sleep(Duration::from_micros(4_000 + u64::from(run % 7) * 500));
}

/// Plays a leader that is killed. Returns only with an error.
///
/// # Errors
/// [`BenchError::Table`], [`BenchError::Election`], [`BenchError::OtherLeader`].
pub fn play_leader(arguments: &LeaderArguments) -> Result<(), BenchError> {
    let table = HeartbeatTable::attach(&arguments.table)?;
    let me = table.register(std::process::id())?;
    let election = SharedLeaderElection::open(&table, NAME)?;
    mine(&election, me)?;
    show(&format!("ready {} {}\n", me.slot(), me.generation()))?;
    loop {
        election.beat_as_leader(me)?;
        thread::sleep(Duration::from_millis(10));
    }
}

impl LeadFigures {
    /// The figures for people; `load` is what the machine was doing else.
    fn table(&self, load: &str) -> String {
        let mut text = format!(
            "claims in nanoseconds, takeovers in microseconds: {} takeovers, load {load}\n\
             {:10}{:>11}{:>11}{:>11}\n",
            self.runs, "", "min", "p50", "p99"
        );
        for (name, spread) in [
            ("claim", self.claim_ns),
            ("held", self.held_ns),
            ("cas", self.cas_ns),
            ("takeover", self.takeover_us),
        ] {
            text += &spread.row(name);
        }
        text
    }
}
