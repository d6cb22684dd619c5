//! The basic watchdog loop: scan, give the dead owner's units to somebody else, acknowledge.
//!
//! `cargo run -p bumpless-failover --example watchdog_loop [TABLE]`
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::{HeartbeatTable, Unit};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = table_path()?;
    let reassign_work_unit = |unit: Unit| eprintln!("unit {unit} goes to somebody else");

    let table = Arc::new(HeartbeatTable::create(&path, 64)?);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);

    // Somebody to watch: it marks a unit and then never beats.
    let silent = table.register(std::process::id())?;
    table.mark_in_flight(silent, 5_u8)?;

    for _ in 0..6 {
        let report = watchdog.scan();
        for (slot, snap) in &report.dead_slots {
            eprintln!("dead pid={} at slot={}", snap.pid, slot);
            for bit in FailoverWatchdog::iter_in_flight_bits(snap.in_flight_bitmap) {
                reassign_work_unit(bit);
            }
            watchdog.clear_dead_bitmap(*slot)?;
        }
        std::thread::sleep(Duration::from_millis(100));
    }

    table.unregister(silent)?;
    tidy_up(&path)
}

/// The first argument, or a file in the default folder.
fn table_path() -> Result<std::path::PathBuf, Box<dyn std::error::Error>> {
    match std::env::args_os().nth(1) {
        Some(path) => Ok(path.into()),
        None => Ok(bumpless_substrate::region::default_folder()?.join("example-watchdog.tbl")),
    }
}

/// Leaves nothing behind in the default folder.
fn tidy_up(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args_os().nth(1).is_none() {
        bumpless_substrate::region::Region::remove(path)?;
    }
    Ok(())
}
