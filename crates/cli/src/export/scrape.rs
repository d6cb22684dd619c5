//! One answer: a look at everything, and the counts of what black boxes recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bumpless_sidecar::ring::PATIENCE_NS;
use bumpless_sidecar::ring::cursor::Cursor;
use bumpless_sidecar::{BlackBoxReader, Event, EventKind, metric_names as names};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::region::{PathState, default_folder};

use super::text::Families;
use crate::look::{Found, Kind, LookError, TableView, TagView, VerdictWord, look_in};

/// What is exported.
#[derive(Debug)]
pub struct Exporter {
    named: Vec<PathBuf>,
    boxes: BTreeMap<PathBuf, Counted>,
}

/// A black box, and what it has told so far.
#[derive(Debug)]
struct Counted {
    reader: BlackBoxReader,
    cursor: Cursor,
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
        }
    }

    /// How everything is now.
    pub fn scrape(&mut self) -> String {
        let mut families = Families::default();
        for found in self.regions() {
            let path = &found.path;
            // What has gone since, or cannot be read, is not there.
            match found.kind {
                Kind::Table => {
                    if let Ok(view) = TableView::at(path) {
                        add_table(&mut families, &view);
                    }
                }
                Kind::Tag => {
                    if let Ok(view) = TagView::at(path) {
                        add_tag(&mut families, &view);
                    }
                }
                Kind::Events => self.add_box(&mut families, path),
                _ => {}
            }
        }
        families.text()
    }

    fn regions(&self) -> Vec<Found> {
        if self.named.is_empty() {
            let folder = default_folder().map_err(LookError::from);
            let found = folder.and_then(|folder| look_in(&folder));
            return found.unwrap_or_default().0;
        }
        let found = self.named.iter().map(|path| Found::at(path));
        found.filter_map(Result::ok).collect()
    }

    fn add_box(&mut self, families: &mut Families, path: &Path) {
        let is_current =
            |counted: &Counted| counted.reader.region().path_state() == Ok(PathState::Current);
        if !self.boxes.get(path).is_some_and(is_current) {
            let Ok(reader) = BlackBoxReader::open_read_only(path) else {
                return;
            };
            self.boxes.insert(path.to_owned(), Counted::new(reader));
        }
        if let Some(counted) = self.boxes.get_mut(path) {
            counted.count();
            counted.add(families, path);
        }
    }
}

impl Counted {
    fn new(reader: BlackBoxReader) -> Self {
        let cursor = reader.from_the_start();
        let all = EventKind::ALL.iter().map(|kind| (kind.name(), 0));
        Self {
            reader,
            cursor,
            events: all.collect(),
            handed_back_units: 0,
            acknowledged_units: 0,
        }
    }

    fn count(&mut self) {
        let now_ns = monotonic_ns();
        while let Some(recorded) = self.reader.next(&mut self.cursor, now_ns, PATIENCE_NS) {
            let Event { kind, .. } = recorded.event;
            let units = u64::from(recorded.event.units().len());
            *self.events.entry(kind.name()).or_default() += 1;
            match kind {
                EventKind::HandedBack => self.handed_back_units += units,
                EventKind::Acknowledged => self.acknowledged_units += units,
                _ => {}
            }
        }
    }

    fn add(&self, families: &mut Families, path: &Path) {
        let path = path.to_string_lossy();
        let place = ("events", path.as_ref());
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
    let path = view.path.to_string_lossy();
    let place = ("table", path.as_ref());
    let totals = &view.totals;
    let in_state =
        |is: fn(VerdictWord) -> bool| view.slots.iter().filter(|slot| is(slot.verdict)).count();
    let live = in_state(|verdict| verdict == VerdictWord::Alive);
    let fenced = in_state(|verdict| verdict == VerdictWord::Fenced);
    let silent = in_state(|verdict| verdict == VerdictWord::Silent);
    let in_transition = in_state(|verdict| verdict == VerdictWord::InTransition);
    // A dead owner's slot for which all is done can be taken by the next one.
    let taken = live + fenced + silent + totals.dead + in_transition + totals.quarantined;
    let states = [
        ("live", live),
        ("fenced", fenced),
        ("silent", silent),
        ("dead", totals.dead),
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
    let (path, node) = (view.path.to_string_lossy(), view.node.to_string());
    let labels = [("tag", path.as_ref()), ("node", node.as_str())];
    let lives = view.is_alive != Some(false);
    let is_primary = lives && matches!(view.state, "primary" | "solo");
    families.add(names::STANDBY_ROLE, &labels, is_primary);
    // A node that has ended is half of a pair that survives nothing more.
    let is_lost = !lives || view.redundancy != "full";
    families.add(names::REDUNDANCY_LOST, &labels, is_lost);
    let degraded = view.paths.iter().filter(|path| path.is_degraded).count();
    families.add(names::PATHS_DEGRADED, &labels, degraded as u64);
}
