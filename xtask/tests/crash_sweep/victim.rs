//! The victims: what each prepares, and the one operation inside its window.
//!
//! Contract: everything before [`Window::open`] and after [`Window::close`] runs at full speed and is
//! never interrupted; in between is the operation and the log of its outcome, nothing else.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail, ensure};
use bumpless_failover::{FailoverWatchdog, SlotRef, Standing};
use bumpless_heartbeat::slot::FenceOutcome;
use bumpless_heartbeat::{
    Certificate, DOORBELL_WAITED_ON, Handle, HeartbeatTable, Label, SlotRole, Unit, UnitSet,
};
use bumpless_substrate::sync::Ordering;
use rustix::process::{Resource, Rlimit, Signal, getpid, getrlimit, kill_process, setrlimit};

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

fn registered(stage: &Stage) -> Result<(HeartbeatTable, Handle)> {
    let table = HeartbeatTable::attach(stage.table())?;
    let handle = table.register(std::process::id())?;
    Ok((table, handle))
}

fn busy(stage: &Stage) -> Result<(HeartbeatTable, Handle)> {
    let (table, handle) = registered(stage)?;
    mark(&table, handle, &OWN)?;
    Ok((table, handle))
}

/// What the watchdog's next report shows of the one who died beside.
pub fn reported(watchdog: &FailoverWatchdog<'_>) -> Result<SlotRef> {
    let report = watchdog.scan();
    let found = report
        .dead_slots
        .iter()
        .find(|(_, dead)| dead.in_flight_bitmap == units(&THEIRS));
    Ok(found.context("the dead one is not reported")?.0)
}

/// One beat.
pub fn beat(stage: &Stage, window: &Window) -> Result<()> {
    let (table, handle) = busy(stage)?;
    table.tick_global_epoch()?;
    window.open();
    let beaten = table.beat(handle);
    window.close();
    Ok(beaten?)
}

/// One mark.
pub fn mark_one(stage: &Stage, window: &Window) -> Result<()> {
    let (table, handle) = registered(stage)?;
    mark(&table, handle, &[OWN[0], OWN[2]])?;
    window.open();
    let marked = table.mark_in_flight(handle, MOVED);
    window.close();
    Ok(marked?)
}

/// One unit's end as the rules want it: published, then completed.
pub fn complete(stage: &Stage, window: &Window) -> Result<()> {
    let log = stage.log()?;
    let (table, handle) = busy(stage)?;
    let moved = units(&[MOVED]);
    window.open();
    log.publish(moved);
    let completed = table.clear_in_flight(handle, MOVED);
    if completed.is_ok() {
        log.done(moved);
    }
    window.close();
    Ok(completed?)
}

/// Role, label and grace, all of them cold.
pub fn change_profile(stage: &Stage, window: &Window) -> Result<()> {
    let (table, handle) = busy(stage)?;
    let label = Label::new("a label of more than one word of eight bytes")?;
    window.open();
    let changed = table
        .set_label(handle, label)
        .and_then(|()| table.set_role(handle, SlotRole::Coordinator))
        .and_then(|()| table.set_grace(handle, 7));
    window.close();
    Ok(changed?)
}

/// A registration, and all that an owner does, where no keeper can be started.
pub fn without_keeper(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let before = getrlimit(Resource::As);
    let nothing_more = Rlimit {
        current: Some(0),
        ..before
    };
    // No memory can be mapped, so no thread be started; what is free already serves the rest.
    setrlimit(Resource::As, nothing_more)?;
    let first = table.register(std::process::id());
    setrlimit(Resource::As, before)?;
    let first = first?;
    let seen = table.snapshot(first).context("not seen")?;
    ensure!(seen.certificate == Certificate::None, "{seen:?}");
    mark(&table, first, &OWN)?;
    window.open();
    let registered = table.register(std::process::id()).and_then(|second| {
        table.beat(second)?;
        table.unregister(second)
    });
    window.close();
    Ok(registered?)
}

/// The first registration: the keeper is started inside.
pub fn register_first(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    window.open();
    let registered = table.register(std::process::id());
    window.close();
    registered?;
    Ok(())
}

/// A registration in a slot that was given back, with the keeper running and somebody asleep on the
/// doorbell.
pub fn register_again(stage: &Stage, window: &Window) -> Result<()> {
    let (table, handle) = registered(stage)?;
    table.unregister(handle)?;
    let doorbell = &table.header().doorbell;
    doorbell.fetch_or(DOORBELL_WAITED_ON, Ordering::SeqCst);
    window.open();
    let registered = table.register(std::process::id());
    window.close();
    registered?;
    Ok(())
}

/// A registration over a dead owner's slot, in a table without a vacant one.
pub fn recycle(stage: &Stage, window: &Window) -> Result<()> {
    let (table, own) = busy(stage)?;
    window.open();
    let registered = table.register(std::process::id());
    window.close();
    let recycled = registered?;
    ensure!(recycled.slot() != own.slot(), "two handles of one slot");
    Ok(())
}

/// Unregistering with nothing in flight.
pub fn unregister_idle(stage: &Stage, window: &Window) -> Result<()> {
    let (table, handle) = registered(stage)?;
    window.open();
    let unregistered = table.unregister(handle);
    window.close();
    Ok(unregistered?)
}

/// Unregistering with units in flight the middle one of three registrations.
pub fn unregister_busy(stage: &Stage, window: &Window) -> Result<()> {
    let (table, _) = registered(stage)?;
    let handle = table.register(std::process::id())?;
    mark(&table, handle, &OWN)?;
    table.register(std::process::id())?;
    window.open();
    let unregistered = table.unregister(handle);
    window.close();
    Ok(unregistered?)
}

/// The end of a table with two registrations: both are given back, the keeper stops.
pub fn drop_table(stage: &Stage, window: &Window) -> Result<()> {
    let (table, _) = busy(stage)?;
    table.register(std::process::id())?;
    window.open();
    drop(table);
    window.close();
    Ok(())
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

/// Making a table where there is none; also reviving one of an earlier start of the machine.
pub fn create(stage: &Stage, window: &Window) -> Result<()> {
    let path = stage.table();
    window.open();
    let created = HeartbeatTable::create(&path, ROOMY);
    window.close();
    created?;
    Ok(())
}

/// Opening a table that is there.
pub fn attach(stage: &Stage, window: &Window) -> Result<()> {
    let path = stage.table();
    window.open();
    let attached = HeartbeatTable::attach(&path);
    window.close();
    attached?;
    Ok(())
}

/// Putting a new table in the place of one that is in use.
pub fn reset(stage: &Stage, window: &Window) -> Result<()> {
    let path = stage.table();
    window.open();
    let reset = HeartbeatTable::reset(&path, ROOMY);
    window.close();
    reset?;
    Ok(())
}

/// Deleting a table.
pub fn remove(stage: &Stage, window: &Window) -> Result<()> {
    let path = stage.table();
    window.open();
    let removed = bumpless_substrate::region::Region::remove(&path);
    window.close();
    Ok(removed?)
}
