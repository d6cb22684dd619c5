//! One answer: a look at everything, and the counts of what black boxes recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bumpless_sidecar::black_box::Recorded;
use bumpless_sidecar::{Event, EventKind, SidecarError, metric_names as names};
use bumpless_substrate::region::default_folder;

use super::text::Families;
use crate::look::{
    Follower, Kind, Kinds, LookError, TableView, TagView, VerdictWord, kinds_in, path_text,
};
use crate::out::message_in_passing;

/// What is exported.
#[derive(Debug)]
pub struct Exporter {
    named: Vec<PathBuf>,
    boxes: BTreeMap<PathBuf, Counted>,
    /// What could not be read at the last scrape, as it was told.
    told: BTreeSet<String>,
}

/// A black box, and what it has told so far.
#[derive(Debug)]
struct Counted {
    follower: Follower,
    events: BTreeMap<&'static str, u64>,
    handed_back_units: u64,
    acknowledged_units: u64,
}

impl Exporter {
    /// Of these paths, or of those in the default folder.
    pub fn new(named: Vec<PathBuf>) -> Self {
        Self {
            named,
            boxes: BTreeMap::new(),
            told: BTreeSet::new(),
        }
    }

    /// How everything is now.
    pub fn scrape(&mut self) -> String {
        let mut families = Families::default();
        let (regions, mut failed) = self.regions();
        self.boxes.retain(|path, _| regions.contains_key(path));
        for (path, kind) in &regions {
            let added = match kind {
                Kind::Table => TableView::at(path).map(|view| add_table(&mut families, &view)),
                Kind::Tag => TagView::at(path).map(|view| add_tag(&mut families, &view)),
                Kind::Events => {
                    self.add_box(&mut families, path);
                    Ok(())
                }
                _ => Ok(()),
            };
            failed.extend(added.err());
        }
        self.tell(&failed);
        families.text()
    }

    /// What cannot be read has no samples: why is told, once.
    fn tell(&mut self, failed: &[LookError]) {
        let failed: BTreeSet<String> = failed.iter().map(ToString::to_string).collect();
        for error in failed.difference(&self.told) {
            message_in_passing(&format!("bumpless export: {error}"));
        }
        self.told = failed;
    }

    /// Each once, however often it was named: two samples of one name are an error of the format.
    fn regions(&self) -> (Kinds, Vec<LookError>) {
        if self.named.is_empty() {
            let folder = default_folder().map_err(LookError::from);
            let found = folder.and_then(|folder| kinds_in(&folder));
            return found.unwrap_or_else(|error| (Kinds::new(), vec![error]));
        }
        let (mut regions, mut failed) = (Kinds::new(), Vec::new());
        for path in &self.named {
            let absolute = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            match Kind::at(&absolute) {
                Ok(kind) => drop(regions.insert(absolute, kind)),
                Err(error) => failed.push(error),
            }
        }
        (regions, failed)
    }

    fn add_box(&mut self, families: &mut Families, path: &Path) {
        if !self.boxes.contains_key(path) {
            let Ok(follower) = Follower::open(path) else {
                return;
            };
            self.boxes.insert(path.to_owned(), Counted::new(follower));
        }
        let Some(counted) = self.boxes.get_mut(path) else {
            return;
        };
        if counted.count().is_ok() {
            counted.add(families, path);
        } else {
            self.boxes.remove(path);
        }
    }
}

impl Counted {
    fn new(follower: Follower) -> Self {
        let all = EventKind::ALL.iter().map(|kind| (kind.name(), 0));
        Self {
            follower,
            events: all.collect(),
            handed_back_units: 0,
            acknowledged_units: 0,
        }
    }

    fn count(&mut self) -> Result<(), SidecarError> {
        let Self {
            follower,
            events,
            handed_back_units,
            acknowledged_units,
        } = self;
        let mut take = |recorded: &Recorded| {
            let Event { kind, .. } = recorded.event;
            let units = u64::from(recorded.event.units().len());
            *events.entry(kind.name()).or_default() += 1;
            match kind {
                EventKind::HandedBack => *handed_back_units += units,
                EventKind::Acknowledged => *acknowledged_units += units,
                _ => {}
            }
        };
        // What is in the one that has taken its place counts as well.
        if follower.read(&mut take)? {
            follower.read(&mut take)?;
        }
        Ok(())
    }

    fn add(&self, families: &mut Families, path: &Path) {
        let path = path_text(path);
        let place = ("events", path.as_str());
        for (event, count) in &self.events {
            families.add(names::EVENTS, &[place, ("event", event)], *count);
        }
        let of = |kind: EventKind| self.events.get(kind.name()).copied().unwrap_or(0);
        families.add(names::FENCED, &[place], of(EventKind::Fenced));
        families.add(names::HANDED_BACK_UNITS, &[place], self.handed_back_units);
        families.add(names::ACKNOWLEDGED_UNITS, &[place], self.acknowledged_units);
        families.add(
            names::STALE_OUTPUTS_REFUSED,
            &[place],
            of(EventKind::StaleOutputRefused),
        );
        // Who died is counted in the table, also while nobody records it.
        let labels = [place, ("verdict", "silent")];
        families.add(names::DEATHS, &labels, of(EventKind::Silent));
    }
}

fn add_table(families: &mut Families, view: &TableView) {
    let path = path_text(&view.path);
    let place = ("table", path.as_str());
    let totals = &view.totals;
    let in_state =
        |is: fn(VerdictWord) -> bool| view.slots.iter().filter(|slot| is(slot.verdict)).count();
    let live = in_state(|verdict| verdict == VerdictWord::Alive);
    let fenced = in_state(|verdict| verdict == VerdictWord::Fenced);
    let silent = in_state(|verdict| verdict == VerdictWord::Silent);
    let released = in_state(|verdict| verdict == VerdictWord::Released);
    let in_transition = in_state(|verdict| verdict == VerdictWord::InTransition);
    // A dead owner's slot for which all is done is vacant: the next one can take it.
    let dead = totals.dead;
    let taken = live + fenced + silent + dead + released + in_transition + totals.quarantined;
    let states = [
        ("live", live),
        ("fenced", fenced),
        ("silent", silent),
        ("dead", dead),
        ("released", released),
        ("in_transition", in_transition),
        ("quarantined", totals.quarantined),
        ("vacant", view.capacity.saturating_sub(taken)),
    ];
    for (state, count) in states {
        families.add(names::SLOTS, &[place, ("state", state)], count as u64);
    }
    let units = totals.units_in_flight + totals.units_to_hand_back;
    families.add(names::UNITS_IN_FLIGHT, &[place], units);
    families.add(names::BEAT_LAG_EPOCHS, &[place], totals.largest_lag_epochs);
    families.add(names::GLOBAL_EPOCH, &[place], view.epoch);
    families.add(names::REGISTRATIONS, &[place], totals.registrations);
    families.add(names::DEATHS, &[place, ("verdict", "died")], totals.deaths);
    let is_watched = view
        .primary
        .as_ref()
        .is_some_and(|primary| primary.is_alive);
    families.add(names::WATCHDOG_PRIMARY, &[place], is_watched);
    for election in &view.elections {
        let labels = [place, ("election", election.name.as_str())];
        families.add(names::ELECTION_TERM, &labels, election.term);
    }
}

fn add_tag(families: &mut Families, view: &TagView) {
    let (path, node) = (path_text(&view.path), view.node.to_string());
    let labels = [("tag", path.as_str()), ("node", node.as_str())];
    let lives = view.is_alive != Some(false);
    let is_primary = lives && matches!(view.state, "primary" | "solo");
    families.add(names::STANDBY_ROLE, &labels, is_primary);
    // A node that has ended is half of a pair that survives nothing more.
    let is_lost = !lives || view.redundancy != "full";
    families.add(names::REDUNDANCY_LOST, &labels, is_lost);
    let degraded = view.paths.iter().filter(|path| path.is_degraded).count();
    families.add(names::PATHS_DEGRADED, &labels, degraded as u64);
}

#[cfg(test)]
mod tests {
    use bumpless_failover::FailoverWatchdog;
    use bumpless_heartbeat::HeartbeatTable;
    use bumpless_sidecar::BlackBox;
    use bumpless_substrate::region::Access;
    use prometheus_parse::{Scrape, Value};

    use super::*;

    fn samples(exporter: &mut Exporter) -> BTreeMap<String, u64> {
        let text = exporter.scrape();
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        let read = Scrape::parse(lines.collect::<Vec<_>>().into_iter()).unwrap();
        let mut samples = BTreeMap::new();
        for sample in read.samples {
            let (Value::Counter(value) | Value::Gauge(value)) = sample.value else {
                panic!("{sample:?}");
            };
            // The path is of no interest here.
            let label = |name| sample.labels.get(name).unwrap_or_default();
            let name = format!("{} {}{}", sample.metric, label("state"), label("event"));
            let earlier = samples.insert(format!("{name}{}", label("verdict")), value as u64);
            assert_eq!(earlier, None, "twice: {name}");
        }
        samples
    }

    #[test]
    fn what_is_named_twice_is_exported_once_and_what_is_missing_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let _table = HeartbeatTable::create(at("t"), 4).unwrap();
        drop(BlackBox::create(at("t.events"), 16, Access::Private).unwrap());
        let named = ["t", "t.events", "t", "missing", "t.events"];
        let mut exporter = Exporter::new(named.map(at).to_vec());
        let found = samples(&mut exporter);
        assert_eq!(found["bumpless_slots vacant"], 4);
        assert_eq!(exporter.told.len(), 1, "{:?}", exporter.told);
    }

    #[test]
    fn a_slot_that_was_given_back_with_units_is_not_vacant() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let table = HeartbeatTable::create(&path, 4).unwrap();
        let me = table.register(std::process::id()).unwrap();
        table.mark_in_flight(me, 1_u8).unwrap();
        table.unregister(me).unwrap();
        let mut exporter = Exporter::new(vec![path]);
        let found = samples(&mut exporter);
        let of = |state: &str| found[&format!("bumpless_slots {state}")];
        assert_eq!((of("released"), of("vacant"), of("live")), (1, 3, 0));
        let watchdog = FailoverWatchdog::with_grace(&table, 2);
        let (slot, _) = watchdog.scan().dead_slots[0];
        watchdog.clear_dead_bitmap(slot).unwrap();
        let found = samples(&mut exporter);
        // The watchdog has a slot itself.
        let of = |state: &str| found[&format!("bumpless_slots {state}")];
        assert_eq!((of("released"), of("vacant"), of("live")), (0, 3, 1));
    }

    #[test]
    fn a_black_box_that_takes_another_ones_place_goes_on_with_the_counts_and_a_deleted_one_is_closed()
     {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.events");
        let create = || BlackBox::create(&path, 16, Access::Private).unwrap();
        create().record(Event::new(EventKind::Died, 1));
        let mut exporter = Exporter::new(vec![path.clone()]);
        assert_eq!(samples(&mut exporter)["bumpless_events_total died"], 1);
        std::fs::remove_file(&path).unwrap();
        create().record(Event::new(EventKind::Died, 1));
        assert_eq!(samples(&mut exporter)["bumpless_events_total died"], 2);
        std::fs::remove_file(&path).unwrap();
        assert!(samples(&mut exporter).is_empty());
        assert!(exporter.boxes.is_empty());
    }
}
