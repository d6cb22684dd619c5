//! A victim's life, and what all victims agree on.
//!
//! Contract: what a victim does before [`Window::open`] and after [`Window::close`] runs at full speed
//! and is never interrupted; in between is the operation and the log of its outcome, nothing else.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail, ensure};
use bumpless_failover::{FailoverWatchdog, Standing};
use bumpless_heartbeat::{Handle, HeartbeatTable, Unit, UnitSet};
use rustix::process::{Signal, getpid, kill_process};

use crate::stage::Stage;

/// The units that a victim has in flight, one of them in another work word than the rest.
pub const OWN: [u32; 3] = [0, 62, 100];
/// The unit of them that a victim marks or completes inside its window.
pub const MOVED: u32 = 62;
/// The units of somebody who dies beside a victim: one in each work word.
pub const THEIRS: [u32; 4] = [3, 40, 70, 127];
/// The unit of them that a victim acknowledges alone.
pub const TAKEN: u32 = 40;

/// A grace that no scan here exceeds: whoever is reported is proven dead.
pub const NEVER_LATE: u64 = 1 << 20;
/// The slots of a table that is not to be full.
pub const ROOMY: usize = 5;
/// The slots of a table in which a victim finds no vacant one.
pub const TIGHT: usize = 2;

/// The part of the victim's life that is stepped.
#[derive(Debug)]
pub struct Window(());

impl Window {
    /// From the return of this call on the victim is stepped.
    pub fn open(&self) {
        stop();
    }

    /// To here.
    pub fn close(&self) {
        stop();
    }
}

/// Stands still until the tracer lets it go on.
fn stop() {
    // Fails for no process that exists.
    let _ = kill_process(getpid(), Signal::STOP);
}

/// Runs as a victim: waits for the tracer, then does its part.
pub fn run(act: fn(&Stage, &Window) -> Result<()>, stage: &Stage) -> Result<()> {
    let mut go = [0];
    std::io::stdin()
        .read_exact(&mut go)
        .context("nobody traces this victim")?;
    act(stage, &Window(()))
}

/// Runs beside a victim: does its part, says so, and waits to be killed.
pub fn run_beside(part: &str, stage: &Stage) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let handle = table.register(std::process::id())?;
    let _watchdog;
    match part {
        "idle" => {}
        "busy" => mark(&table, handle, &THEIRS)?,
        "primary" => {
            mark(&table, handle, &THEIRS)?;
            let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
            let report = watchdog.scan();
            ensure!(report.standing == Standing::Primary, "not the primary one");
            _watchdog = watchdog;
        }
        other => bail!("no such part: {other}"),
    }
    std::io::stdout().write_all(b"!")?;
    std::io::stdout().flush()?;
    // Until the tracer kills us, or is gone itself.
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// A set of units by their numbers.
pub fn units(numbers: &[u32]) -> UnitSet {
    numbers
        .iter()
        .filter_map(|number| Unit::try_from(*number).ok())
        .collect()
}

/// Marks units.
pub fn mark(table: &HeartbeatTable, handle: Handle, numbers: &[u32]) -> Result<()> {
    for number in numbers {
        table.mark_in_flight(handle, *number)?;
    }
    Ok(())
}
