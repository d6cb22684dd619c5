//! A table at one moment: header, slots, and what lies beside it.

use std::path::{Path, PathBuf};

use bumpless_failover::lease::Holder;
use bumpless_failover::look::{Watch, look};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::Region;
use serde::Serialize;

use super::beside::{BarrierView, ElectionView, barriers, elections};
use super::error::LookError;
use super::slot::{SlotView, VerdictWord};

/// A table.
#[derive(Debug, Clone, Serialize)]
pub struct TableView {
    /// Where.
    #[serde(serialize_with = "super::path_text::serialize")]
    pub path: PathBuf,
    /// Names it among all that ever had its path; part of every unit's name.
    pub creation_id: String,
    /// The system start in which its pids and locks mean something.
    pub boot_id: String,
    /// How many slots it has.
    pub capacity: usize,
    /// How often a primary watchdog has scanned.
    pub epoch: u64,
    /// Whether another file has taken its place.
    pub is_superseded: bool,
    /// How often the primary watchdog plans to tick; `None`: none has said so yet.
    pub period_ns: Option<u64>,
    /// The grace of slots that have none of their own.
    pub grace_epochs: u64,
    /// Who ticks, judges and reports.
    pub primary: Option<WatchdogView>,
    /// The other watchdogs.
    pub standbys: Vec<WatchdogView>,
    /// Sums over all slots.
    pub totals: Totals,
    /// The slots in use, and those that were and have something left to tell.
    pub slots: Vec<SlotView>,
    /// Its elections.
    pub elections: Vec<ElectionView>,
    /// Its barriers.
    pub barriers: Vec<BarrierView>,
}

/// A watchdog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WatchdogView {
    /// Its slot; `None`: it found none.
    pub slot: Option<u32>,
    /// Its process id in its own pid namespace; `None`: it is not known.
    pub pid: Option<u32>,
    /// The lease's term; of a standby: `None`.
    pub term: Option<u32>,
    /// Whether it is registered, and nothing says that it is gone or late.
    pub is_alive: bool,
}

/// Sums over all slots of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Registrations in force of owners that nothing says are gone.
    pub live: usize,
    /// How many processes these are.
    pub live_processes: usize,
    /// Owners that are gone and whose report nobody acknowledged.
    pub dead: usize,
    /// Owners that missed more beats than their grace.
    pub silent: usize,
    /// Owners that lost their slot.
    pub fenced: usize,
    /// Slots in a state that this version does not know.
    pub quarantined: usize,
    /// Units of owners that have not lost them.
    pub units_in_flight: u32,
    /// Units of owners that have: handed back, and nobody acknowledged it.
    pub units_to_hand_back: u32,
    /// Deaths so far.
    pub deaths: u64,
    /// Deaths that nobody acknowledged.
    pub deaths_unacknowledged: u64,
    /// How often a slot was ever taken.
    pub registrations: u64,
    /// The longest lag of a registered owner; unit: epochs.
    pub largest_lag_epochs: u64,
}

impl TableView {
    /// The table at a path, now.
    ///
    /// # Errors
    /// [`LookError::Table`], [`LookError::Region`].
    pub fn at(path: &Path) -> Result<Self, LookError> {
        let table = HeartbeatTable::open_read_only(path)?;
        let boot_id = Region::inspect(path)?.boot_id;
        let watch = Watch::of(&table);
        let mut totals = Totals::default();
        let mut pids = Vec::new();
        let mut slots = Vec::new();
        for slot in 0..table.capacity() as u32 {
            let Some(seen) = look(&table, slot, watch.grace_epochs) else {
                continue;
            };
            totals.registrations += u64::from(seen.claim.generation());
            if seen.claim.generation() == 0 && seen.verdict.is_none() {
                continue;
            }
            let view = SlotView::new(&table, slot, &seen, watch.period_ns);
            totals.add(&view);
            if view.owns() {
                pids.push(view.pid);
            }
            if view.verdict != VerdictWord::Free || view.deaths > 0 {
                slots.push(view);
            }
        }
        pids.sort_unstable();
        pids.dedup();
        totals.live_processes = pids.len();
        let primary = primary(&watch, &slots);
        let standbys = slots
            .iter()
            .filter(|slot| slot.role == "watchdog" && slot.owns())
            .filter(|slot| primary.as_ref().and_then(|primary| primary.slot) != Some(slot.slot))
            .map(|slot| watchdog(slot, None))
            .collect();
        let [high, low] = boot_id;
        Ok(Self {
            path: table.path().to_owned(),
            creation_id: format!("{:016x}", table.creation_id()),
            boot_id: format!("{high:016x}{low:016x}"),
            capacity: table.capacity(),
            epoch: table.global_epoch(),
            is_superseded: table.epoch().is_superseded(),
            period_ns: watch.period_ns,
            grace_epochs: watch.grace_epochs,
            primary,
            standbys,
            totals,
            slots,
            elections: elections(&table),
            barriers: barriers(&table),
        })
    }
}

impl Totals {
    fn add(&mut self, slot: &SlotView) {
        let is_live = slot.owns();
        self.live += usize::from(is_live);
        self.dead += usize::from(slot.verdict == VerdictWord::Died && slot.is_of_interest());
        self.silent += usize::from(slot.verdict == VerdictWord::Silent);
        self.fenced += usize::from(is_live && slot.is_fenced);
        self.quarantined += usize::from(slot.verdict == VerdictWord::Quarantined);
        if slot.is_fenced {
            self.units_to_hand_back += slot.units_in_flight;
        } else {
            self.units_in_flight += slot.units_in_flight;
        }
        self.deaths += u64::from(slot.deaths);
        self.deaths_unacknowledged += u64::from(slot.deaths_unacknowledged);
        if is_live {
            self.largest_lag_epochs = self.largest_lag_epochs.max(slot.lag_epochs);
        }
    }
}

fn primary(watch: &Watch, slots: &[SlotView]) -> Option<WatchdogView> {
    match watch.holder {
        Holder::Nobody => None,
        Holder::Unregistered => Some(WatchdogView {
            slot: None,
            pid: None,
            term: Some(watch.term),
            is_alive: true,
        }),
        Holder::Slot { slot, generation } => {
            let found = slots
                .iter()
                .find(|view| view.slot == slot && view.generation == generation);
            Some(found.map_or(
                WatchdogView {
                    slot: Some(slot),
                    pid: None,
                    term: Some(watch.term),
                    is_alive: false,
                },
                |view| watchdog(view, Some(watch.term)),
            ))
        }
    }
}

fn watchdog(slot: &SlotView, term: Option<u32>) -> WatchdogView {
    WatchdogView {
        slot: Some(slot.slot),
        pid: Some(slot.pid),
        term,
        is_alive: slot.owns() && slot.verdict == VerdictWord::Alive,
    }
}

#[cfg(test)]
mod tests {
    use bumpless_barrier::EpochBarrier;
    use bumpless_election::SharedLeaderElection;
    use bumpless_failover::FailoverWatchdog;
    use bumpless_heartbeat::{Label, Profile};

    use super::*;

    #[test]
    fn a_view_shows_header_slots_watchdog_election_and_barrier() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let table = HeartbeatTable::create(&path, 8).unwrap();
        let profile = Profile {
            label: Label::new("press").unwrap(),
            ..Profile::default()
        };
        let me = table.register_as(std::process::id(), profile).unwrap();
        table.mark_in_flight(me, 3_u8).unwrap();
        let election = SharedLeaderElection::open(&table, "lead").unwrap();
        election.try_claim_leadership(me).unwrap();
        let barrier = EpochBarrier::create(&table, "phase").unwrap();
        let _member = barrier.join(me).unwrap();
        let watchdog = FailoverWatchdog::with_grace(&table, 2);
        // The fourth; a later one, when the machine stops that in the middle.
        let mut scans = (0..50).map(|_| watchdog.scan());
        let report = scans.find(|report| !report.is_empty()).unwrap();
        let epoch = report.new_global_epoch;
        let view = TableView::at(&path).unwrap();
        assert_eq!(
            (view.capacity, view.epoch, view.grace_epochs),
            (8, epoch, 2)
        );
        assert!(view.period_ns.is_some());
        let slot = &view.slots[0];
        assert_eq!(
            (slot.verdict, slot.lag_epochs),
            (VerdictWord::Silent, epoch)
        );
        assert_eq!(
            (slot.label.as_str(), slot.units.as_slice()),
            ("press", &[3_u32][..])
        );
        let primary = view.primary.as_ref().unwrap();
        assert_eq!((primary.slot, primary.is_alive), (Some(1), true));
        assert_eq!(view.totals.live_processes, 1);
        assert_eq!((view.totals.live, view.totals.silent), (2, 1));
        assert_eq!(
            (view.totals.units_in_flight, view.totals.units_to_hand_back),
            (0, 1)
        );
        // A fenced leader leads nobody.
        assert_eq!(view.elections[0].leader, None);
        assert_eq!(
            (view.elections[0].name.as_str(), view.elections[0].term),
            ("lead", 1)
        );
        assert_eq!(view.barriers[0].name, "phase");
    }

    #[test]
    fn a_look_changes_no_byte_of_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let table = HeartbeatTable::create(&path, 8).unwrap();
        table.register(std::process::id()).unwrap();
        let before = std::fs::read(&path).unwrap();
        TableView::at(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
