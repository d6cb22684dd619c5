//! Raw beats, as two programs do them that differ in one thing: whether the sidecar is in them.
//!
//! Contract: all instructions of the beats, and no others, are within [`raw_beats`].

use std::hint::black_box;

use anyhow::{Context, Result, ensure};
use bumpless_heartbeat::{Handle, HeartbeatTable};

/// How many beats the command line asks for.
pub fn times() -> Result<u64> {
    let word = std::env::args().nth(1).context("how many beats")?;
    word.parse().context("how many beats")
}

/// Beats so many times.
#[inline(never)]
pub fn raw_beats(table: &HeartbeatTable, handle: Handle, times: u64) -> Result<()> {
    // By its address: as a part of this function, a beat would be cut to what this one caller needs, in the
    // program that has no other.
    let beat: fn(&HeartbeatTable, Handle) -> bumpless_heartbeat::Result<()> =
        black_box(HeartbeatTable::beat);
    let mut all_beat = true;
    for _ in 0..times {
        all_beat &= beat(black_box(table), *black_box(&handle)).is_ok();
    }
    ensure!(all_beat, "a beat was refused");
    Ok(())
}
