//! Deaths of owners whose slots are in use again, which no judgement of a slot can find any more.
//!
//! Contract: whoever recycles a slot has recorded the death in the slot's line of verdicts, and hinted at it
//! in the header. All lines are looked at when the hint has moved, and now and then in any case; deaths that
//! wait for an acknowledgement are reported by every scan.

use bumpless_heartbeat::{Certificate, HeartbeatSnapshot, SlotCells, SlotRole, UnitSet};
use bumpless_substrate::claim::ClaimState;
use bumpless_substrate::locks::SlotLocks;
use bumpless_substrate::proof::{Evidence, Proof, ProofSource};
use bumpless_substrate::sync::Ordering;

use crate::report::{ReclaimReport, SlotRef};
use crate::verdict::Verdict;
use crate::watchdog::{FailoverWatchdog, Memory};

/// A registrant recycled the slot: it had the lock, if slots have locks, and asked every source.
const RECYCLED: Evidence = Evidence {
    proof: Proof::Gone,
    source: if SlotLocks::EXCLUDE {
        ProofSource::ByteLock
    } else {
        ProofSource::Pid
    },
};

impl FailoverWatchdog<'_> {
    /// Deaths of owners whose slots are in use again: recorded by whoever recycled them. Those that wait
    /// stay in a list: only what is recorded makes it look at all lines.
    pub(crate) fn scan_deaths(&self, term: u32, memory: &mut Memory, report: &mut ReclaimReport) {
        // Relaxed: a hint; the round over all lines makes good what it misses.
        let hint = self.table.header().deaths_hint.load(Ordering::Relaxed);
        let round = memory.is_round();
        let hint_has_moved = hint != memory.deaths_hint;
        if hint_has_moved || round {
            memory.deaths_hint = hint;
            let occupancy = self.table.occupancy();
            let waits = |slot: &u32| {
                let cells = self.table.cells(*slot as usize);
                cells.is_some_and(|cells| cells.verdict.deaths().waiting() > 0)
            };
            let waiting = &mut memory.deaths_waiting;
            if hint_has_moved {
                waiting.extend(occupancy.iter_ever_set().filter(waits));
            } else {
                // Who died before it could hint has left the slot as it was: its bit is still set.
                waiting.extend(occupancy.iter().filter(waits));
            }
            waiting.sort_unstable();
            waiting.dedup();
        }
        let judged = report.dead_slots.len();
        // As a rule they are the deaths that were just judged, in the same order, and their lines read.
        let told = report.dead_slots.iter().filter(|(told, _)| told.deaths > 0);
        if told.map(|(told, _)| &told.slot).eq(&memory.deaths_waiting) {
            return;
        }
        memory.deaths_waiting.retain(|slot| {
            let cells = self.table.cells(*slot as usize);
            let waiting = cells.filter(|cells| cells.verdict.deaths().waiting() > 0);
            if let Some(cells) = waiting {
                self.report_deaths(*slot, cells, judged, term, report);
            }
            waiting.is_some()
        });
    }

    /// Puts deaths of a slot that nobody acknowledged into the report, unless the judgement of the slot,
    /// among the first `judged` entries, did or will.
    fn report_deaths(
        &self,
        slot: u32,
        cells: SlotCells<'_>,
        judged: usize,
        term: u32,
        report: &mut ReclaimReport,
    ) {
        let deaths = cells.verdict.deaths();
        // Not in use again yet: its recycler has recorded the death since the slot was judged. The next
        // scan judges it, and knows what it had in flight.
        let claim = cells.slot.peek_claim();
        let is_owned = matches!(claim.state(), Some(ClaimState::Claiming | ClaimState::Live));
        if is_owned && claim.generation() == deaths.generation() {
            return;
        }
        // The judged slots came in rising order.
        let told = report.dead_slots[..judged]
            .binary_search_by_key(&slot, |(told, _)| told.slot)
            .is_ok();
        if told {
            return;
        }
        let slot_ref = SlotRef {
            slot,
            generation: deaths.generation(),
            pid: cells.verdict.last_dead().pid(),
            verdict: Verdict::Died,
            evidence: RECYCLED,
            units: UnitSet::EMPTY,
            deaths: deaths.waiting(),
            deaths_recorded: deaths.recorded(),
            term,
            creation_id: self.table.creation_id(),
        };
        report.dead_slots.push((slot_ref, idle_dead(slot_ref)));
    }
}

/// What is known of an owner whose slot is in use again.
fn idle_dead(slot_ref: SlotRef) -> HeartbeatSnapshot {
    HeartbeatSnapshot {
        pid: slot_ref.pid,
        generation: slot_ref.generation,
        last_seen_epoch: 0,
        in_flight_bitmap: UnitSet::EMPTY,
        role: SlotRole::default(),
        grace_epochs: 0,
        is_fenced: true,
        certificate: Certificate::Died,
    }
}
