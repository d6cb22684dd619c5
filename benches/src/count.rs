//! Single operations, done so many times and nothing else: for a count of instructions.
//!
//! Contract: a program that did an operation 3,000 times and one that did it 1,000 times differ by 2,000 of
//! them; what comes before and after is the same.

use std::hint::black_box;

use anyhow::{Result, bail};
use bumpless_failover::{FailoverWatchdog, ReclaimReport};
use bumpless_heartbeat::Unit;
use bumpless_sidecar::{Scanner, SidecarBox};

use crate::fleet::Fleet;
use crate::pairs::snapshot::look;

/// What can be counted.
pub const NAMES: [&str; 6] = [
    "beat",
    "mark, complete",
    "snapshot",
    "scan of 64",
    "observed beat",
    "register, unregister",
];

/// Does the operation.
///
/// # Errors
/// No such operation, or it was refused.
pub fn repeat(name: &str, times: u64) -> Result<()> {
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
    for _ in 0..times {
        let done = match name {
            "beat" => black_box(table).beat(*black_box(&handle)),
            "mark, complete" => black_box(table)
                .mark_in_flight(handle, unit)
                .and_then(|()| black_box(table).clear_in_flight(handle, unit)),
            "snapshot" => {
                look(black_box(table), handle.slot());
                Ok(())
            }
            "scan of 64" => {
                fleet.beat_all();
                watchdog.scan_into(&mut report);
                Ok(())
            }
            "observed beat" => black_box(&boxed).beat(*black_box(&handle)),
            "register, unregister" => table
                .register(std::process::id())
                .and_then(|handle| table.unregister(handle)),
            _ => bail!("no operation `{name}`"),
        };
        done?;
    }
    Ok(())
}
