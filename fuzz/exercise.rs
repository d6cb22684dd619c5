//! What the fuzz targets do with their bytes.
//!
//! Contract: whatever the bytes, no call panics, spins, or leaves the mapping; errors are values.
//!
//! `cargo +nightly fuzz run attach -- -max_total_time=60`, the same with `every_call`.
#![forbid(unsafe_code)]

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::{HeartbeatTable, Label, SlotRole, Unit};
use bumpless_substrate::shared_atomic::{SharedAtomicBool, SharedAtomicU32, SharedAtomicU64};
use tempfile::TempDir;

const CAPACITY: usize = 5;

/// Where line 0 ends: a table whose line 0 is damaged is refused, and `attach` tries that.
const PREAMBLE_LEN: u64 = 64;

fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    made.expect("a folder for the file under test")
}

/// Opens a file of these bytes as everything that there is. The first byte chooses whether the rest
/// is the whole file, or replaces bytes of a real table from some offset on.
pub fn attach(bytes: &[u8]) {
    let folder = folder();
    let path = folder.path().join("file");
    match bytes {
        [choice, low, high, rest @ ..] if choice % 2 == 1 => {
            real_table(&path);
            overwrite(&path, u64::from(*low) + u64::from(*high % 2) * 256, rest);
        }
        _ => std::fs::write(&path, bytes.get(1..).unwrap_or_default()).expect("a file"),
    }
    if let Ok(table) = HeartbeatTable::attach(&path) {
        exercise(&table);
    }
    if let Ok(table) = HeartbeatTable::open_read_only(&path) {
        look(&table);
    }
    let _ = SharedAtomicU32::open(&path).map(|value| value.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
    let _ = SharedAtomicU64::open(&path).map(|value| value.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
    let _ = SharedAtomicBool::open(&path).map(|value| value.fetch_or(true, std::sync::atomic::Ordering::SeqCst));
    let _ = HeartbeatTable::create(&path, CAPACITY).map(|table| exercise(&table));
}

/// Fills a table behind its line 0 with these bytes, over and over, and makes every call.
pub fn every_call(bytes: &[u8]) {
    let folder = folder();
    let path = folder.path().join("table");
    let len = real_table(&path);
    if !bytes.is_empty() {
        let body: Vec<u8> =
            bytes.iter().copied().cycle().take((len - PREAMBLE_LEN) as usize).collect();
        overwrite(&path, PREAMBLE_LEN, &body);
    }
    let table = HeartbeatTable::open(&path, CAPACITY).expect("line 0 is whole");
    let observer = HeartbeatTable::open_read_only(&path).expect("line 0 is whole");
    look(&observer);
    exercise(&table);
    look(&observer);
}

fn real_table(path: &PathBuf) -> u64 {
    drop(HeartbeatTable::create(path, CAPACITY).expect("a table"));
    std::fs::metadata(path).expect("its file").len()
}

/// Within the file's length: nobody here ever changes a table's length.
fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = std::fs::File::options().write(true).open(path).expect("the file");
    let len = file.metadata().expect("its length").len();
    let room = len.saturating_sub(at).min(bytes.len() as u64) as usize;
    file.seek(SeekFrom::Start(at)).expect("an offset");
    file.write_all(&bytes[..room]).expect("written");
}

fn look(table: &HeartbeatTable) {
    for slot in 0..table.capacity() + 2 {
        let _ = (table.observe(slot), table.snapshot(slot), table.identity(slot));
    }
    let _ = (table.iter_live().count(), table.find_by_label("x"), table.global_epoch());
    let _ = FailoverWatchdog::new(table).scan();
}

fn exercise(table: &HeartbeatTable) {
    let watchdog = FailoverWatchdog::with_grace(table, 1);
    let registered = table.register(std::process::id());
    if let Ok(handle) = registered {
        for unit in 0..128_u8 {
            let _ = table.mark_in_flight(handle, unit);
            let _ = table.beat(handle);
            if unit % 3 == 0 {
                let _ = table.clear_in_flight(handle, unit);
            }
        }
        let _ = table.set_role(handle, SlotRole::Other(9));
        let _ = table.set_grace(handle, 1);
        let _ = table.set_label(handle, Label::new("fuzzed").unwrap_or_default());
    }
    for _ in 0..4 {
        let report = watchdog.scan();
        for (slot, snapshot) in &report.dead_slots {
            let _ = slot.to_string();
            let first: Option<Unit> = snapshot.in_flight_bitmap.iter().next();
            let _ = first.map(|unit| watchdog.acknowledge_unit(*slot, unit));
            let _ = watchdog.clear_dead_bitmap(*slot);
        }
        let _ = table.tick_global_epoch();
    }
    look(table);
    if let Ok(handle) = registered {
        let _ = table.unregister(handle);
        let _ = table.beat(handle);
    }
}
