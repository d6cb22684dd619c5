//! From a beat until another process, which looks without a pause, has seen it; beside that of a bare word.

use std::hint::spin_loop;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::sync::Ordering;

use super::Durations;
use super::peer::{Peer, begin_together};
use super::words::{END, Words};

/// Beats in a row, and then as many turns of the bare word.
const BLOCK: usize = 50;
const SAMPLES_MAX: usize = 20_000;

/// Beats and turns, from this side.
pub fn measure(table: &HeartbeatTable, time: Duration) -> Result<[Durations; 2]> {
    let words = Words::create(table.path())?;
    let mut peer = Peer::start("watch", table.path(), &[])?;
    let worker = begin_together(table, 2)?;
    let (turn, seen) = (words.turn()?, words.seen_ns()?);
    // Where the child finds who is to be watched. Release pairs with its Acquire in `watch`.
    let mut turns = worker.handle().slot() as u64 + 1;
    turn.store(turns, Ordering::Release);
    let mut last_ns = 0;
    let mut see = |peer: &mut Peer, began_ns: u64| {
        // Acquire pairs with the Release of `watch`: what it saw was seen before.
        peer.await_until(|| seen.load(Ordering::Acquire) != last_ns)?;
        last_ns = seen.load(Ordering::Acquire);
        anyhow::Ok(last_ns.saturating_sub(began_ns))
    };
    see(&mut peer, 0)?;
    let (mut beats_ns, mut turns_ns) = (Vec::new(), Vec::new());
    let started = Instant::now();
    while started.elapsed() < time && beats_ns.len() < SAMPLES_MAX {
        for _ in 0..BLOCK {
            table.tick_global_epoch()?;
            let began_ns = monotonic_ns();
            worker.beat()?;
            beats_ns.push(see(&mut peer, began_ns)?);
        }
        for _ in 0..BLOCK {
            turns += 1;
            let began_ns = monotonic_ns();
            // Release pairs with the Acquire of `watch`, which only looks whether it has changed.
            turn.store(turns, Ordering::Release);
            turns_ns.push(see(&mut peer, began_ns)?);
        }
    }
    // Release: as above.
    turn.store(END, Ordering::Release);
    peer.require_end()?;
    Ok([
        Durations::new("a beat until another process has seen it", beats_ns),
        Durations::new("a store until another process has seen it", turns_ns),
    ])
}

/// The other side: says when it saw each beat, and each turn.
pub fn watch(path: &Path) -> Result<()> {
    let table = HeartbeatTable::attach(path)?;
    let words = Words::attach(path)?;
    let _worker = begin_together(&table, 2)?;
    let (turn, seen) = (words.turn()?, words.seen_ns()?);
    let say = || {
        // Release pairs with the Acquire in `measure`.
        seen.store(monotonic_ns(), Ordering::Release);
    };
    let mut known = 0;
    let mut await_turn = || {
        loop {
            // Acquire pairs with the Release in `measure`.
            let found = turn.load(Ordering::Acquire);
            if found != known {
                known = found;
                return found;
            }
            spin_loop();
        }
    };
    let slot = await_turn() as usize - 1;
    let epoch_of = || {
        table
            .snapshot(slot)
            .map(|snapshot| snapshot.last_seen_epoch)
    };
    let mut epoch = epoch_of().context("who is watched")?;
    let mut known_turn = slot as u64 + 1;
    say();
    loop {
        for _ in 0..BLOCK {
            loop {
                let found = epoch_of().context("who is watched has left")?;
                if found > epoch {
                    epoch = found;
                    break;
                }
                // Acquire: as above.
                if turn.load(Ordering::Acquire) == END {
                    return Ok(());
                }
                spin_loop();
            }
            say();
        }
        for _ in 0..BLOCK {
            known_turn += 1;
            if await_turn() != known_turn {
                return Ok(());
            }
            say();
        }
    }
}
