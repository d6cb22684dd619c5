//! Single operations, done so many times and nothing else: for a count of instructions.
//!
//! Contract: a program that did an operation 3,000 times and one that did it 1,000 times differ by 2,000 of
//! them; what comes before and after is the same, but for some thousand instructions of a table's threads and
//! random names.

use std::hint::black_box;

use anyhow::{Context, Result, bail, ensure};
use bumpless_failover::{FailoverWatchdog, ReclaimReport};
use bumpless_heartbeat::{Handle, HeartbeatTable, Unit};
use bumpless_sidecar::{Scanner, SidecarBox};
use bumpless_standby::frame::{decode, encode_heartbeat};

use crate::conversation::{CYCLES, Side, converse};
use crate::fleet::Fleet;
use crate::pairs::snapshot::look;

/// Does the operation.
///
/// # Errors
/// No such operation, or it was refused.
pub fn repeat(name: &str, times: u64) -> Result<()> {
    match name {
        "tick, primary" | "tick, standby" | "heartbeat to frame" | "frame to heartbeat" => {
            of_a_pair(name, times)
        }
        _ => of_a_table(name, times),
    }
}

fn of_a_pair(name: &str, times: u64) -> Result<()> {
    let [primary, standby] = converse()?;
    let heartbeat = standby.heartbeat().context("a heartbeat")?;
    let mut frame = Vec::new();
    encode_heartbeat(heartbeat, &mut frame);
    match name {
        "tick, primary" => first_ticks(&primary, times)?,
        "tick, standby" => first_ticks(&standby, times)?,
        "heartbeat to frame" => {
            for _ in 0..times {
                frame.clear();
                encode_heartbeat(black_box(heartbeat), &mut frame);
                black_box(&frame);
            }
        }
        _ => {
            for _ in 0..times {
                black_box(decode::<f64>(black_box(&frame))?);
            }
        }
    }
    Ok(())
}

/// From the beginning of one conversation, so that no more is made ready for more of them.
fn first_ticks(side: &Side, times: u64) -> Result<()> {
    ensure!(times <= CYCLES as u64, "{times} are more than {CYCLES}");
    side.first_ticks(times as usize);
    Ok(())
}

fn of_a_table(name: &str, times: u64) -> Result<()> {
    let fleet = Fleet::new(64, 62, 1)?;
    let (table, handle) = (fleet.table(), fleet.handles[31]);
    let watched = fleet.open()?;
    let watchdog = FailoverWatchdog::with_grace(&watched, 3);
    let mut report = ReclaimReport::default();
    watchdog.scan_into(&mut report);
    let unit = Unit::try_from(5_u8)?;
    let boxed = SidecarBox::new(table);
    let mut scanner = Scanner::new();
    scanner.register(&boxed);
    // By their addresses: how much of an operation becomes a part of this function, and what falls out there,
    // would depend on whoever else in the program calls it.
    let beat: OfHandle = by_address(|table, handle| table.beat(handle));
    let mark: OfUnit = by_address(|table, handle, unit| table.mark_in_flight(handle, unit));
    let clear: OfUnit = by_address(|table, handle, unit| table.clear_in_flight(handle, unit));
    let snapshot: fn(&HeartbeatTable, usize) = by_address(look);
    let register: Register = by_address(HeartbeatTable::register);
    let unregister: OfHandle = by_address(HeartbeatTable::unregister);
    let boxed_beat: BoxedBeat = by_address(|boxed, handle| boxed.beat(handle));
    match name {
        "beat" => often(times, || beat(table, handle)),
        "mark, complete" => often(times, || {
            mark(table, handle, unit)?;
            clear(table, handle, unit)
        }),
        "snapshot" => often(times, || {
            snapshot(table, handle.slot());
            Ok(())
        }),
        "scan of 64" => often(times, || {
            for handle in &fleet.handles {
                beat(table, *handle)?;
            }
            watchdog.scan_into(&mut report);
            Ok(())
        }),
        "observed beat" => often(times, || boxed_beat(&boxed, handle)),
        "register, unregister" => often(times, || {
            unregister(table, register(table, std::process::id())?)
        }),
        _ => bail!("no operation `{name}`"),
    }
}

type OfHandle = fn(&HeartbeatTable, Handle) -> bumpless_heartbeat::Result<()>;
type OfUnit = fn(&HeartbeatTable, Handle, Unit) -> bumpless_heartbeat::Result<()>;
type Register = fn(&HeartbeatTable, u32) -> bumpless_heartbeat::Result<Handle>;
type BoxedBeat = fn(&SidecarBox<&HeartbeatTable>, Handle) -> bumpless_heartbeat::Result<()>;

/// The function, as one of which the optimizer does not know which it is.
fn by_address<F>(function: F) -> F {
    black_box(function)
}

fn often(times: u64, mut operation: impl FnMut() -> bumpless_heartbeat::Result<()>) -> Result<()> {
    for _ in 0..times {
        operation()?;
    }
    Ok(())
}
