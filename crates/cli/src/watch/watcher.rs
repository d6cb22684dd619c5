//! The watch itself: the loop of the watchdog, and beside it the threads that act on its verdicts.
//!
//! Contract: the thread of the scan looks a verdict up, says it, and starts a thread; it waits for no
//! command and no reader. The first thread looks at signals, the path and the lease.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use bumpless_failover::lease::{Holder, Lease};
use bumpless_failover::{
    AcknowledgeError, Acknowledged, FailoverWatchdog, ReclaimReport, SlotRef, Stop, Verdict,
};
use bumpless_heartbeat::{HeartbeatError, HeartbeatTable, UnitSet};
use bumpless_sidecar::BlackBox;
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::region::{Access, PathState, RegionError};

use super::args::WatchArguments;
use super::desk::Desk;
use super::error::WatchError;
use super::events::{record_acknowledged, record_standing, record_verdict};
use super::exec::{self, Failure};
use super::lines::{Line, VerdictLine, shown};
use super::printer::{Printer, print};
use crate::patient::Patient;
use crate::run::default_table;
use crate::signals::Signals;

/// Between two looks of the first thread.
const LOOKS: Duration = Duration::from_millis(20);

/// A table whose file was replaced is drained when nobody has units in flight there, and so many scans had
/// nothing to report. Not so much time: scans are late on a busy machine.
const DRAINED_SCANS: u64 = 10;

/// Watches until a signal asks for the end.
///
/// # Errors
/// [`WatchError`].
pub fn run(arguments: &WatchArguments) -> Result<(), WatchError> {
    let signals = Signals::install().map_err(|error| WatchError::Signals { error })?;
    let path = match &arguments.table {
        Some(path) => path.clone(),
        None => default_table()?,
    };
    let Some(table) = open(&path, arguments.wait, &signals)? else {
        return Ok(());
    };
    let events = arguments.events.as_ref();
    let events = events
        .map(|path| BlackBox::create(path, EVENTS_KEPT, Access::Private))
        .transpose()?;
    let watchdog = FailoverWatchdog::with_grace(&table, arguments.grace);
    let (printer, lines) = Printer::new();
    let watcher = Watcher {
        watchdog: &watchdog,
        arguments,
        events,
        told: Mutex::default(),
        desk: Mutex::default(),
        reported_epoch: Mutex::new(table.global_epoch()),
    };
    let stop = Stop::new();
    thread::scope(|scope| {
        let printing = scope.spawn(|| {
            let lines = lines;
            let out = Patient::until(|| stop.is_requested());
            let left_out = |lines| watcher.shown_line(&Line::LeftOut { lines });
            print(&lines, out, |slot| watcher.acknowledge_told(slot), left_out)
        });
        let scanning = printer.clone();
        scope.spawn(|| {
            let printer = scanning;
            watchdog.run(arguments.period, &stop, |report| {
                watcher.act_on(report, scope, &printer);
            });
        });
        let ended = watcher.look_after(&signals, &printer, || printing.is_finished());
        stop.request();
        drop(printer);
        match printing.join() {
            Ok(Err(error)) => Err(WatchError::Output { error }),
            Ok(Ok(())) | Err(_) => ended,
        }
    })
}

/// The table; none when a signal came first.
fn open(path: &Path, waits: bool, signals: &Signals) -> Result<Option<HeartbeatTable>, WatchError> {
    while !signals.asked() {
        match HeartbeatTable::attach(path) {
            Ok(table) => return Ok(Some(table)),
            // Of an earlier start of the machine: who creates it next makes it a table again.
            Err(HeartbeatError::Region(
                error @ (RegionError::NotFound { .. } | RegionError::StaleBoot { .. }),
            )) => {
                if !waits {
                    return Err(WatchError::NoTable { error });
                }
            }
            Err(error) => return Err(WatchError::Table(error)),
        }
        thread::sleep(LOOKS);
    }
    Ok(None)
}

/// So many events fit a black box that is made here.
const EVENTS_KEPT: u32 = 4096;

/// What was told last of a slot: a report is news when this changes.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    generation: u32,
    verdict: Discriminant<Verdict>,
    units: UnitSet,
    deaths: u32,
    term: u32,
}

impl Told {
    fn of(slot: &SlotRef) -> Self {
        Self {
            generation: slot.generation,
            verdict: discriminant(&slot.verdict),
            units: slot.units,
            deaths: slot.deaths,
            term: slot.term(),
        }
    }
}

struct Watcher<'a> {
    watchdog: &'a FailoverWatchdog<'a>,
    arguments: &'a WatchArguments,
    events: Option<BlackBox>,
    told: Mutex<HashMap<u32, Told>>,
    desk: Mutex<Desk>,
    /// The scan whose report had something to acknowledge last.
    reported_epoch: Mutex<u64>,
}

impl<'a> Watcher<'a> {
    /// On the thread of the scan.
    fn act_on<'scope>(
        &'scope self,
        report: &ReclaimReport,
        scope: &'scope Scope<'scope, '_>,
        printer: &Printer,
    ) {
        if !report.is_empty() {
            *lock(&self.reported_epoch) = report.new_global_epoch;
        }
        let line = |slot| {
            let (epoch, started_ns) = (report.new_global_epoch, report.started_ns);
            VerdictLine::new(self.watchdog.table(), slot, epoch, started_ns)
        };
        for slot in &report.suspects {
            if self.is_news(slot) {
                printer.say(self.shown(&line(slot)), None);
            }
        }
        for (slot, _) in &report.dead_slots {
            let is_news = self.is_news(slot);
            let Some(words) = &self.arguments.exec else {
                if is_news {
                    printer.say(self.shown(&line(slot)), Some(*slot));
                }
                continue;
            };
            if is_news {
                printer.say(self.shown(&line(slot)), None);
            }
            let owner = (slot.slot, slot.generation);
            let Some(attempt) = lock(&self.desk).begin(owner, report.started_ns) else {
                continue;
            };
            let (slot, line, to) = (*slot, line(slot), printer.clone());
            let thread = thread::Builder::new().spawn_scoped(scope, move || {
                let done = exec::run(words, &(line.json() + "\n"), self.arguments.timeout);
                self.conclude(slot, attempt, done, &to);
            });
            if let Err(error) = thread {
                let failure = Failure::NotRun(error.to_string());
                self.conclude(slot, attempt, Err(failure), printer);
            }
        }
    }

    fn is_news(&self, slot: &SlotRef) -> bool {
        let told = Told::of(slot);
        let mut all = lock(&self.told);
        let is_news = all.get(&slot.slot) != Some(&told);
        all.insert(slot.slot, told);
        if let Some(events) = self.events.as_ref().filter(|_| is_news) {
            record_verdict(events, self.watchdog.table(), slot);
        }
        is_news
    }

    /// Acts on how the command ended.
    fn conclude(&self, slot: SlotRef, attempt: u32, done: Result<(), Failure>, printer: &Printer) {
        let owner = (slot.slot, slot.generation);
        let line = match done {
            Ok(()) => {
                let taken = self.acknowledge(slot);
                lock(&self.desk).finish(owner, monotonic_ns());
                match taken {
                    Ok(taken) => Line::Acknowledged {
                        slot: slot.slot,
                        generation: slot.generation,
                        units: taken.units.len(),
                        attempt,
                    },
                    Err(error) => refused(slot, &error),
                }
            }
            Err(failure) => {
                let wait = lock(&self.desk).fail(owner, monotonic_ns());
                Line::Failed {
                    slot: slot.slot,
                    generation: slot.generation,
                    attempt,
                    how: failure.to_string(),
                    again_in_ns: u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX),
                }
            }
        };
        printer.say(self.shown_line(&line), None);
    }

    /// Without a command: on the printer's thread.
    fn acknowledge_told(&self, slot: SlotRef) -> Option<String> {
        let error = self.acknowledge(slot).err()?;
        Some(self.shown_line(&refused(slot, &error)))
    }

    fn acknowledge(&self, slot: SlotRef) -> Result<Acknowledged, AcknowledgeError> {
        let taken = self.watchdog.clear_dead_bitmap(slot)?;
        if let Some(events) = &self.events {
            record_acknowledged(events, self.watchdog.table(), &slot, taken.units);
        }
        Ok(taken)
    }

    /// Until a signal asks for the end, the printer ends, or the table is another one.
    fn look_after(
        &self,
        signals: &Signals,
        printer: &Printer,
        printer_ended: impl Fn() -> bool,
    ) -> Result<(), WatchError> {
        let table = self.watchdog.table();
        let (mut was_primary, mut busy_epoch) = (None, None);
        while !signals.asked() && !printer_ended() {
            let lease = Lease::load(&table.header().lease);
            let is_primary = match lease.holder() {
                Holder::Slot { slot, .. } => Some(table.held_slots().binary_search(&slot).is_ok()),
                Holder::Nobody | Holder::Unregistered => was_primary,
            };
            if is_primary != was_primary {
                if let Some(events) = &self.events
                    && (is_primary == Some(true) || was_primary == Some(true))
                {
                    record_standing(events, table, is_primary == Some(true), lease.term());
                }
                was_primary = is_primary;
                let table = shown(table.path());
                let line = if is_primary == Some(true) {
                    Line::Primary { table }
                } else {
                    Line::Standby { table }
                };
                printer.say(self.shown_line(&line), None);
            }
            if let Ok(state @ (PathState::Superseded | PathState::Orphaned)) = table.check_path()
                && self.is_drained(&mut busy_epoch)
            {
                let path = table.path().to_owned();
                return Err(WatchError::Moved { path, state });
            }
            thread::sleep(LOOKS);
        }
        Ok(())
    }

    /// Whether nothing is left in a table that was replaced: `busy_epoch` is the last scan in which something
    /// was seen to be.
    fn is_drained(&self, busy_epoch: &mut Option<u64>) -> bool {
        let table = self.watchdog.table();
        let epoch = table.global_epoch();
        let mut live = table.iter_live();
        let first_look = busy_epoch.is_none();
        if first_look || live.any(|(_, seen)| !seen.in_flight_bitmap.is_empty()) {
            *busy_epoch = Some(epoch);
        }
        let last = (*busy_epoch).max(Some(*lock(&self.reported_epoch)));
        last.is_some_and(|last| epoch.saturating_sub(last) > DRAINED_SCANS)
    }

    fn shown(&self, line: &VerdictLine) -> String {
        if self.arguments.json {
            line.json()
        } else {
            line.text().to_owned()
        }
    }

    fn shown_line(&self, line: &Line) -> String {
        if self.arguments.json {
            line.json()
        } else {
            line.text()
        }
    }
}

fn refused(slot: SlotRef, error: &AcknowledgeError) -> Line {
    Line::Refused {
        slot: slot.slot,
        generation: slot.generation,
        why: error.to_string(),
    }
}

/// What a thread that panicked inside left is still true.
fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
