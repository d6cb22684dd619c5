//! A worker registers, beats, and marks the units that it works on.
//!
//! `cargo run -p bumpless-heartbeat --example worker [TABLE]`; while it runs, look at the same table
//! with the `observer` example.
#![forbid(unsafe_code)]

use std::time::Duration;

use bumpless_heartbeat::HeartbeatTable;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = table_path()?;
    // Whoever comes first makes the table; here that may be this example itself.
    drop(HeartbeatTable::create(&path, 64)?);

    let mut waiting = vec![3_u64, 2, 1];
    let mut claim_work = || waiting.pop();
    let do_work = |work_id: u64| println!("unit {work_id} done");

    let t = HeartbeatTable::open(&path, 64)?;
    let slot = t.register(std::process::id())?;

    for _ in 0..5 {
        t.beat(slot)?;
        if let Some(work_id) = claim_work() {
            t.mark_in_flight(slot, work_id as u8)?;
            do_work(work_id);
            t.clear_in_flight(slot, work_id as u8)?;
        }
        std::thread::sleep(Duration::from_millis(100));
    }

    t.unregister(slot)?; // before clean exit
    tidy_up(&path)
}

/// The first argument, or a file in the default folder.
fn table_path() -> Result<std::path::PathBuf, Box<dyn std::error::Error>> {
    match std::env::args_os().nth(1) {
        Some(path) => Ok(path.into()),
        None => Ok(bumpless_substrate::region::default_folder()?.join("example-worker.tbl")),
    }
}

/// Leaves nothing behind in the default folder.
fn tidy_up(path: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args_os().nth(1).is_none() {
        bumpless_substrate::region::Region::remove(path)?;
    }
    Ok(())
}
