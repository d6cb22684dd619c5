//! Marking and completing, while another process does the same in the same table; beside two locked
//! compare-and-swaps. Each between two looks at the clock.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use bumpless_heartbeat::{HeartbeatTable, Unit};
use bumpless_substrate::clock::monotonic_ns;

use super::Durations;
use super::peer::{Peer, begin_together};
use crate::floor::Lines;

/// Of each kind, in each of the two processes.
const SAMPLES: usize = 20_000;
/// One after the other of a kind.
const BLOCK: usize = 50;

/// Two processes at work; this one only waits for them.
pub fn measure(table: &HeartbeatTable) -> Result<[Durations; 2]> {
    let mut peers = Vec::new();
    for _ in 0..2 {
        peers.push(Peer::start("work", table.path(), &[])?);
    }
    let mut found_ns = [Vec::new(), Vec::new()];
    for mut peer in peers {
        for (found_ns, line) in found_ns.iter_mut().zip(peer.said()?.lines()) {
            for word in line.split(' ') {
                found_ns.push(word.parse().with_context(|| format!("`{word}`"))?);
            }
        }
        peer.require_end()?;
    }
    let [marks_ns, swaps_ns] = found_ns;
    ensure!(
        marks_ns.len() == 2 * SAMPLES && swaps_ns.len() == 2 * SAMPLES,
        "{} and {} durations",
        marks_ns.len(),
        swaps_ns.len()
    );
    Ok([
        Durations::new("mark and complete, two processes at once", marks_ns),
        Durations::new("two locked CAS, two processes at once", swaps_ns),
    ])
}

/// The work of one of the two: says its durations when it is done.
pub fn work(path: &Path) -> Result<()> {
    let table = HeartbeatTable::attach(path)?;
    let unit = Unit::try_from(5_u8)?;
    let lines = Lines::new(1);
    let (mut marks_ns, mut swaps_ns) = (Vec::new(), Vec::new());
    let worker = begin_together(&table, 2)?;
    for _ in 0..SAMPLES / BLOCK {
        for _ in 0..BLOCK {
            let began_ns = monotonic_ns();
            worker.mark(unit)?;
            worker.complete(unit)?;
            marks_ns.push(monotonic_ns() - began_ns);
        }
        for _ in 0..BLOCK {
            let began_ns = monotonic_ns();
            let both = lines.exchange(0, 1) && lines.exchange(1, 0);
            swaps_ns.push(monotonic_ns() - began_ns);
            ensure!(both, "a swap failed");
        }
    }
    for found_ns in [marks_ns, swaps_ns] {
        let words: Vec<String> = found_ns.iter().map(u64::to_string).collect();
        println!("{}", words.join(" "));
    }
    Ok(())
}
