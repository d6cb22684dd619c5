//! An observer reads every slot of a table, without a lock and without disturbing anybody.
//!
//! `cargo run -p bumpless-heartbeat --example observer [TABLE]`
#![forbid(unsafe_code)]

use bumpless_heartbeat::HeartbeatTable;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = table_path()?;
    // So that there is something to see.
    let table = HeartbeatTable::create(&path, 64)?;
    let me = table.register(std::process::id())?;
    table.mark_in_flight(me, 5_u8)?;

    let t = HeartbeatTable::open(&path, 64)?;
    for i in 0..t.capacity() {
        if let Some(snap) = t.snapshot(i) {
            println!(
                "pid={} last_seen={} in_flight={:#x}",
                snap.pid, snap.last_seen_epoch, snap.in_flight_bitmap
            );
        }
    }

    table.clear_in_flight(me, 5_u8)?;
    table.unregister(me)?;
    tidy_up(&path)
}

/// The first argument, or a file in the default folder.
fn table_path() -> Result<std::path::PathBuf, Box<dyn std::error::Error>> {
    match std::env::args_os().nth(1) {
        Some(path) => Ok(path.into()),
        None => Ok(bumpless_substrate::region::default_folder()?.join("example-observer.tbl")),
    }
}

/// Leaves nothing behind in the default folder.
fn tidy_up(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args_os().nth(1).is_none() {
        bumpless_substrate::region::Region::remove(path)?;
    }
    Ok(())
}
