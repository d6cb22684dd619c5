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
    beats::raw_beats(&table, handle, beats::times()?)
}
