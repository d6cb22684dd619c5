//! A worker pool across processes: process B takes work and is killed; process A hands it on.
//!
//! `cargo run -p bumpless-failover --example worker_pool`
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::{HeartbeatTable, Unit};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args_os().nth(1) {
        Some(path) => process_b(Path::new(&path)),
        None => process_a(),
    }
}

/// Process A - daemon scheduler.
fn process_a() -> Result<(), Box<dyn std::error::Error>> {
    let folder = bumpless_substrate::region::default_folder()?;
    let path = folder.join(format!("example-pool-{}.tbl", std::process::id()));
    let mut reassigned = Vec::new();
    let mut reassign_work_unit = |unit: Unit| reassigned.push(unit.index());

    let table = Arc::new(HeartbeatTable::create(&path, 64)?);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);

    let mut b = Command::new(std::env::current_exe()?)
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()?;
    let said = b.stdout.take().ok_or("no pipe to process B")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    eprintln!("process B says: {}", line.trim_end());
    b.kill()?; // in the middle of its work

    for _ in 0..50 {
        let report = watchdog.scan();
        for (slot, snap) in &report.dead_slots {
            eprintln!("dead pid={} at slot={}", snap.pid, slot);
            for bit in FailoverWatchdog::iter_in_flight_bits(snap.in_flight_bitmap) {
                reassign_work_unit(bit);
            }
            watchdog.clear_dead_bitmap(*slot)?;
        }
        std::thread::sleep(Duration::from_millis(10));
    }

    b.wait()?;
    drop(watchdog);
    drop(table);
    bumpless_substrate::region::Region::remove(&path)?;
    eprintln!("units handed back: {reassigned:?}");
    if reassigned == [7] {
        Ok(())
    } else {
        Err("unit 7 was not handed back exactly once".into())
    }
}

/// Process B - worker.
fn process_b(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut waiting = vec![7_u64];
    let mut claim_work = || waiting.pop();
    let do_work = |work_id: u64| {
        println!("working on unit {work_id}");
        std::thread::sleep(Duration::from_secs(60)); // killed long before
    };

    let table = Arc::new(HeartbeatTable::open(path, 64)?);
    let slot = table.register(std::process::id())?;
    for _ in 0..100 {
        if let Some(work_id) = claim_work() {
            table.mark_in_flight(slot, work_id as u8)?;
            table.beat(slot)?;
            do_work(work_id);
        }
    }
    Ok(())
}
