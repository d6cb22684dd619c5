//! A daemon ticks the global epoch of a table that no watchdog scans.
//!
//! `cargo run -p bumpless-heartbeat --example daemon [TABLE]`
#![forbid(unsafe_code)]

use std::time::Duration;

use bumpless_heartbeat::HeartbeatTable;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = table_path()?;
    // Whoever comes first makes the table; here that may be this example itself.
    drop(HeartbeatTable::create(&path, 64)?);

    let t = HeartbeatTable::open(&path, 64)?;
    for _ in 0..5 {
        let new_epoch = t.tick_global_epoch()?;
        eprintln!("tick -> {new_epoch}");
        std::thread::sleep(Duration::from_millis(100));
    }
    tidy_up(&path)
}

/// The first argument, or a file in the default folder.
fn table_path() -> Result<std::path::PathBuf, Box<dyn std::error::Error>> {
    match std::env::args_os().nth(1) {
        Some(path) => Ok(path.into()),
        None => Ok(bumpless_substrate::region::default_folder()?.join("example-daemon.tbl")),
    }
}

/// Leaves nothing behind in the default folder.
fn tidy_up(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args_os().nth(1).is_none() {
        bumpless_substrate::region::Region::remove(path)?;
    }
    Ok(())
}
