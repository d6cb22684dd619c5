//! What victims do that own a slot, or want one.

use anyhow::{Context, Result, ensure};
use bumpless_heartbeat::{
    Certificate, DOORBELL_WAITED_ON, Handle, HeartbeatTable, Label, SlotRole,
};
use bumpless_substrate::sync::Ordering;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::stage::Stage;
use crate::victim::{MOVED, OWN, Window, mark, units};

fn registered(stage: &Stage) -> Result<(HeartbeatTable, Handle)> {
    let table = HeartbeatTable::attach(stage.table())?;
    let handle = table.register(std::process::id())?;
    Ok((table, handle))
}

/// A registration with units in flight.
pub fn busy(stage: &Stage) -> Result<(HeartbeatTable, Handle)> {
    let (table, handle) = registered(stage)?;
    mark(&table, handle, &OWN)?;
    Ok((table, handle))
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
