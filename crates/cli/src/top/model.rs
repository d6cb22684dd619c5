//! What is shown, and what keys change of that.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use bumpless_substrate::region::default_folder;

use super::keyboard::Key;
use crate::events::black_box_of;
use crate::look::{Follower, Kind, LookError, SlotView, TableView, TagView, kinds_in};

/// Lags that are kept of a slot.
const LAGS: usize = 64;

/// Events that are kept.
const EVENTS: usize = 200;

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Slot,
    Pid,
    Verdict,
    Lag,
    Units,
    Deaths,
    Label,
}

impl Column {
    const ALL: [Self; 7] = [
        Self::Slot,
        Self::Pid,
        Self::Verdict,
        Self::Lag,
        Self::Units,
        Self::Deaths,
        Self::Label,
    ];

    /// As in the header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Slot => "SLOT",
            Self::Pid => "PID",
            Self::Verdict => "VERDICT",
            Self::Lag => "LAG",
            Self::Units => "UNITS",
            Self::Deaths => "DEATHS",
            Self::Label => "LABEL",
        }
    }

    fn next(self) -> Self {
        let at = Self::ALL.iter().position(|column| *column == self);
        Self::ALL[(at.unwrap_or(0) + 1) % Self::ALL.len()]
    }
}

/// What is looked at.
#[derive(Debug)]
pub enum View {
    Table(Box<TableView>),
    Tag(Box<TagView>),
}

impl View {
    fn at(path: &Path) -> Result<Self, LookError> {
        match Kind::at(path)? {
            Kind::Tag => Ok(Self::Tag(Box::new(TagView::at(path)?))),
            // Whatever is no table says so.
            _ => Ok(Self::Table(Box::new(TableView::at(path)?))),
        }
    }
}

/// Everything on the screen.
#[derive(Debug)]
pub struct Model {
    named: Vec<PathBuf>,
    /// The tables and tags to choose from.
    pub paths: Vec<PathBuf>,
    /// Which of them is shown.
    pub chosen: usize,
    /// It, or why it is not shown.
    pub view: Result<View, String>,
    /// The lags of each owner, by slot and generation, the last one last.
    pub lags: BTreeMap<(u32, u32), VecDeque<u64>>,
    /// What rows are sorted by.
    pub sorted_by: Column,
    /// The other way round.
    pub is_reversed: bool,
    /// Also slots for which all is done.
    pub shows_all: bool,
    /// The first row shown.
    pub first_row: usize,
    /// What happened, the last one last; `None`: there is no black box.
    pub events: Option<VecDeque<String>>,
    follower: Option<Follower>,
}

impl Model {
    /// Of these tables and tags, or of those in the default folder.
    pub fn new(named: Vec<PathBuf>) -> Self {
        Self {
            named,
            paths: Vec::new(),
            chosen: 0,
            view: Err("nothing looked at yet".to_owned()),
            lags: BTreeMap::new(),
            sorted_by: Column::Slot,
            is_reversed: false,
            shows_all: false,
            first_row: 0,
            events: None,
            follower: None,
        }
    }

    /// Looks anew.
    pub fn look(&mut self) {
        self.paths = if self.named.is_empty() {
            paths_of_user()
        } else {
            self.named.clone()
        };
        self.chosen = self.chosen.min(self.paths.len().saturating_sub(1));
        // By path, each time: a table that took another's place is shown as soon as it is there.
        self.view = match self.paths.get(self.chosen) {
            Some(path) => View::at(path).map_err(|error| error.to_string()),
            None => Err("no table and no tag in the folder of this user".to_owned()),
        };
        self.remember_lags();
        self.follow();
    }

    fn table(&self) -> Option<&TableView> {
        match &self.view {
            Ok(View::Table(view)) => Some(view),
            _ => None,
        }
    }

    fn remember_lags(&mut self) {
        let Ok(View::Table(view)) = &self.view else {
            return;
        };
        let owners = view.slots.iter().filter(|slot| slot.state == "live");
        let mut kept = BTreeMap::new();
        for slot in owners {
            let key = (slot.slot, slot.generation);
            let mut lags = self.lags.remove(&key).unwrap_or_default();
            lags.push_back(slot.lag_epochs);
            if lags.len() > LAGS {
                lags.pop_front();
            }
            kept.insert(key, lags);
        }
        self.lags = kept;
    }

    fn follow(&mut self) {
        let Some(path) = self.paths.get(self.chosen).cloned() else {
            return self.forget_events();
        };
        if self.follower.is_none() {
            self.follower = Follower::open(&black_box_of(&path)).ok();
        }
        let Some(follower) = &mut self.follower else {
            return;
        };
        let events = self.events.get_or_insert_default();
        let read = follower.read(|recorded| {
            events.push_back(recorded.event.to_string());
            if events.len() > EVENTS {
                events.pop_front();
            }
        });
        if read.is_err() {
            self.forget_events();
        }
    }

    fn forget_events(&mut self) {
        self.follower = None;
        self.events = None;
    }

    /// The slots to show, sorted.
    pub fn rows(&self) -> Vec<&SlotView> {
        let Some(view) = self.table() else {
            return Vec::new();
        };
        let mut rows: Vec<&SlotView> = view
            .slots
            .iter()
            .filter(|slot| self.shows_all || slot.is_of_interest())
            .collect();
        // Stable: equal ones stay in the order of their slots. What wants attention comes first.
        match self.sorted_by {
            Column::Slot => {}
            Column::Pid => rows.sort_by_key(|slot| slot.pid),
            Column::Verdict => rows.sort_by_key(|slot| slot.verdict),
            Column::Lag => rows.sort_by_key(|slot| u64::MAX - slot.lag_epochs),
            Column::Units => rows.sort_by_key(|slot| u32::MAX - slot.units_in_flight),
            Column::Deaths => rows.sort_by_key(|slot| u32::MAX - slot.deaths),
            Column::Label => rows.sort_by_key(|slot| slot.label.as_str()),
        }
        if self.is_reversed {
            rows.reverse();
        }
        rows
    }

    /// Does what a key says; whether that is to end.
    pub fn key(&mut self, key: Key) -> bool {
        match key {
            Key::Letter('q') | Key::Escape | Key::Interrupt => return true,
            Key::Letter('s') => self.sorted_by = self.sorted_by.next(),
            Key::Letter('r') => self.is_reversed = !self.is_reversed,
            Key::Letter('a') => self.shows_all = !self.shows_all,
            Key::Letter('j') | Key::Down => self.first_row += 1,
            Key::Letter('k') | Key::Up => self.first_row = self.first_row.saturating_sub(1),
            Key::PageDown => self.first_row += 10,
            Key::PageUp => self.first_row = self.first_row.saturating_sub(10),
            Key::Tab => {
                self.chosen = (self.chosen + 1) % self.paths.len().max(1);
                self.first_row = 0;
                self.lags.clear();
                self.forget_events();
                self.look();
            }
            Key::Letter(_) | Key::Pause => {}
        }
        false
    }
}

fn paths_of_user() -> Vec<PathBuf> {
    let folder = default_folder().map_err(LookError::from);
    let found = folder.and_then(|folder| kinds_in(&folder));
    let (found, _) = found.unwrap_or_default();
    let shown = found
        .into_iter()
        .filter(|(_, kind)| matches!(kind, Kind::Table | Kind::Tag));
    shown.map(|(path, _)| path).collect()
}
