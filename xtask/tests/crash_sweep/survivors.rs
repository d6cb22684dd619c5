//! The survivors of a table: the next watchdog, the registrants after it, and what both are owed.
//!
//! Contract: everything is tried at once after the death, with no time for anything to become late: a
//! grace that is never exceeded makes proof of death the only way to see it.
//!
//! ```text
//!   look at the words ─ two scans of a new watchdog ─ acknowledge, twice ─ a scan that finds nothing
//!     ─ the watchdog leaves ─ every slot registered, used, given back ─ another watchdog finds nothing
//! ```

use bumpless_failover::{
    AcknowledgeError, Acknowledged, FailoverWatchdog, ReclaimReport, SlotRef, Standing, UnitName,
    Verdict,
};
use bumpless_heartbeat::{Certificate, HeartbeatSnapshot, HeartbeatTable, Observed, UnitSet};
use bumpless_substrate::claim::ClaimState;

use crate::findings::{Findings, Kind};
use crate::operations::{Moves, Owed};
use crate::stage::Log;
use crate::victim::NEVER_LATE;

/// A unit that every registrant marks and completes.
const TRIED: u8 = 99;

/// Looks at a table whose owners are all dead, all of them with a certificate or given back.
pub fn reclaim(table: &HeartbeatTable, owed: &Owed, log: &Log) -> Findings {
    reclaim_after(0, table, owed, log)
}

/// Looks at a table whose owners are all dead and have no certificate: then the first scan that sees
/// somebody takes that for a beat, and whoever does not beat until the next is looked at more closely.
pub fn reclaim_by_pid(table: &HeartbeatTable, owed: &Owed, log: &Log) -> Findings {
    reclaim_after(1, table, owed, log)
}

fn reclaim_after(scans: usize, table: &HeartbeatTable, owed: &Owed, log: &Log) -> Findings {
    let mut findings = Findings::default();
    let deaths = Deaths::of(table, owed.releases);
    words(table, &mut findings);
    let may_be_acknowledged = owed.moves == Moves::Acknowledge;
    findings.require(
        Kind::Lost,
        may_be_acknowledged || deaths.acknowledged == 0,
        || "a death was acknowledged by nobody".to_owned(),
    );
    let watchdog = FailoverWatchdog::with_grace(table, NEVER_LATE);
    for _ in 0..scans {
        let _too_early = watchdog.scan();
    }
    let handed_back = hand_back(&watchdog, owed, log, &mut findings);
    let taken = acknowledge(&watchdog, &handed_back, &mut findings);
    let wanted = deaths.ended.saturating_sub(deaths.acknowledged);
    findings.require(Kind::Lost, taken >= wanted, || {
        format!("{taken} deaths were reported, {wanted} owners died")
    });
    findings.require(Kind::Doubled, taken <= wanted, || {
        format!("{taken} deaths were reported, {wanted} owners died")
    });
    silent_now(&watchdog, &mut findings);
    drop(watchdog);
    register_all(table, &mut findings);
    let next = FailoverWatchdog::with_grace(table, NEVER_LATE);
    silent_now(&next, &mut findings);
    for slot in handed_back {
        findings.require(Kind::Doubled, next.clear_dead_bitmap(slot).is_err(), || {
            format!("{slot} can be acknowledged in a later term")
        });
    }
    findings
}

/// How many owners ended without giving their slot back.
struct Deaths {
    ended: u32,
    /// Of them, acknowledged by the victim.
    acknowledged: u32,
}

impl Deaths {
    /// Each claim is a generation, and ends by a release or by a death.
    fn of(table: &HeartbeatTable, releases: u32) -> Self {
        let (mut claims, mut released, mut acknowledged) = (0, 0, 0);
        for slot in 0..table.capacity() {
            let Some(cells) = table.cells(slot) else {
                continue;
            };
            let claim = cells.slot.peek_claim();
            claims += claim.generation();
            released += u32::from(claim.state() == Some(ClaimState::Released));
            let deaths = cells.verdict.deaths();
            acknowledged += deaths.recorded() - deaths.waiting();
        }
        // A release before the window may be in the word still.
        let ended = claims.saturating_sub(releases.max(released));
        Self {
            ended,
            acknowledged,
        }
    }
}

/// No word says that a dead owner lives, and looking at a slot never waits.
fn words(table: &HeartbeatTable, findings: &mut Findings) {
    for slot in 0..table.capacity() {
        let Some(cells) = table.cells(slot) else {
            continue;
        };
        let claim = cells.slot.claimed_by();
        if claim.is_live() && cells.slot.certificate() == Certificate::Armed {
            let what = format!("slot {slot} is LIVE and its certificate is armed: {claim:?}");
            findings.add(Kind::Hung, what);
        }
        let _bounded: Observed = table.observe(slot);
    }
}

/// Two scans: what the second one reports.
fn hand_back(
    watchdog: &FailoverWatchdog<'_>,
    owed: &Owed,
    log: &Log,
    findings: &mut Findings,
) -> Vec<SlotRef> {
    let first = watchdog.scan();
    findings.require(Kind::Hung, first.standing == Standing::Primary, || {
        "the lease of the dead cannot be taken at once".to_owned()
    });
    let second = watchdog.scan();
    let (named_first, named) = (names(&first), names(&second));
    findings.require(Kind::Lost, named_first == named, || {
        format!("the second scan reports {named:?}, the first {named_first:?}")
    });
    for (slot, _) in &second.dead_slots {
        let is_silent = matches!(slot.verdict, Verdict::Silent { .. });
        findings.require(Kind::Hung, !is_silent, || {
            format!("{slot}: its death is not seen")
        });
    }
    for suspect in &second.suspects {
        findings.add(Kind::Hung, format!("suspect: {suspect}"));
    }
    let units: Vec<u32> = named.iter().map(|name| name.unit.index()).collect();
    owed_units(&units, owed, log, findings);
    second.dead_slots.iter().map(|(slot, _)| *slot).collect()
}

fn names(report: &ReclaimReport) -> Vec<UnitName> {
    let of = |(slot, dead): &(SlotRef, HeartbeatSnapshot)| {
        let slot = *slot;
        dead.in_flight_bitmap
            .iter()
            .map(move |unit| slot.unit_name(unit))
    };
    report.dead_slots.iter().flat_map(of).collect()
}

/// Compares the units that are handed back with those that are owed.
pub fn owed_units(handed_back: &[u32], owed: &Owed, log: &Log, findings: &mut Findings) {
    let times = |unit: &u32| handed_back.iter().filter(|found| *found == unit).count();
    for unit in owed.must {
        findings.require(Kind::Lost, times(unit) > 0, || {
            format!("unit {unit} is not handed back")
        });
    }
    for unit in owed.may {
        let is_reported = times(unit) > 0;
        findings.require(Kind::Doubled, !(is_reported && log.is_done(*unit)), || {
            format!("unit {unit} was done, and is handed back")
        });
        let must_be_published = owed.moves == Moves::Complete && !is_reported;
        findings.require(
            Kind::Lost,
            !must_be_published || log.is_published(*unit),
            || format!("unit {unit} is not handed back, and has no result"),
        );
    }
    for unit in handed_back {
        let is_owed = owed.must.contains(unit) || owed.may.contains(unit);
        findings.require(Kind::Doubled, is_owed && times(unit) == 1, || {
            format!("unit {unit} is handed back, {} times", times(unit))
        });
    }
}

/// Acknowledges one unit alone and the rest together, each twice; how many deaths that took.
pub fn acknowledge(
    watchdog: &FailoverWatchdog<'_>,
    handed_back: &[SlotRef],
    findings: &mut Findings,
) -> u32 {
    let mut deaths = 0;
    for slot in handed_back {
        let mut left = slot.units;
        if let Some(unit) = slot.units.iter().next() {
            match watchdog.acknowledge_unit(*slot, unit) {
                Ok(taken) => {
                    deaths += taken.deaths;
                    left = UnitSet::from_bits(left.bits() & !taken.units.bits());
                }
                Err(error) => findings.add(Kind::Lost, error.to_string()),
            }
            expect_refusal(&watchdog.acknowledge_unit(*slot, unit), findings);
        }
        match watchdog.clear_dead_bitmap(*slot) {
            Ok(taken) => {
                deaths += taken.deaths;
                findings.require(Kind::Lost, taken.units == left, || {
                    format!("{slot}: acknowledged {:?} of {left:?}", taken.units)
                });
            }
            Err(error) => findings.require(Kind::Lost, left.is_empty(), || error.to_string()),
        }
        expect_refusal(&watchdog.clear_dead_bitmap(*slot), findings);
    }
    deaths
}

fn expect_refusal(second: &Result<Acknowledged, AcknowledgeError>, findings: &mut Findings) {
    let is_refused = matches!(second, Err(AcknowledgeError::AlreadyAcknowledged { .. }));
    findings.require(Kind::Doubled, is_refused, || {
        format!("acknowledged twice: {second:?}")
    });
}

/// A scan that has nothing to say any more.
pub fn silent_now(watchdog: &FailoverWatchdog<'_>, findings: &mut Findings) {
    for _ in 0..2 {
        let report = watchdog.scan();
        for (slot, _) in &report.dead_slots {
            let what = format!("reported after all was acknowledged: {slot}");
            findings.add(Kind::Doubled, what);
        }
    }
}

/// Every slot can be registered, used, seen and given back.
pub fn register_all(table: &HeartbeatTable, findings: &mut Findings) {
    let mut handles = Vec::new();
    for _ in 0..table.capacity() {
        match table.register(std::process::id()) {
            Ok(handle) => handles.push(handle),
            Err(error) => {
                let what = format!("{} slots, then: {error}", handles.len());
                findings.add(Kind::Unclaimable, what);
                break;
            }
        }
    }
    for handle in handles {
        let used = table
            .mark_in_flight(handle, TRIED)
            .and_then(|()| table.beat(handle))
            .and_then(|()| table.clear_in_flight(handle, TRIED));
        let seen = table
            .snapshot(handle)
            .map(|seen| (seen.pid, seen.generation));
        let is_seen = seen == Some((std::process::id(), handle.generation()));
        findings.require(Kind::Unclaimable, is_seen, || {
            format!("{handle} is not seen: {:?}", table.observe(handle))
        });
        let given_back = used.and_then(|()| table.unregister(handle));
        findings.require(Kind::Unclaimable, given_back.is_ok(), || {
            format!("{handle}: {given_back:?}")
        });
    }
}
