//! The watchdog: one pass over a table, as often as its user likes.
//!
//! Contract: a scan ticks the table's epoch by exactly one, judges every slot that may be in use,
//! fences who is dead or silent, and reports what is thereby handed back, again and again until it is
//! acknowledged. It never waits. It has no period of its own: lateness is counted in scans.
//!
//! ```text
//!   lease ─ path check ─ tick ─ judge each occupied slot ─ deaths recorded by recyclers ─ report
//! ```

use std::sync::{Mutex, PoisonError};

use bumpless_heartbeat::{Handle, HeartbeatTable, SlotCells, Unit, UnitSet};
use bumpless_substrate::claim::Claim;
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::locks::LockState;
use bumpless_substrate::proof::Evidence;
use bumpless_substrate::region::PathState;

use crate::glance::pass_over;
use crate::judge::{Finding, Mode, OnSilence, Scan, Seen, Witness, judge};
use crate::lease::Lease;
use crate::report::{ReclaimReport, SlotRef, Standing};
use crate::roster::{Owners, Roster, WORD};
use crate::tenure::Stillness;
use crate::told::ToldDeaths;
use crate::verdict::Verdict;

/// The grace of a watchdog made by [`FailoverWatchdog::new`], in epochs.
pub const DEFAULT_GRACE_EPOCHS: u64 = 3;

/// All words of the occupancy and the verdict lines of all slots in use are looked at once in so many scans,
/// whatever the hints say: a recycler that died between recording a death and saying so is made good then.
pub(crate) const ROUND_SCANS: u64 = 256;

/// The path is looked at when the last look is so old: a scan that follows the last one at once does without
/// the system call, which takes several times as long as all the rest.
const PATH_LOOK_NS: u64 = 1_000_000;

/// A scan that has taken longer was stopped in the middle: it fences nobody for silence any more.
const STALLED_NS: u64 = 50_000_000;

/// Watches a borrowed table.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl");
/// use bumpless_failover::FailoverWatchdog;
/// use bumpless_heartbeat::HeartbeatTable;
///
/// let table = HeartbeatTable::create(&path, 64)?;
/// let worker = table.register(std::process::id())?;
/// table.mark_in_flight(worker, 5_u8)?;
///
/// let watchdog = FailoverWatchdog::with_grace(&table, 3);
/// let mut scans = std::iter::repeat_with(|| watchdog.scan());
/// let report = scans.find(|report| !report.is_empty()).unwrap(); // the fifth, and not one beat
/// let (slot, snapshot) = report.dead_slots[0];
/// assert!(slot.to_string().ends_with(" epochs > grace 3")); // silent: lag 4
/// for unit in FailoverWatchdog::iter_in_flight_bits(snapshot.in_flight_bitmap) {
///     assert_eq!(unit.index(), 5); // give it to somebody else
/// }
/// watchdog.clear_dead_bitmap(slot)?; // now it is not reported again
/// assert!(table.clear_in_flight(worker, 5_u8).is_err()); // the late one cannot commit it
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct FailoverWatchdog<'t> {
    pub(crate) table: &'t HeartbeatTable,
    pub(crate) grace_epochs: u64,
    on_silence: OnSilence,
    pub(crate) memory: Mutex<Memory>,
}

/// What one watchdog remembers between its scans.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Its own registration; `None` while the table has no slot for it.
    pub(crate) handle: Option<Handle>,
    /// When, in scans, it tries to register if it is not.
    pub(crate) registers_at_scan: u64,
    /// The lease that it took.
    pub(crate) lease: Option<Lease>,
    /// What it sees of another holder.
    pub(crate) stillness: Stillness,
    /// Whom it looks at, and what it saw of each.
    roster: Roster,
    /// The deaths that its last scan that ticked told of.
    told: ToldDeaths,
    /// The header's hint at the last look at the verdict lines.
    pub(crate) deaths_hint: u64,
    /// The slots at whose lines that look found deaths that nobody acknowledged.
    pub(crate) deaths_waiting: Vec<u32>,
    /// When the path was looked at last, and what it named if not this table.
    path_looked_ns: Option<u64>,
    path_state: Option<PathState>,
    /// Scans begun, also as a standby.
    pub(crate) scans: u64,
    /// When it ticked last.
    pub(crate) ticked_ns: Option<u64>,
    /// The epoch of its last scan that forgave silence.
    forgave_epoch: u64,
}

impl<'t> FailoverWatchdog<'t> {
    /// A watchdog with a grace of [`DEFAULT_GRACE_EPOCHS`].
    #[must_use]
    pub fn new(table: &'t HeartbeatTable) -> Self {
        Self::with_grace(table, DEFAULT_GRACE_EPOCHS)
    }

    /// A watchdog that takes an owner for silent when it missed *more* than `grace_epochs` scans
    /// (a grace of 0 counts as 1). A slot with a grace of its own is judged by that.
    #[must_use]
    pub fn with_grace(table: &'t HeartbeatTable, grace_epochs: u64) -> Self {
        let memory = Memory {
            handle: None,
            registers_at_scan: 0,
            lease: None,
            stillness: Stillness::default(),
            roster: Roster::new(table.capacity()),
            told: ToldDeaths::default(),
            // No count that a new table shows.
            deaths_hint: u64::MAX,
            deaths_waiting: Vec::new(),
            path_looked_ns: None,
            path_state: None,
            scans: 0,
            ticked_ns: None,
            forgave_epoch: 0,
        };
        Self {
            table,
            grace_epochs,
            on_silence: OnSilence::default(),
            memory: Mutex::new(memory),
        }
    }

    /// Chooses what silence leads to; by default the late owner is fenced.
    #[must_use]
    pub fn on_silence(mut self, on_silence: OnSilence) -> Self {
        self.on_silence = on_silence;
        self
    }

    /// The table it watches.
    #[must_use]
    pub fn table(&self) -> &'t HeartbeatTable {
        self.table
    }

    /// How many epochs an owner may miss, unless its slot has a grace of its own.
    #[must_use]
    pub fn grace_epochs(&self) -> u64 {
        self.grace_epochs
    }

    /// The lease under which its last scan judged, or could have; `None` for a standby. Waits for a scan that
    /// another thread is in.
    #[must_use]
    pub fn lease(&self) -> Option<Lease> {
        let memory = self.memory.lock();
        memory.unwrap_or_else(PoisonError::into_inner).lease
    }

    /// One scan. Cost: three loads for each owner in time, a system call for the path if the last one was a
    /// millisecond ago, and some for suspects.
    #[must_use = "what is not acknowledged is reported again"]
    pub fn scan(&self) -> ReclaimReport {
        let mut report = ReclaimReport::default();
        self.scan_into(&mut report);
        report
    }

    /// One scan into a report that is used again: no allocation once it has grown.
    pub fn scan_into(&self, report: &mut ReclaimReport) {
        self.scan_as(Mode::Tick, 0, report);
    }

    /// One scan; `interval_ns` is when the next is planned, 0 = what the last ones show.
    pub(crate) fn scan_as(&self, mode: Mode, interval_ns: u64, report: &mut ReclaimReport) {
        report.clear();
        // A thread that panicked inside left numbers that are still true.
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.scans += 1;
        let started_ns = monotonic_ns();
        report.started_ns = started_ns;
        report.new_global_epoch = self.table.global_epoch();
        let Some(lease) = self.hold_lease(&mut memory, started_ns) else {
            return;
        };
        if mode != Mode::DeathsOnly {
            report.path_state = self.look_at_path(&mut memory, started_ns);
            // A failure is another ticker: this scan's lags would count its epochs twice.
            let Ok(now) = self.table.header().epoch.tick(self.table.epoch()) else {
                return;
            };
            report.new_global_epoch = now.epoch();
            self.plan(&mut memory, started_ns, interval_ns);
        }
        report.standing = Standing::Primary;
        self.beat(&mut memory);
        let term = lease.term();
        let round = memory.is_round();
        let scan = Scan {
            mode,
            epoch: report.new_global_epoch,
            grace_epochs: self.grace_epochs,
            on_silence: self.on_silence,
            is_round: round,
            forgave_epoch: memory.forgave_epoch,
        };
        if mode == Mode::TickAfterPause {
            memory.forgave_epoch = scan.epoch;
        }
        let Memory { roster, told, .. } = &mut *memory;
        told.begin();
        let mut pass = Pass {
            scan,
            lease,
            started_ns,
            told,
            report,
        };
        let (slots, occupancy) = (self.table.slots(), self.table.occupancy());
        roster.update(occupancy, round);
        let any = if mode == Mode::Tick {
            let (any, lag_epochs) = pass_over(slots, occupancy, roster, scan.epoch);
            pass.lags(lag_epochs);
            any
        } else {
            roster.look_at_each_word(occupancy, |_, bits, _| bits)
        };
        if any {
            roster.judge_the_left(|word, bits, owners| {
                self.scan_word(word, bits, owners, &mut pass);
            });
        }
        self.scan_deaths(term, &mut memory, report);
    }

    /// What the path names, if it is not this table.
    fn look_at_path(&self, memory: &mut Memory, now_ns: u64) -> Option<PathState> {
        let looked_ns = memory.path_looked_ns;
        if looked_ns.is_none_or(|looked_ns| now_ns.saturating_sub(looked_ns) >= PATH_LOOK_NS) {
            memory.path_looked_ns = Some(now_ns);
            let state = self.table.check_path().ok();
            memory.path_state = state.filter(|state| *state != PathState::Current);
        }
        memory.path_state
    }

    /// The units of a set, in rising order.
    pub fn iter_in_flight_bits(units: UnitSet) -> impl Iterator<Item = Unit> {
        units.iter()
    }

    /// Judges the owners among those of `bits` in one word.
    #[inline(never)]
    fn scan_word(&self, word: u32, mut bits: u64, owners: &mut Owners, pass: &mut Pass<'_>) {
        let tells_again =
            pass.scan.mode == Mode::Tick && Lease::load(&self.table.header().lease) == pass.lease;
        while bits != 0 {
            let index = bits.trailing_zeros();
            bits &= bits - 1;
            let Some(seen) = owners.get_mut(index as usize) else {
                continue;
            };
            let slot = word * WORD as u32 + index;
            if !tells_again || !self.tell_again(slot, seen, pass) {
                self.scan_slot(slot, seen, pass);
            }
        }
    }

    /// Tells a death of the last scan again, if nothing has changed. Apart from the judgement, which takes
    /// several times as long.
    #[inline(never)]
    fn tell_again(&self, slot: u32, seen: &Seen, pass: &mut Pass<'_>) -> bool {
        let Some(cells) = self.table.cells(slot as usize) else {
            return false;
        };
        let Some(entry) = pass.told.again(slot, cells, seen, pass.lease.term()) else {
            return false;
        };
        pass.report.dead_slots.push(*entry);
        let lag_epochs = pass.scan.epoch.saturating_sub(seen.beat.epoch());
        pass.lags(lag_epochs);
        true
    }

    #[inline(never)]
    fn scan_slot(&self, slot: u32, seen: &mut Seen, pass: &mut Pass<'_>) {
        let Some(cells) = self.table.cells(slot as usize) else {
            return;
        };
        let (scan, lease) = (pass.scan, pass.lease);
        let witness = TableWitness {
            table: self.table,
            cells,
            slot,
            lease,
            started_ns: pass.started_ns,
        };
        let (lag_epochs, finding) = judge(cells.slot, &scan, seen, &witness);
        if let Some(finding) = finding {
            let before = pass.report.dead_slots.len();
            self.report(slot, lease.term(), cells, &finding, pass.report);
            if scan.mode == Mode::Tick
                && let Some(entry) = pass.report.dead_slots.get(before)
            {
                pass.told.remember(cells, finding.claim, seen, entry);
            }
        }
        pass.lags(lag_epochs);
    }

    /// Puts a finding into the report, if it is still to be told.
    fn report(
        &self,
        slot: u32,
        term: u32,
        cells: SlotCells<'_>,
        finding: &Finding,
        report: &mut ReclaimReport,
    ) {
        let deaths = cells.verdict.deaths();
        let slot_ref = SlotRef {
            slot,
            generation: finding.claim.generation(),
            pid: finding.claim.pid(),
            verdict: finding.verdict,
            evidence: finding.evidence,
            units: finding.units,
            deaths: deaths.waiting(),
            deaths_recorded: deaths.recorded(),
            term,
            creation_id: self.table.creation_id(),
        };
        let untold = !finding.units.is_empty()
            || match finding.verdict {
                Verdict::Died => slot_ref.deaths > 0,
                Verdict::Silent { .. } => finding.is_fenced && !finding.is_acknowledged,
                Verdict::Released | Verdict::InTransition { .. } | Verdict::Quarantined => false,
            };
        let handed_back = finding.is_fenced || finding.verdict == Verdict::Died;
        if handed_back && untold {
            report
                .dead_slots
                .push((slot_ref, finding.snapshot(cells.slot)));
        } else if !handed_back {
            report.suspects.push(slot_ref);
        }
    }
}

/// One scan's way over the slots.
struct Pass<'a> {
    scan: Scan,
    lease: Lease,
    started_ns: u64,
    told: &'a mut ToldDeaths,
    report: &'a mut ReclaimReport,
}

impl Memory {
    /// Whether this scan looks at everything, whatever the hints say.
    pub(crate) fn is_round(&self) -> bool {
        self.scans.is_multiple_of(ROUND_SCANS)
    }
}

impl Pass<'_> {
    fn lags(&mut self, lag_epochs: u64) {
        self.report.largest_lag_epochs = self.report.largest_lag_epochs.max(lag_epochs);
    }
}

/// The real world, as a judgement sees it.
struct TableWitness<'a> {
    table: &'a HeartbeatTable,
    cells: SlotCells<'a>,
    slot: u32,
    lease: Lease,
    started_ns: u64,
}

impl Witness for TableWitness<'_> {
    fn lock_is_free(&self) -> bool {
        matches!(self.table.lock_state(self.slot), Ok(LockState::Free))
    }

    fn examine(&self, claim: Claim) -> Evidence {
        self.table.examine(self.slot as usize, claim)
    }

    fn still_primary(&self) -> bool {
        Lease::load(&self.table.header().lease) == self.lease
    }

    fn on_time(&self) -> bool {
        monotonic_ns().saturating_sub(self.started_ns) < STALLED_NS
    }

    fn record_death(&self, claim: Claim) {
        // Met again, scan after scan, until it is acknowledged: then there is nothing new to be hinted at.
        if self.cells.verdict.deaths().generation() < claim.generation() {
            self.table.record_death(self.cells, claim);
        }
    }
}
