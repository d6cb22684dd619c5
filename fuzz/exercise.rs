//! What the fuzz targets do with their bytes.
//!
//! Contract: whatever the bytes, no call panics, spins, or leaves the mapping; errors are values.
//!
//! `cargo +nightly fuzz run attach -- -max_total_time=60`, the same with `every_call`, `frame`, `parts`.
#![forbid(unsafe_code)]

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::{HeartbeatTable, Label, SlotRole, Unit};
use bumpless_standby::frame::{self, Frame};
use bumpless_standby::message::Part;
use bumpless_standby::transfer::Receiver;
use bumpless_standby::{Epoch, NodeId};
use bumpless_substrate::shared_atomic::{SharedAtomicBool, SharedAtomicU32, SharedAtomicU64};
use tempfile::TempDir;

const CAPACITY: usize = 5;

/// Where line 0 ends: a table whose line 0 is damaged is refused, and `attach` tries that.
const PREAMBLE_LEN: u64 = 64;

fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
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
    let _ = SharedAtomicU32::open(&path)
        .map(|value| value.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
    let _ = SharedAtomicU64::open(&path)
        .map(|value| value.fetch_add(1, std::sync::atomic::Ordering::SeqCst));
    let _ = SharedAtomicBool::open(&path)
        .map(|value| value.fetch_or(true, std::sync::atomic::Ordering::SeqCst));
    let _ = HeartbeatTable::create(&path, CAPACITY).map(|table| exercise(&table));
}

/// Fills a table behind its line 0 with these bytes, over and over, and makes every call.
pub fn every_call(bytes: &[u8]) {
    let folder = folder();
    let path = folder.path().join("table");
    let len = real_table(&path);
    if !bytes.is_empty() {
        let body: Vec<u8> = bytes
            .iter()
            .copied()
            .cycle()
            .take((len - PREAMBLE_LEN) as usize)
            .collect();
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
    let mut file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("the file");
    let len = file.metadata().expect("its length").len();
    let room = len.saturating_sub(at).min(bytes.len() as u64) as usize;
    file.seek(SeekFrom::Start(at)).expect("an offset");
    file.write_all(&bytes[..room]).expect("written");
}

fn look(table: &HeartbeatTable) {
    for slot in 0..table.capacity() + 2 {
        let _ = (
            table.observe(slot),
            table.snapshot(slot),
            table.identity(slot),
        );
    }
    let _ = (
        table.iter_live().count(),
        table.find_by_label("x"),
        table.global_epoch(),
    );
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

/// Reads one datagram as it is, and again with its length and CRC made right. What is accepted has this
/// encoding and no other.
pub fn frame(bytes: &[u8]) {
    check_one_encoding(bytes);
    check_one_encoding(&sealed(bytes));
}

/// Reads the bytes as a row of datagrams, each behind its length in one byte and made right, and hands
/// their parts to a receiver. What comes out has the digest that was told.
pub fn parts(mut bytes: &[u8]) {
    let mut receiver = Receiver::new(256, 16);
    while let Some((len, rest)) = bytes.split_first() {
        let (datagram, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        bytes = rest;
        let (epoch, seq, part): (Epoch, u64, Part) = match frame::decode::<f64>(&sealed(datagram)) {
            Ok(Frame::Fragment(fragment)) => (fragment.epoch, fragment.seq, fragment.part),
            Ok(Frame::Heartbeat(heartbeat)) => match heartbeat.part {
                Some(part) => (heartbeat.epoch, heartbeat.seq, part),
                None => continue,
            },
            _ => continue,
        };
        // Few epochs, so that parts meet.
        let epoch = Epoch::new(epoch.counter() % 2, NodeId(0));
        if let Ok(Some(complete)) = receiver.accept(epoch, seq % 16, &part) {
            assert!(complete.bytes.len() <= 256);
            assert_eq!(crc32c::crc32c(&complete.bytes), complete.digest);
        }
        let _ = receiver.needs_full();
    }
}

fn check_one_encoding(bytes: &[u8]) {
    let mut again = Vec::new();
    match frame::decode::<f64>(bytes) {
        Ok(Frame::Heartbeat(heartbeat)) => frame::encode_heartbeat(&heartbeat, &mut again),
        Ok(Frame::Fragment(fragment)) => frame::encode_fragment(&fragment, &mut again),
        Ok(Frame::Request(request)) => frame::encode_request(&request, &mut again),
        Ok(Frame::Reply(reply)) => frame::encode_reply(&reply, &mut again),
        Ok(Frame::Sample(sample)) => frame::encode_sample(&sample, &mut again),
        Err(_) => return,
    }
    assert_eq!(again, bytes);
}

/// The bytes as a frame of this version: mark, version, length and CRC made right.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    const HEADER_LEN: usize = 48;
    let mut sealed = bytes.to_vec();
    sealed.resize(sealed.len().max(HEADER_LEN), 0);
    let payload_len = (sealed.len() - HEADER_LEN) as u32;
    sealed[..4].copy_from_slice(b"BLSB");
    sealed[4..6].copy_from_slice(&frame::VERSION.to_le_bytes());
    sealed[44..48].copy_from_slice(&payload_len.to_le_bytes());
    let crc = crc32c::crc32c(&sealed);
    sealed.extend_from_slice(&crc.to_le_bytes());
    sealed
}
