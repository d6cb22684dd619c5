//! What victims do that watch.

use anyhow::{Context, Result, ensure};
use bumpless_failover::{FailoverWatchdog, SlotRef, Standing};
use bumpless_heartbeat::slot::FenceOutcome;
use bumpless_heartbeat::{HeartbeatTable, Unit};

use crate::owners::busy;
use crate::stage::Stage;
use crate::victim::{NEVER_LATE, TAKEN, THEIRS, Window, units};

/// What the watchdog's next report shows of the one who died beside.
pub fn reported(watchdog: &FailoverWatchdog<'_>) -> Result<SlotRef> {
    let report = watchdog.scan();
    let found = report
        .dead_slots
        .iter()
        .find(|(_, dead)| dead.in_flight_bitmap == units(&THEIRS));
    Ok(found.context("the dead one is not reported")?.0)
}

/// A scan that finds nothing.
pub fn scan_quiet(stage: &Stage, window: &Window) -> Result<()> {
    let (table, _) = busy(stage)?;
    let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
    let mut report = watchdog.scan();
    window.open();
    watchdog.scan_into(&mut report);
    window.close();
    ensure!(report.standing == Standing::Primary, "not the primary one");
    ensure!(report.is_empty(), "{report:?}");
    Ok(())
}

/// A watchdog's first scan: it registers, takes the lease, and finds somebody dead.
pub fn scan_first(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
    window.open();
    let report = watchdog.scan();
    window.close();
    ensure!(report.dead_slots.len() == 1, "{report:?}");
    Ok(())
}

/// A primary watchdog's scan which finds that somebody has died since the last one; also the scan of a
/// standby whose primary has: it takes over and hands that one's units back.
pub fn scan_dead(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
    let mut report = watchdog.scan();
    ensure!(report.is_empty(), "{report:?}");
    window.open();
    watchdog.scan_into(&mut report);
    window.close();
    ensure!(report.standing == Standing::Primary, "not the primary one");
    ensure!(!report.is_empty(), "{report:?}");
    Ok(())
}

/// The scan that fences an owner for its silence.
pub fn scan_silent(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let watchdog = FailoverWatchdog::with_grace(&table, 1);
    let mut report = watchdog.scan();
    watchdog.scan_into(&mut report);
    ensure!(report.is_empty(), "{report:?}");
    window.open();
    watchdog.scan_into(&mut report);
    window.close();
    ensure!(report.dead_slots.len() == 1, "{report:?}");
    Ok(())
}

/// The fence alone, of a primary watchdog whose owner was late.
pub fn fence(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
    let _report = watchdog.scan();
    let late = table
        .iter_live()
        .find(|(_, owner)| owner.in_flight_bitmap == units(&THEIRS));
    let (slot, owner) = late.context("no late owner")?;
    let cells = table.cells(slot).context("no such slot")?;
    window.open();
    let fenced = cells.slot.fence(owner.generation);
    window.close();
    ensure!(fenced == FenceOutcome::Fenced(units(&THEIRS)), "{fenced:?}");
    Ok(())
}

/// Acknowledging all that a report shows of a slot.
pub fn acknowledge(stage: &Stage, window: &Window) -> Result<()> {
    let log = stage.log()?;
    let table = HeartbeatTable::attach(stage.table())?;
    let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
    let dead = reported(&watchdog)?;
    window.open();
    let acknowledged = watchdog.clear_dead_bitmap(dead);
    if let Ok(taken) = &acknowledged {
        log.done(taken.units);
    }
    window.close();
    ensure!(acknowledged?.units == units(&THEIRS), "not all of them");
    Ok(())
}

/// Acknowledging one unit of a report.
pub fn acknowledge_unit(stage: &Stage, window: &Window) -> Result<()> {
    let log = stage.log()?;
    let table = HeartbeatTable::attach(stage.table())?;
    let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
    let dead = reported(&watchdog)?;
    let unit = Unit::try_from(TAKEN)?;
    window.open();
    let acknowledged = watchdog.acknowledge_unit(dead, unit);
    if let Ok(taken) = &acknowledged {
        log.done(taken.units);
    }
    window.close();
    ensure!(acknowledged?.units == units(&[TAKEN]), "not that one");
    Ok(())
}

/// Acknowledging the death of somebody who had nothing in flight.
pub fn acknowledge_death(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
    let report = watchdog.scan();
    let (dead, _) = report.dead_slots.first().context("nobody is dead")?;
    window.open();
    let acknowledged = watchdog.clear_dead_bitmap(*dead);
    window.close();
    ensure!(acknowledged?.deaths == 1, "not that one");
    Ok(())
}

/// A primary watchdog's end: it gives slot and lease back, with a report not acknowledged.
pub fn give_back(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
    reported(&watchdog)?;
    window.open();
    drop(watchdog);
    window.close();
    Ok(())
}
