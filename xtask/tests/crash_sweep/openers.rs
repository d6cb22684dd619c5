//! What victims do that make, open, replace or delete a table's file.

use anyhow::Result;
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::Region;

use crate::stage::Stage;
use crate::victim::{ROOMY, Window};

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
    let removed = Region::remove(&path);
    window.close();
    Ok(removed?)
}
