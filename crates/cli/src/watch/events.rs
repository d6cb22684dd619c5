//! What a watch writes into a black box: what it saw and did, for whoever asks afterwards.
//!
//! Contract: recording waits for nobody and makes no system call, so the thread of the scan may do it.

use bumpless_failover::{SlotRef, Verdict};
use bumpless_heartbeat::{HeartbeatTable, UnitSet};
use bumpless_sidecar::{BlackBox, Event, EventKind};
use bumpless_substrate::clock::monotonic_ns;

/// A verdict is news.
pub fn record_verdict(black_box: &BlackBox, table: &HeartbeatTable, slot: &SlotRef) {
    let (kind, value, detail) = match slot.verdict {
        Verdict::Died => (EventKind::Died, slot.deaths.into(), 0),
        Verdict::Silent {
            lag_epochs,
            grace_epochs,
        } => (EventKind::Silent, lag_epochs, grace_epochs),
        Verdict::Quarantined | Verdict::InTransition { .. } => (EventKind::Quarantined, 0, 0),
        Verdict::Released => (EventKind::Unregistered, 0, 0),
    };
    black_box.record(Event {
        value,
        detail,
        ..of(table, slot, kind)
    });
    if !slot.units.is_empty() {
        black_box.record(of(table, slot, EventKind::HandedBack).with_units(slot.units));
    }
}

/// An acknowledgement took these units.
pub fn record_acknowledged(
    black_box: &BlackBox,
    table: &HeartbeatTable,
    slot: &SlotRef,
    units: UnitSet,
) {
    black_box.record(of(table, slot, EventKind::Acknowledged).with_units(units));
}

/// This watchdog became the primary one, or is it no more.
pub fn record_standing(black_box: &BlackBox, table: &HeartbeatTable, is_primary: bool, term: u32) {
    let kind = if is_primary {
        EventKind::LeaseTaken
    } else {
        EventKind::LeaseLost
    };
    black_box.record(Event {
        value: term.into(),
        pid: std::process::id(),
        table_id: table.creation_id(),
        ..Event::new(kind, monotonic_ns())
    });
}

fn of(table: &HeartbeatTable, slot: &SlotRef, kind: EventKind) -> Event {
    let identity = table.identity(*slot);
    let own = identity.filter(|found| found.generation == slot.generation);
    Event {
        slot: slot.slot,
        generation: slot.generation,
        label: own.map_or_else(Default::default, |own| own.registration.profile.label),
        pid: slot.pid,
        table_id: table.creation_id(),
        ..Event::new(kind, monotonic_ns())
    }
}
