//! Raw beats in a program that has observed beats, too: `cargo xtask instructions`.
#![forbid(unsafe_code)]

#[path = "../beats.rs"]
mod beats;

use anyhow::{Context, Result, ensure};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_sidecar::{Scanner, SidecarBox, TableOp};

fn main() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let table = HeartbeatTable::create(folder.path().join("table"), 64)?;
    let handle = table.register(std::process::id())?;
    let boxed = SidecarBox::new(&table);
    let mut scanner = Scanner::new();
    let id = scanner.register(&boxed);
    boxed.beat(handle)?;
    beats::raw_beats(&table, handle, beats::times()?)?;
    scanner.scan(1);
    let stats = scanner.stats(id).context("the box's figures")?;
    ensure!(stats.op(TableOp::Beat).count == 1, "one beat was observed");
    Ok(())
}
