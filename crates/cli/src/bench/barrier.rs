//! `bumpless bench barrier`: a barrier of two processes beside a bare futex word between them.
//!
//! Contract: the two kinds take turns in blocks, between the same two processes, so that they meet the
//! same machine. One epoch of the barrier is compared with one round trip over the word: in both, each
//! process has heard of the other before it goes on. A peer that is gone ends the measurement.
//!
//! ```text
//!   this process   join ─┬─ word: mine, wake, sleep … ─┬─ barrier: wait, wait … ─┐ ─▶ figures
//!                        └───────────── blocks ◀───────┴─────────────────────────┘
//!   the peer       join ─── the same, but for the first move
//! ```

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bumpless_barrier::EpochBarrier;
use bumpless_heartbeat::{HeartbeatTable, Profile, Worker};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::futex::{Woken, wait, wake};
use bumpless_substrate::guard::spawn_guarded;
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region};
use bumpless_substrate::sync::{AtomicU32, Ordering};

use super::args::{BarrierArguments, PeerArguments};
use super::error::BenchError;
use super::figures::{BarrierFigures, load};
use super::{private_folder, show};
use crate::signals::Signals;

/// The file of the bare word.
const WORD: Format = Format {
    kind: *b"BNCH",
    version: 1,
    record_size: 4,
    max_capacity: 1,
    region_len: |_| PREAMBLE_LEN + 64,
    revived: |_| (),
};

/// How long the other process is awaited.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Measures and prints.
///
/// # Errors
/// [`BenchError`].
pub fn run(arguments: &BarrierArguments) -> Result<(), BenchError> {
    let signals = Signals::install().map_err(BenchError::file(
        "install handlers for",
        "SIGINT and SIGTERM",
    ))?;
    let folder = private_folder()?;
    let path = folder.path().join("barrier.tbl");
    let table = HeartbeatTable::create(&path, 2)?;
    let (word, _) = Region::create(&word_of(&path), &WORD, 1, Access::Private, |_| ())?;
    let _peer = Peer::start(&path, arguments)?;
    let (mut futex_ns, mut barrier_ns) = (Vec::new(), Vec::new());
    let BarrierArguments { rounds, blocks, .. } = *arguments;
    let word = word.at(PREAMBLE_LEN)?;
    play(&table, word, Side::First, rounds, blocks, |block| {
        futex_ns.push(block.futex_ns);
        barrier_ns.push(block.barrier_ns);
        match signals.asked() {
            true => Err(BenchError::Interrupted),
            false => Ok(()),
        }
    })?;
    let figures = BarrierFigures::new(rounds, &futex_ns, &barrier_ns);
    if arguments.json {
        show(&format!("{}\n", serde_json::to_string(&figures)?))?;
    } else {
        show(&figures.table(&load()))?;
    }
    Ok(())
}

/// Plays the other process.
///
/// # Errors
/// [`BenchError`].
pub fn play_peer(arguments: &PeerArguments) -> Result<(), BenchError> {
    let table = HeartbeatTable::attach(&arguments.table)?;
    let word = Region::attach(&word_of(&arguments.table), &WORD)?;
    let PeerArguments { rounds, blocks, .. } = *arguments;
    let word = word.at(PREAMBLE_LEN)?;
    play(&table, word, Side::Second, rounds, blocks, |_| Ok(()))
}

/// Where the bare word lies.
fn word_of(table: &Path) -> PathBuf {
    table.with_extension("word")
}

/// Who moves first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    First,
    Second,
}

/// One block of each kind: the mean of its round trips.
#[derive(Debug, Clone, Copy)]
struct Block {
    futex_ns: u64,
    barrier_ns: u64,
}

fn play(
    table: &HeartbeatTable,
    word: &AtomicU32,
    side: Side,
    rounds: u32,
    blocks: u32,
    mut done: impl FnMut(Block) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let worker = Worker::register(table, Profile::default())?;
    let barrier = EpochBarrier::create(table, "bench")?;
    let mut member = barrier.join(worker.handle())?;
    // From here on both have joined, and each epoch takes both.
    member.wait_quorum_timeout(2, ANSWER_LIMIT)?;
    let mean = |began_ns: u64| (monotonic_ns() - began_ns) / u64::from(rounds);
    for block in 0..blocks {
        let no_answer = || BenchError::NoAnswer {
            block,
            limit: ANSWER_LIMIT,
        };
        let began_ns = monotonic_ns();
        for round in 0..rounds {
            let turn = block
                .wrapping_mul(rounds)
                .wrapping_add(round)
                .wrapping_mul(2);
            exchange(word, side, turn).ok_or_else(no_answer)?;
        }
        let futex_ns = mean(began_ns);
        member.wait_timeout(ANSWER_LIMIT)?;
        let began_ns = monotonic_ns();
        for _ in 0..rounds {
            if !member.wait()?.absent.is_empty() {
                return Err(no_answer());
            }
        }
        done(Block {
            futex_ns,
            barrier_ns: mean(began_ns),
        })?;
    }
    Ok(())
}

/// One round trip over the bare word; `None`: the other one does not answer.
fn exchange(word: &AtomicU32, side: Side, turn: u32) -> Option<()> {
    let (first, second) = (turn.wrapping_add(1), turn.wrapping_add(2));
    match side {
        Side::First => {
            move_to(word, first);
            await_move(word, second)
        }
        Side::Second => {
            await_move(word, first)?;
            move_to(word, second);
            Some(())
        }
    }
}

fn move_to(word: &AtomicU32, value: u32) {
    // Release pairs with the Acquire of the other's `await_move`.
    word.store(value, Ordering::Release);
    wake(word, 1);
}

fn await_move(word: &AtomicU32, value: u32) -> Option<()> {
    loop {
        // Acquire pairs with the Release of `move_to`.
        let found = word.load(Ordering::Acquire);
        if found == value {
            return Some(());
        }
        if wait(word, found, Some(ANSWER_LIMIT)) == Woken::TimedOut {
            return None;
        }
    }
}

/// The other process; ended and reaped when dropped.
#[derive(Debug)]
struct Peer(Child);

impl Peer {
    fn start(table: &Path, arguments: &BarrierArguments) -> Result<Self, BenchError> {
        let mut command = Command::new("/proc/self/exe");
        command
            .arg0("bumpless")
            .args(["bench", "barrier-peer", "--table"]);
        command.arg(table);
        command.args(["--rounds", &arguments.rounds.to_string()]);
        command.args(["--blocks", &arguments.blocks.to_string()]);
        // A terminal's signals are for the parent, which ends its children itself.
        command.stdin(Stdio::null()).process_group(0);
        Ok(Self(spawn_guarded(&mut command, None)?))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for, ended or not.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
