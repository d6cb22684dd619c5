//! What a watchdog's reports say that was not told before.
//!
//! Contract: a report repeats what nobody acknowledged; here each piece of news is told once. Which was
//! told is remembered by slot and generation, as long as it is reported or its owner has the slot.
//! Another process that takes over as watchdog tells what it finds: once for each.

use std::collections::HashMap;

use bumpless_failover::lease::{Holder, Lease};
use bumpless_failover::{ReclaimReport, SlotRef, Standing, Verdict};
use bumpless_heartbeat::{HeartbeatTable, Label, UnitSet};
use bumpless_substrate::region::{PathState, Region};

use crate::event::{Event, EventKind};

/// The news of one watchdog.
#[derive(Debug, Default)]
pub struct Told {
    owners: HashMap<Owner, News>,
    /// That was told as taken, and not as lost.
    lease: Option<Lease>,
    is_superseded: bool,
    /// At whose lags was looked last.
    ticked_epoch: u64,
    reports: u64,
}

/// A slot, and which claim of it.
type Owner = (u32, u32);

/// What was told of an owner.
#[derive(Debug, Default)]
struct News {
    missed: bool,
    silent: bool,
    died: bool,
    fenced: bool,
    quarantined: bool,
    handed_back: UnitSet,
    /// The number of the last report with it.
    reported: u64,
}

impl Told {
    /// Tells what is new in a report of the watchdog of `table`, which holds this lease and has this grace.
    pub fn tell(
        &mut self,
        report: &ReclaimReport,
        table: &HeartbeatTable,
        lease: Option<Lease>,
        grace_epochs: u64,
        tell: &mut dyn FnMut(Event),
    ) {
        self.reports += 1;
        let at_ns = report.started_ns;
        // Not the report's standing: a scan that met another ticker judges nothing, and holds its lease.
        if lease != self.lease {
            let lost = std::mem::replace(&mut self.lease, lease);
            for (kind, lease) in [(EventKind::LeaseLost, lost), (EventKind::LeaseTaken, lease)] {
                if let Some(lease) = lease {
                    tell(of_lease(kind, lease, at_ns, table));
                }
            }
        }
        if let Some(state) = report.path_state
            && once(&mut self.is_superseded)
        {
            tell(Event {
                value: successor(state, table),
                table_id: table.creation_id(),
                ..Event::new(EventKind::Superseded, at_ns)
            });
        }
        // A scan for deaths alone, between two ticks, and a standby's know of nobody's lag.
        if report.standing == Standing::Primary && report.new_global_epoch != self.ticked_epoch {
            self.ticked_epoch = report.new_global_epoch;
            self.tell_late(report, table, grace_epochs, tell);
        }
        for (slot, snapshot) in &report.dead_slots {
            self.tell_dead(slot, snapshot.is_fenced, at_ns, table, tell);
        }
        for slot in &report.suspects {
            self.tell_suspect(slot, at_ns, table, tell);
        }
        self.forget(table);
    }

    /// Owners that are on their way to be taken for silent: more than half of their grace late.
    fn tell_late(
        &mut self,
        report: &ReclaimReport,
        table: &HeartbeatTable,
        grace_epochs: u64,
        tell: &mut dyn FnMut(Event),
    ) {
        // Nobody is late: who was is in step again.
        if report.largest_lag_epochs < 2 {
            for news in self.owners.values_mut() {
                news.missed = false;
            }
            return;
        }
        for slot in table.occupancy().iter() {
            let Some(cells) = table.cells(slot as usize) else {
                continue;
            };
            let claim = cells.slot.peek_claim();
            let owner = (slot, claim.generation());
            let beat = cells.slot.peek_beat().epoch_of(claim.generation());
            let (true, Some(beat)) = (claim.is_live(), beat) else {
                continue;
            };
            // The watchdog counts from its own first look at the owner.
            let since_beat_epochs = report.new_global_epoch.saturating_sub(beat);
            let lag_epochs = since_beat_epochs.min(report.largest_lag_epochs);
            let grace_epochs = match cells.slot.grace_epochs() {
                0 => grace_epochs.max(1),
                own => own.into(),
            };
            let is_late = (2..=grace_epochs).contains(&lag_epochs) && lag_epochs * 2 > grace_epochs;
            if is_late && !self.news(owner).missed {
                self.news(owner).missed = true;
                tell(Event {
                    slot,
                    generation: owner.1,
                    pid: claim.pid(),
                    value: lag_epochs,
                    detail: grace_epochs,
                    label: label(table, owner),
                    table_id: table.creation_id(),
                    ..Event::new(EventKind::Missed, report.started_ns)
                });
            } else if lag_epochs < 2
                && let Some(news) = self.owners.get_mut(&owner)
            {
                news.missed = false;
            }
        }
    }

    fn tell_dead(
        &mut self,
        slot: &SlotRef,
        is_fenced: bool,
        at_ns: u64,
        table: &HeartbeatTable,
        tell: &mut dyn FnMut(Event),
    ) {
        let owner = (slot.slot, slot.generation);
        let of_slot = |kind, value, detail| Event {
            value,
            detail,
            ..event(kind, slot, at_ns, table)
        };
        let news = self.news(owner);
        match slot.verdict {
            Verdict::Silent {
                lag_epochs,
                grace_epochs,
            } if once(&mut news.silent) => {
                tell(of_slot(EventKind::Silent, lag_epochs, grace_epochs));
            }
            Verdict::Died if once(&mut news.died) => {
                tell(of_slot(EventKind::Died, slot.deaths.into(), 0));
            }
            _ => {}
        }
        if is_fenced && slot.verdict != Verdict::Released && once(&mut news.fenced) {
            tell(of_slot(EventKind::Fenced, slot.term().into(), 0));
        }
        let new = slot.units.bits() & !news.handed_back.bits();
        if new != 0 {
            news.handed_back = UnitSet::from_bits(news.handed_back.bits() | new);
            let units = UnitSet::from_bits(new);
            tell(event(EventKind::HandedBack, slot, at_ns, table).with_units(units));
        }
    }

    fn tell_suspect(
        &mut self,
        slot: &SlotRef,
        at_ns: u64,
        table: &HeartbeatTable,
        tell: &mut dyn FnMut(Event),
    ) {
        let news = self.news((slot.slot, slot.generation));
        let (kind, value, detail) = match slot.verdict {
            // Only reported, by the watchdog's settings: late beyond its grace, and not fenced.
            Verdict::Silent {
                lag_epochs,
                grace_epochs,
            } if once(&mut news.silent) => (EventKind::Silent, lag_epochs, grace_epochs),
            Verdict::Quarantined | Verdict::InTransition { .. } if once(&mut news.quarantined) => {
                (EventKind::Quarantined, 0, 0)
            }
            _ => return,
        };
        tell(Event {
            value,
            detail,
            ..event(kind, slot, at_ns, table)
        });
    }

    /// What was told of an owner, which is in the report at hand.
    fn news(&mut self, owner: Owner) -> &mut News {
        let news = self.owners.entry(owner).or_default();
        news.reported = self.reports;
        news
    }

    /// Forgets owners that are neither reported nor in their slot any more, nor the last that died there.
    fn forget(&mut self, table: &HeartbeatTable) {
        let reports = self.reports;
        self.owners.retain(|(slot, generation), news| {
            let cells = table.cells(*slot as usize);
            // A standby's report is empty, and a death that waits to be acknowledged comes again behind it.
            let is_there = cells.is_some_and(|cells| {
                cells.slot.peek_claim().generation() == *generation
                    || cells.verdict.deaths().generation() == *generation
            });
            news.reported == reports || is_there
        });
    }
}

/// An event about a slot of a report.
pub fn event(kind: EventKind, slot: &SlotRef, at_ns: u64, table: &HeartbeatTable) -> Event {
    Event {
        slot: slot.slot,
        generation: slot.generation,
        pid: slot.pid,
        label: label(table, (slot.slot, slot.generation)),
        table_id: table.creation_id(),
        ..Event::new(kind, at_ns)
    }
}

fn of_lease(kind: EventKind, lease: Lease, at_ns: u64, table: &HeartbeatTable) -> Event {
    let of_nobody = Event {
        value: lease.term().into(),
        pid: std::process::id(),
        table_id: table.creation_id(),
        ..Event::new(kind, at_ns)
    };
    match lease.holder() {
        Holder::Slot { slot, generation } => Event {
            slot,
            generation,
            label: label(table, (slot, generation)),
            ..of_nobody
        },
        Holder::Unregistered | Holder::Nobody => of_nobody,
    }
}

/// The creation id of what the path names now; 0 if that is nothing, or cannot be looked at.
fn successor(state: PathState, table: &HeartbeatTable) -> u64 {
    match state {
        PathState::Superseded => Region::inspect(table.path()).map_or(0, |found| found.creation_id),
        PathState::Current | PathState::Orphaned => 0,
    }
}

/// Sets the flag; whether it was not set.
fn once(told: &mut bool) -> bool {
    !std::mem::replace(told, true)
}

/// The owner's label, if it has the slot still.
pub fn label(table: &HeartbeatTable, (slot, generation): Owner) -> Label {
    let identity = table.identity(slot);
    identity
        .filter(|identity| identity.generation == generation)
        .map_or_else(Label::default, |found| found.registration.profile.label)
}

#[cfg(test)]
mod tests {
    use bumpless_failover::FailoverWatchdog;

    use super::*;

    #[test]
    fn a_scan_for_deaths_alone_between_two_ticks_does_not_make_a_late_owner_news_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let table = HeartbeatTable::create(folder.path().join("table"), 4).expect("a table");
        let late = table.register(std::process::id()).expect("a slot");
        let watchdog = FailoverWatchdog::with_grace(&table, 9);
        let (mut told, mut names) = (Told::default(), Vec::new());
        let mut take_in = |report: &ReclaimReport| {
            let mut tell = |event: Event| names.push(event.kind.name());
            told.tell(report, &table, watchdog.lease(), 9, &mut tell);
        };
        for _ in 0..8 {
            let report = watchdog.scan();
            take_in(&report);
            take_in(&ReclaimReport {
                largest_lag_epochs: 0,
                ..report
            });
        }
        table.beat(late).expect("within its grace");
        for _ in 0..8 {
            take_in(&watchdog.scan());
        }
        assert_eq!(names, ["lease_taken", "missed", "missed"]);
    }
}
