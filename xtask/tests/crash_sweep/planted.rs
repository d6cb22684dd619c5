//! Mistakes made on purpose: a sweep that does not see them sees nothing.

use anyhow::{Context, Result, ensure};
use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::HeartbeatTable;
use bumpless_heartbeat::identity_line::Registration;
use bumpless_substrate::keeper::WAITERS;
use bumpless_substrate::sync::Ordering;

use crate::findings::Kind;
use crate::operations::{
    ALL_BUT_THE_MOVED, Moves, NOTHING, OF_THE_DEAD, Operation, Owed, Scene, operation,
};
use crate::stage::Stage;
use crate::victim::{MOVED, NEVER_LATE, OWN, ROOMY, THEIRS, Window, mark, units};
use crate::watchdogs::reported;

/// A mistake, and how it must be seen.
#[derive(Debug)]
pub struct Planted {
    /// An operation done wrong.
    pub operation: Operation,
    /// What the survivors must say, at one point at least.
    pub kind: Kind,
}

const BUSY: Scene = Scene::DiedBefore(ROOMY, "busy");

/// One for each kind.
pub static PLANTED: [Planted; 4] = [
    Planted {
        operation: operation(
            "completed-first",
            Scene::Table(ROOMY),
            completed_first,
            Owed {
                moves: Moves::Complete,
                ..ALL_BUT_THE_MOVED
            },
        ),
        kind: Kind::Lost,
    },
    Planted {
        operation: operation(
            "told-first",
            BUSY,
            told_first,
            Owed {
                may: &THEIRS,
                moves: Moves::Acknowledge,
                ..NOTHING
            },
        ),
        kind: Kind::Doubled,
    },
    Planted {
        operation: operation(
            "live-unguarded",
            Scene::Table(ROOMY),
            live_unguarded,
            NOTHING,
        ),
        kind: Kind::Unclaimable,
    },
    Planted {
        operation: operation("lease-of-nobody", BUSY, lease_of_nobody, OF_THE_DEAD),
        kind: Kind::Hung,
    },
];

/// Completes a unit, and only then publishes its result.
fn completed_first(stage: &Stage, window: &Window) -> Result<()> {
    let log = stage.log()?;
    let table = HeartbeatTable::attach(stage.table())?;
    let handle = table.register(std::process::id())?;
    mark(&table, handle, &OWN)?;
    window.open();
    let completed = table.clear_in_flight(handle, MOVED);
    log.publish(units(&[MOVED]));
    window.close();
    Ok(completed?)
}

/// Takes units for acknowledged before they are.
fn told_first(stage: &Stage, window: &Window) -> Result<()> {
    let log = stage.log()?;
    let table = HeartbeatTable::attach(stage.table())?;
    let watchdog = FailoverWatchdog::with_grace(&table, NEVER_LATE);
    let dead = reported(&watchdog)?;
    window.open();
    log.done(dead.units);
    let acknowledged = watchdog.clear_dead_bitmap(dead);
    window.close();
    ensure!(acknowledged?.units == units(&THEIRS), "not all of them");
    Ok(())
}

/// Becomes LIVE with a certificate that no keeper backs, and without an identity.
fn live_unguarded(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let cells = table.cells(0).context("slot 0")?;
    let nobody = Registration::default();
    table.occupancy().set(0);
    window.open();
    let seen = cells.slot.claimed_by();
    let live = cells
        .slot
        .claim(seen, std::process::id())
        .and_then(|claiming| {
            cells
                .slot
                .keeper_word()
                .store(WAITERS | 1, Ordering::SeqCst);
            cells.slot.fill(claiming, cells.identity, &nobody);
            cells.slot.publish(claiming)
        });
    window.close();
    ensure!(live.is_ok(), "{live:?}");
    Ok(())
}

/// Leaves the lease to a watchdog that has no slot in which its death could be seen.
fn lease_of_nobody(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let unregistered = u64::MAX << 20;
    window.open();
    table.header().lease.store(unregistered, Ordering::SeqCst);
    window.close();
    Ok(())
}
