//! What a watchdog would say of a slot now, for an observer that touches nothing.
//!
//! Contract: the verdicts of [`judge`](crate::judge), without their consequences: nothing is fenced,
//! recorded or reported, and a table that is open to look only will do. An observer remembers no earlier
//! scan, so what an owner missed is counted from the beat in its slot. While nobody ticks, it stands still.
//!
//! ```text
//!   LIVE ─ kernel's mark, or proven gone ─▶ Died       RELEASED with units ─▶ Released
//!   LIVE ─ lag > grace ──────────────────▶ Silent     CLAIMING ─▶ InTransition    unknown ─▶ Quarantined
//! ```

use bumpless_heartbeat::{Certificate, HeartbeatTable, UnitSet};
use bumpless_substrate::claim::{Claim, ClaimState};
use bumpless_substrate::proof::{Evidence, Proof, ProofSource};
use bumpless_substrate::sync::Ordering;

use crate::judge::PLAUSIBLY_AHEAD_EPOCHS;
use crate::lease::{Holder, Lease};
use crate::verdict::Verdict;
use crate::watchdog::DEFAULT_GRACE_EPOCHS;

/// What one look at a slot shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Who owns it, or owned it last.
    pub claim: Claim,
    /// What a watchdog would find; `None`: nothing to say.
    pub verdict: Option<Verdict>,
    /// What is known about the owner's life. `Unknown` also of who is not suspected: nobody asked.
    pub evidence: Evidence,
    /// Epochs since the owner's last beat; 0 when nobody is registered.
    pub lag_epochs: u64,
    /// How many of them it may miss.
    pub grace_epochs: u64,
    /// The units in flight: marked, and neither completed nor acknowledged.
    pub units: UnitSet,
    /// Whether the owner has lost the slot.
    pub is_fenced: bool,
    /// Whether somebody acknowledged the report of that fence.
    pub is_acknowledged: bool,
    /// Deaths of the slot's owners that nobody acknowledged yet.
    pub deaths_waiting: u32,
    /// Deaths of the slot's owners that were ever recorded, modulo 2^18.
    pub deaths_recorded: u32,
}

/// Who watches a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch {
    /// Who holds the lease.
    pub holder: Holder,
    /// Its term.
    pub term: u32,
    /// When the primary watchdog ticks, unit: ns; `None`: no watchdog has said so yet.
    pub period_ns: Option<u64>,
    /// The grace of slots that have none of their own, as the primary watchdog says; if none has said so,
    /// [`DEFAULT_GRACE_EPOCHS`].
    pub grace_epochs: u64,
}

impl Watch {
    /// Who watches the table, as its header says.
    #[must_use]
    pub fn of(table: &HeartbeatTable) -> Self {
        let header = table.header();
        let lease = Lease::load(&header.lease);
        // Relaxed, both: numbers on their own.
        let period_ns = header.period_ns.load(Ordering::Relaxed);
        let grace_epochs = header.grace_epochs.load(Ordering::Relaxed);
        Self {
            holder: lease.holder(),
            term: lease.term(),
            period_ns: (period_ns != 0).then_some(period_ns),
            grace_epochs: match grace_epochs {
                0 => DEFAULT_GRACE_EPOCHS,
                said => said,
            },
        }
    }
}

/// Looks at a slot; `None` beyond the table. Cost: some ten loads; system calls for suspects only.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl");
/// use bumpless_failover::{FailoverWatchdog, look};
/// use bumpless_heartbeat::HeartbeatTable;
///
/// let table = HeartbeatTable::create(&path, 64)?;
/// table.register(std::process::id())?;
/// let watchdog = FailoverWatchdog::with_grace(&table, 3);
/// let _ = (watchdog.scan(), watchdog.scan());
///
/// let observed = HeartbeatTable::open_read_only(&path)?;
/// let watch = look::Watch::of(&observed);
/// let seen = look::look(&observed, 0, watch.grace_epochs).unwrap();
/// assert_eq!((seen.lag_epochs, seen.grace_epochs, seen.verdict), (2, 3, None));
/// # Ok(()) }
/// ```
#[must_use]
pub fn look(table: &HeartbeatTable, slot: u32, grace_epochs: u64) -> Option<Look> {
    let cells = table.cells(slot as usize)?;
    let claim = cells.slot.claimed_by();
    let generation = claim.generation();
    let deaths = cells.verdict.deaths();
    let decision = cells.slot.peek_decision(generation);
    let mut look = Look {
        claim,
        verdict: None,
        evidence: Evidence::UNKNOWN,
        lag_epochs: 0,
        grace_epochs: match cells.slot.grace_epochs() {
            0 => grace_epochs.max(1),
            own => u64::from(own),
        },
        units: cells.slot.units(generation),
        is_fenced: decision.is_some_and(|work| work.is_fenced()),
        is_acknowledged: decision.is_some_and(|work| work.is_acked()),
        deaths_waiting: deaths.waiting(),
        deaths_recorded: deaths.recorded(),
    };
    match claim.state() {
        Some(ClaimState::Free) => {}
        Some(ClaimState::Released) => {
            look.verdict = (!look.units.is_empty()).then_some(Verdict::Released);
        }
        Some(ClaimState::Claiming) => {
            look.verdict = Some(Verdict::InTransition { pid: claim.pid() });
        }
        Some(ClaimState::Live) => look_at_live(table, slot as usize, &mut look),
        None => look.verdict = Some(Verdict::Quarantined),
    }
    Some(look)
}

fn look_at_live(table: &HeartbeatTable, index: usize, look: &mut Look) {
    let Some(cells) = table.cells(index) else {
        return;
    };
    let now = table.global_epoch();
    let beat = cells.slot.peek_beat().epoch_of(look.claim.generation());
    // Far ahead is damage, and no beat.
    let beat = beat.filter(|beat| *beat <= now + PLAUSIBLY_AHEAD_EPOCHS);
    look.lag_epochs = now.saturating_sub(beat.unwrap_or(0));
    let is_late = look.lag_epochs > look.grace_epochs;
    look.evidence = match cells.slot.certificate() {
        Certificate::Died if cells.slot.still_claimed_as(look.claim) => Evidence {
            proof: Proof::Gone,
            source: ProofSource::Certificate,
        },
        Certificate::Armed if !is_late => Evidence::UNKNOWN,
        _ => table.examine(index, look.claim),
    };
    if look.evidence.proof == Proof::Gone {
        look.verdict = Some(Verdict::Died);
    } else if is_late {
        look.verdict = Some(Verdict::Silent {
            lag_epochs: look.lag_epochs,
            grace_epochs: look.grace_epochs,
        });
    }
}

#[cfg(test)]
mod tests {
    use bumpless_heartbeat::HeartbeatTable;

    use super::*;
    use crate::watchdog::FailoverWatchdog;

    #[test]
    fn an_observer_says_of_each_slot_what_the_watchdog_would() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let table = HeartbeatTable::create(&path, 4).unwrap();
        let observed = HeartbeatTable::open_read_only(&path).unwrap();
        let me = table.register(std::process::id()).unwrap();
        table.mark_in_flight(me, 7_u8).unwrap();
        let watchdog = FailoverWatchdog::with_grace(&table, 2);
        assert_eq!(Watch::of(&observed).holder, Holder::Nobody);
        let at = |slot| look(&observed, slot, Watch::of(&observed).grace_epochs).unwrap();
        // The first sight of an owner is a beat to a watchdog.
        assert!(watchdog.scan().is_empty());
        table.beat(me).unwrap();
        for lag_epochs in 1..=2 {
            assert!(watchdog.scan().is_empty());
            assert_eq!((at(0).lag_epochs, at(0).verdict), (lag_epochs, None));
        }
        let report = watchdog.scan();
        assert_eq!(at(0).verdict, Some(report.dead_slots[0].0.verdict));
        assert_eq!(
            (at(0).units, at(0).is_fenced),
            (report.dead_slots[0].0.units, true)
        );
        table.unregister(me).unwrap();
        assert_eq!(at(0).verdict, Some(Verdict::Released));
        watchdog.clear_dead_bitmap(report.dead_slots[0].0).unwrap();
        assert_eq!((at(0).verdict, at(3).verdict), (None, None));
        assert_eq!(look(&observed, 4, 3), None);
        let watch = Watch::of(&observed);
        assert_eq!((watch.term, watch.grace_epochs), (1, 2));
        assert!(matches!(watch.holder, Holder::Slot { slot: 1, .. }));
    }
}
