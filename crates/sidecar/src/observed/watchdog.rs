//! A watchdog that is observed: its scans, and each piece of their news once.
//!
//! Contract: as [`SidecarBox`]. The `value` of a scan's observation is how many slots it reported.
//! Events: `lease_taken`, `lease_lost`, `superseded`; `missed` (more than half of the grace late),
//! `silent`, `died`, `fenced`, `handed_back`, `quarantined` of owners; `acknowledged`.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use bumpless_failover::{
    AcknowledgeError, Acknowledged, FailoverWatchdog, ReclaimReport, SlotRef, Stop,
};
use bumpless_heartbeat::Unit;
use bumpless_substrate::clock::monotonic_ns;

use super::told::{self, Told};
use crate::event::EventKind;
use crate::sidecar_box::{Observe, SidecarBox, operations};

operations! {
    /// What is observed of a watchdog.
    WatchdogOp {
        /// A scan.
        Scan = 0, "scan";
        /// An acknowledgement of all that a report showed of a slot.
        Acknowledge = 1, "clear_dead_bitmap";
        /// An acknowledgement of one unit.
        AcknowledgeUnit = 2, "acknowledge_unit";
    }
}

impl Observe for FailoverWatchdog<'_> {
    const KIND: &'static str = "watchdog";
    type Memory = Mutex<Told>;

    fn op_name(number: u16) -> Option<&'static str> {
        WatchdogOp::name_of(number)
    }
}

/// A watchdog's calls.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl");
/// use bumpless_failover::FailoverWatchdog;
/// use bumpless_heartbeat::HeartbeatTable;
/// use bumpless_sidecar::{Instruments, SidecarBox};
/// use std::sync::{Arc, Mutex};
///
/// let table = HeartbeatTable::create(&path, 64)?;
/// let worker = table.register(std::process::id())?; // and then not one beat
/// table.mark_in_flight(worker, 5_u8)?;
///
/// let events = Arc::new(Mutex::new(Vec::new())); // or a `BlackBox`, which survives this process
/// let instruments = Arc::new(Instruments::new().with_events(events.clone()));
/// let watchdog = SidecarBox::with_instruments(FailoverWatchdog::with_grace(&table, 3), instruments);
/// for _ in 0..10 {
///     let _ = watchdog.scan(); // the report repeats its news, the events do not
/// }
/// let names: Vec<_> = events.lock().unwrap().iter().map(|event| event.kind.name()).collect();
/// assert_eq!(names, ["lease_taken", "missed", "silent", "fenced", "handed_back"]);
/// # Ok(()) }
/// ```
impl SidecarBox<FailoverWatchdog<'_>> {
    /// As [`FailoverWatchdog::scan`].
    #[must_use = "what is not acknowledged is reported again"]
    pub fn scan(&self) -> ReclaimReport {
        let mut report = ReclaimReport::default();
        self.scan_into(&mut report);
        report
    }

    /// As [`FailoverWatchdog::scan_into`].
    pub fn scan_into(&self, report: &mut ReclaimReport) {
        let _inside = self.instruments.header().enter();
        // How many were reported is known behind the scan, when the observation is pushed.
        self.instruments.follow(|_| ());
        let began_ns = monotonic_ns();
        self.inner.scan_into(report);
        let latency_ns = monotonic_ns().saturating_sub(began_ns);
        self.take_in(report, Some(latency_ns));
    }

    /// As [`FailoverWatchdog::run`]; every scan is observed, and its news told, before `on_report` is
    /// given what holds something.
    pub fn run(&self, period: Duration, stop: &Stop, mut on_report: impl FnMut(&ReclaimReport)) {
        self.inner.run_each_scan(period, stop, |report| {
            self.take_in(report, None);
            if !report.dead_slots.is_empty() || !report.suspects.is_empty() {
                on_report(report);
            }
        });
    }

    /// As [`FailoverWatchdog::clear_dead_bitmap`].
    ///
    /// # Errors
    /// As there.
    pub fn clear_dead_bitmap(&self, slot: SlotRef) -> Result<Acknowledged, AcknowledgeError> {
        let _inside = self.instruments.header().enter();
        let call = |inner: &FailoverWatchdog<'_>| inner.clear_dead_bitmap(slot);
        let taken = self.observed(WatchdogOp::Acknowledge, slot.slot, call, Result::is_err);
        self.tell_acknowledged(&slot, &taken);
        taken
    }

    /// As [`FailoverWatchdog::acknowledge_unit`].
    ///
    /// # Errors
    /// As there.
    pub fn acknowledge_unit(
        &self,
        slot: SlotRef,
        unit: Unit,
    ) -> Result<Acknowledged, AcknowledgeError> {
        let _inside = self.instruments.header().enter();
        let call = |inner: &FailoverWatchdog<'_>| inner.acknowledge_unit(slot, unit);
        let taken = self.observed(WatchdogOp::AcknowledgeUnit, slot.slot, call, Result::is_err);
        self.tell_acknowledged(&slot, &taken);
        taken
    }

    fn take_in(&self, report: &ReclaimReport, latency_ns: Option<u64>) {
        let value = report.dead_slots.len() as u32;
        let is_contended = report.standing == bumpless_failover::Standing::Standby;
        let op = WatchdogOp::Scan.into();
        match latency_ns {
            Some(latency_ns) => {
                self.instruments
                    .observe_timed(op, is_contended, value, latency_ns);
            }
            None => self.instruments.observe(op, is_contended, value),
        }
        if !self.instruments.tells_news() {
            return;
        }
        // A thread that panicked inside told at most something twice.
        let mut told = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        told.tell(
            report,
            self.inner.table(),
            self.inner.lease(),
            self.inner.grace_epochs(),
            &mut |event| self.instruments.tell(event),
        );
    }

    fn tell_acknowledged(&self, slot: &SlotRef, taken: &Result<Acknowledged, AcknowledgeError>) {
        let (true, Ok(taken)) = (self.instruments.has_sink(), taken) else {
            return;
        };
        let at_ns = monotonic_ns();
        let event = told::event(EventKind::Acknowledged, slot, at_ns, self.inner.table());
        self.instruments.tell(event.with_units(taken.units));
    }
}
