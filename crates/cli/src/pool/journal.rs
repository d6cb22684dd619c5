//! What a pool tells its black box, and counts of it.
//!
//! Contract: each registration, verdict, hand-back and acknowledgement is told once, however often it is
//! reported. The parent alone writes; what it has told survives it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bumpless_failover::{ReclaimReport, SlotRef, Verdict};
use bumpless_heartbeat::{HeartbeatTable, Label, UnitSet};
use bumpless_sidecar::black_box::SUFFIX;
use bumpless_sidecar::{BlackBox, Event, EventKind, SidecarError};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::region::Access;

use super::lane::Owner;

/// Events that a pool's black box keeps: half a mebibyte.
const CAPACITY: u32 = 4_096;

/// What has been told of one owner.
#[derive(Debug, Default)]
struct Told {
    is_silent: bool,
    is_dead: bool,
    is_fenced: bool,
    units: UnitSet,
}

/// A pool's black box, and what it was told.
#[derive(Debug)]
pub struct Journal {
    black_box: BlackBox,
    path: PathBuf,
    table_id: u64,
    /// Of the lease, once taken.
    term: Option<u32>,
    /// By slot; of its present owner.
    told: BTreeMap<u32, (u32, Told)>,
    /// Workers that took a slot.
    pub registered: u64,
    /// Owners that died.
    pub deaths: u64,
    /// Units that were handed back.
    pub handed_back: u64,
}

impl Journal {
    /// A black box at a path, or beside the table.
    ///
    /// # Errors
    /// [`SidecarError`].
    pub fn create(table: &HeartbeatTable, path: Option<&Path>) -> Result<Self, SidecarError> {
        let path = path.map_or_else(|| beside(table.path()), Path::to_owned);
        Ok(Self {
            black_box: BlackBox::create(&path, CAPACITY, Access::Private)?,
            path,
            table_id: table.creation_id(),
            term: None,
            told: BTreeMap::new(),
            registered: 0,
            deaths: 0,
            handed_back: 0,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// This pool watches under the lease of this term.
    pub fn watches(&mut self, term: u32) {
        if self.term.replace(term) != Some(term) {
            self.black_box.record(Event {
                value: term.into(),
                pid: std::process::id(),
                table_id: self.table_id,
                ..Event::new(EventKind::LeaseTaken, monotonic_ns())
            });
        }
    }

    /// A worker took a slot.
    pub fn registered(&mut self, table: &HeartbeatTable, owner: Owner, pid: u32) {
        self.registered += 1;
        let identity = table.identity(owner.slot);
        let identity = identity.filter(|found| found.generation == owner.generation);
        let label = identity.map_or(Label::default(), |found| found.registration.profile.label);
        self.black_box.record(Event {
            label,
            ..self.event(EventKind::Registered, owner, pid)
        });
    }

    /// A worker ended and left nothing to report.
    pub fn unregistered(&mut self, owner: Owner, pid: u32) {
        self.black_box
            .record(self.event(EventKind::Unregistered, owner, pid));
    }

    /// What a scan reported.
    pub fn reported(&mut self, report: &ReclaimReport) {
        for (slot, _) in &report.dead_slots {
            self.reported_slot(slot);
        }
    }

    fn reported_slot(&mut self, slot: &SlotRef) {
        let owner = Owner {
            slot: slot.slot,
            generation: slot.generation,
        };
        let event = self.event(EventKind::Fenced, owner, slot.pid);
        let entry = self.told.get(&slot.slot);
        let told = entry.filter(|(generation, _)| *generation == slot.generation);
        let told = told.map(|(_, told)| told);
        let mut events = Vec::new();
        let mut now = Told {
            is_silent: told.is_some_and(|told| told.is_silent),
            is_dead: told.is_some_and(|told| told.is_dead),
            is_fenced: true,
            units: told.map_or(UnitSet::EMPTY, |told| told.units),
        };
        match slot.verdict {
            Verdict::Silent {
                lag_epochs,
                grace_epochs,
            } if !now.is_silent => {
                now.is_silent = true;
                events.push(Event {
                    kind: EventKind::Silent,
                    value: lag_epochs,
                    detail: grace_epochs,
                    ..event
                });
            }
            Verdict::Died if !now.is_dead => {
                now.is_dead = true;
                self.deaths += 1;
                events.push(Event {
                    kind: EventKind::Died,
                    value: slot.deaths.into(),
                    ..event
                });
            }
            _ => {}
        }
        if !told.is_some_and(|told| told.is_fenced) {
            events.push(Event {
                value: slot.term().into(),
                ..event
            });
        }
        let news = UnitSet::from_bits(slot.units.bits() & !now.units.bits());
        if !news.is_empty() {
            now.units = UnitSet::from_bits(now.units.bits() | news.bits());
            self.handed_back += u64::from(news.len());
            let kind = EventKind::HandedBack;
            events.push(Event { kind, ..event }.with_units(news));
        }
        self.told.insert(slot.slot, (slot.generation, now));
        events
            .into_iter()
            .for_each(|event| self.black_box.record(event));
    }

    /// A report was acknowledged, by this pool.
    pub fn acknowledged(&self, slot: &SlotRef, units: UnitSet) {
        let owner = Owner {
            slot: slot.slot,
            generation: slot.generation,
        };
        let event = self.event(EventKind::Acknowledged, owner, slot.pid);
        self.black_box.record(event.with_units(units));
    }

    fn event(&self, kind: EventKind, owner: Owner, pid: u32) -> Event {
        Event {
            slot: owner.slot,
            generation: owner.generation,
            pid,
            table_id: self.table_id,
            ..Event::new(kind, monotonic_ns())
        }
    }
}

/// Where the black box of a table lies, unless it is told otherwise.
pub fn beside(table: &Path) -> PathBuf {
    let mut path = table.as_os_str().to_owned();
    path.push(SUFFIX);
    path.into()
}
