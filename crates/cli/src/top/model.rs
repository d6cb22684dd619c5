//! What is shown, and what keys change of that.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use bumpless_sidecar::BlackBoxReader;
use bumpless_sidecar::ring::PATIENCE_NS;
use bumpless_sidecar::ring::cursor::Cursor;
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::region::{PathState, default_folder};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::events::black_box_of;
use crate::look::{Kind, LookError, SlotView, TableView, look_in};

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

/// Everything on the screen.
#[derive(Debug)]
pub struct Model {
    named: Vec<PathBuf>,
    /// The tables to choose from.
    pub tables: Vec<PathBuf>,
    /// Which of them is shown.
    pub chosen: usize,
    /// It, or why it is not shown.
    pub view: Result<TableView, String>,
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
    follower: Option<(BlackBoxReader, Cursor)>,
}

impl Model {
    /// Of these tables, or of those in the default folder.
    pub fn new(named: Vec<PathBuf>) -> Self {
        Self {
            named,
            tables: Vec::new(),
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
        self.tables = if self.named.is_empty() {
            tables_of_user()
        } else {
            self.named.clone()
        };
        self.chosen = self.chosen.min(self.tables.len().saturating_sub(1));
        // By path, each time: a table that took another's place is shown as soon as it is there.
        self.view = match self.tables.get(self.chosen) {
            Some(path) => TableView::at(path).map_err(|error| error.to_string()),
            None => Err("no table in the folder of this user".to_owned()),
        };
        self.remember_lags();
        self.follow();
    }

    fn remember_lags(&mut self) {
        let Ok(view) = &self.view else { return };
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
        let Some(path) = self.tables.get(self.chosen).cloned() else {
            return self.forget_events();
        };
        let is_current = |(reader, _): &(BlackBoxReader, Cursor)| {
            reader.region().path_state() == Ok(PathState::Current)
        };
        if !self.follower.as_ref().is_some_and(is_current) {
            self.forget_events();
            self.follower = follower(&path);
        }
        let Some((reader, cursor)) = &mut self.follower else {
            return;
        };
        let events = self.events.get_or_insert_default();
        while let Some(recorded) = reader.next(cursor, monotonic_ns(), PATIENCE_NS) {
            events.push_back(recorded.event.to_string());
            if events.len() > EVENTS {
                events.pop_front();
            }
        }
    }

    fn forget_events(&mut self) {
        self.follower = None;
        self.events = None;
    }

    /// The slots to show, sorted.
    pub fn rows(&self) -> Vec<SlotView> {
        let Ok(view) = &self.view else {
            return Vec::new();
        };
        let mut rows: Vec<SlotView> = view
            .slots
            .iter()
            .filter(|slot| self.shows_all || slot.is_of_interest())
            .cloned()
            .collect();
        // Stable: equal ones stay in the order of their slots. What wants attention comes first.
        match self.sorted_by {
            Column::Slot => {}
            Column::Pid => rows.sort_by_key(|slot| slot.pid),
            Column::Verdict => rows.sort_by_key(|slot| slot.verdict),
            Column::Lag => rows.sort_by_key(|slot| u64::MAX - slot.lag_epochs),
            Column::Units => rows.sort_by_key(|slot| u32::MAX - slot.units_in_flight),
            Column::Deaths => rows.sort_by_key(|slot| u32::MAX - slot.deaths),
            Column::Label => rows.sort_by(|one, other| one.label.cmp(&other.label)),
        }
        if self.is_reversed {
            rows.reverse();
        }
        rows
    }

    /// Does what a key says; whether that is to end.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return false;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Char('s') => self.sorted_by = self.sorted_by.next(),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('a') => self.shows_all = !self.shows_all,
            KeyCode::Char('j') | KeyCode::Down => self.first_row += 1,
            KeyCode::Char('k') | KeyCode::Up => self.first_row = self.first_row.saturating_sub(1),
            KeyCode::PageDown => self.first_row += 10,
            KeyCode::PageUp => self.first_row = self.first_row.saturating_sub(10),
            KeyCode::Tab => {
                self.chosen = (self.chosen + 1) % self.tables.len().max(1);
                self.first_row = 0;
                self.lags.clear();
                self.forget_events();
                self.look();
            }
            _ => {}
        }
        false
    }
}

fn tables_of_user() -> Vec<PathBuf> {
    let folder = default_folder().map_err(LookError::from);
    let found = folder.and_then(|folder| look_in(&folder));
    let (found, _) = found.unwrap_or_default();
    let tables = found
        .into_iter()
        .filter(|region| region.kind == Kind::Table);
    tables.map(|table| table.path).collect()
}

fn follower(table: &Path) -> Option<(BlackBoxReader, Cursor)> {
    let reader = BlackBoxReader::open_read_only(black_box_of(table)).ok()?;
    let cursor = reader.from_the_start();
    Some((reader, cursor))
}
