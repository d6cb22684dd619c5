//! Raw beats in a program without the sidecar: `cargo xtask instructions`.
#![forbid(unsafe_code)]

#[path = "../beats.rs"]
mod beats;

use anyhow::Result;
use bumpless_heartbeat::HeartbeatTable;

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let table = HeartbeatTable::create(folder.path().join("table"), 64)?;
    let handle = table.register(std::process::id())?;
    // A second place that beats, as the other program has one: a function with one caller alone becomes a part
    // of it, and what is compared would be that.
    table.beat(handle)?;
    beats::raw_beats(&table, handle, beats::times()?)
}
