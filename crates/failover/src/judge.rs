//! The judgement of one slot, on references, with everything that it needs of the world as arguments.
//!
//! Contract: decided on single words; never waits for a sequence lock. Before a fence the claim, the
//! beat and the watchdog's own lease are read again. A fence that loses to the owner is proof of life
//! and judged anew by the next scan; a half fence is finished by it. Between the last look and the
//! compare-and-swap an owner may still beat: it is then fenced although it lives, which is safe (its
//! next call says so) and cannot be prevented.

use bumpless_heartbeat::epoch::Beat;
use bumpless_heartbeat::slot::{FenceOutcome, Slot};
use bumpless_heartbeat::{Certificate, HeartbeatSnapshot, UnitSet};
use bumpless_substrate::claim::{Claim, ClaimState};

use crate::verdict::Verdict;
use bumpless_substrate::proof::{Evidence, Proof, ProofSource};

/// How far ahead of the scan's epoch a beat may be: other watchdogs may have ticked since the scan
/// began. Further ahead is damage, and no beat.
pub(crate) const PLAUSIBLY_AHEAD_EPOCHS: u64 = 1_024;

/// What to do with an owner that is late but not proven gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnSilence {
    /// Fence it and hand its units back.
    #[default]
    Reclaim,
    /// Say so, and touch nothing.
    ReportOnly,
}

/// What a scan looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It ticked: everything.
    #[default]
    Tick,
    /// It ticked, after a pause of the watchdog itself: the silence of others proves nothing, so who has beaten
    /// since [`Scan::forgave_epoch`] counts as having beaten now. Deaths count.
    TickAfterPause,
    /// It did not tick: only owners that the kernel has marked.
    DeathsOnly,
}

/// The scan that judges.
#[derive(Debug, Clone, Copy)]
pub struct Scan {
    /// What it looks at.
    pub mode: Mode,
    /// The epoch after the scan's tick.
    pub epoch: u64,
    /// The grace of slots that have none of their own.
    pub grace_epochs: u64,
    /// What silence leads to.
    pub on_silence: OnSilence,
    /// Whether it looks at everything, whatever is known already.
    pub is_round: bool,
    /// The epoch of the last scan that forgave silence, 0 = none. A silence is forgiven once: a loop that is late
    /// each time, on a busy machine, would find no hang at all.
    pub forgave_epoch: u64,
}

/// What a watchdog remembers of a slot: the last beat that it accepted.
///
/// For one generation a beat below the last one seen is ignored (two threads of an owner may store
/// out of order), and the first sight of a generation counts as a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Of the owner that beat.
    pub(crate) claim: Claim,
    /// Always of that owner's generation.
    pub(crate) beat: Beat,
}

/// What a judgement asks of the world.
pub trait Witness {
    /// Whether nobody holds the slot's byte lock: cheap, and a reason to ask for proof.
    fn lock_is_free(&self) -> bool;
    /// What is known of the owner that `claim` names.
    fn examine(&self, claim: Claim) -> Evidence;
    /// Whether this watchdog still holds the lease.
    fn still_primary(&self) -> bool;
    /// Whether the scan has not been stopped in the middle: what it saw before is not old.
    fn on_time(&self) -> bool;
    /// Records that the owner of `claim` is proven gone.
    fn record_death(&self, claim: Claim);
}

/// What was found; whether it is (still) to be reported is for the caller to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// The owner.
    pub claim: Claim,
    /// The verdict.
    pub verdict: Verdict,
    /// What is known about its life.
    pub evidence: Evidence,
    /// The units that are the reclaimer's: fenced and not acknowledged.
    pub units: UnitSet,
    /// Whether the slot is fenced: only then is anything handed back.
    pub is_fenced: bool,
    /// Whether somebody acknowledged the report of this fence.
    pub is_acknowledged: bool,
    /// The last beat that was seen.
    pub last_seen_epoch: u64,
}

impl Finding {
    fn new(claim: Claim, verdict: Verdict, evidence: Evidence, seen: &Seen) -> Self {
        Self {
            claim,
            verdict,
            evidence,
            units: UnitSet::EMPTY,
            is_fenced: false,
            is_acknowledged: false,
            last_seen_epoch: seen.beat.epoch(),
        }
    }

    fn fenced(self, slot: &Slot, units: UnitSet) -> Self {
        let decision = slot.peek_decision(self.claim.generation());
        let is_acknowledged = decision.is_some_and(|work| work.is_acked());
        Self {
            units,
            is_fenced: true,
            is_acknowledged,
            ..self
        }
    }

    /// The finding as a snapshot of the slot at the time of the fence.
    #[must_use]
    pub fn snapshot(&self, slot: &Slot) -> HeartbeatSnapshot {
        HeartbeatSnapshot {
            pid: self.claim.pid(),
            generation: self.claim.generation(),
            last_seen_epoch: self.last_seen_epoch,
            in_flight_bitmap: self.units,
            role: slot.peek_role(),
            grace_epochs: slot.grace_epochs(),
            is_fenced: self.is_fenced,
            certificate: slot.certificate(),
        }
    }
}

/// Judges one slot; `None` when there is nothing to say. Also returns the owner's lag in epochs.
///
/// Cost for an owner that beat since the last scan: four relaxed loads from its line.
pub fn judge(
    slot: &Slot,
    scan: &Scan,
    seen: &mut Seen,
    witness: &impl Witness,
) -> (u64, Option<Finding>) {
    let claim = slot.peek_claim();
    match claim.state() {
        Some(ClaimState::Live) => judge_live(slot, claim, scan, seen, witness),
        Some(ClaimState::Free) => (0, None),
        _ if scan.mode == Mode::DeathsOnly => (0, None),
        Some(ClaimState::Released) => (0, judge_released(slot, claim, seen)),
        Some(ClaimState::Claiming) => judge_claiming(slot, claim, scan, seen, witness),
        None => {
            let verdict = Verdict::Quarantined;
            (
                0,
                Some(Finding::new(claim, verdict, Evidence::UNKNOWN, seen)),
            )
        }
    }
}

fn judge_live(
    slot: &Slot,
    claim: Claim,
    scan: &Scan,
    seen: &mut Seen,
    witness: &impl Witness,
) -> (u64, Option<Finding>) {
    let generation = claim.generation();
    let certificate = slot.certificate();
    if scan.mode == Mode::DeathsOnly && certificate != Certificate::Died {
        return (0, None);
    }
    let beat = slot.peek_beat();
    let has_beaten_since_the_last = beat
        .epoch_of(generation)
        .is_some_and(|beat| beat >= scan.forgave_epoch && is_plausible(beat, scan.epoch));
    if scan.mode == Mode::TickAfterPause && has_beaten_since_the_last {
        *seen = Seen {
            claim,
            beat: Beat::new(generation, scan.epoch),
        };
    }
    let lag_epochs = seen.lag(claim, scan.epoch, beat.epoch_of(generation));
    let is_fenced = slot
        .peek_decision(generation)
        .is_some_and(|work| work.is_fenced());
    // Disarmed and LIVE is an owner about to release, or one of an earlier boot: worth a look at once.
    let may_live = matches!(certificate, Certificate::Armed | Certificate::None);
    if lag_epochs == 0 && !is_fenced && may_live {
        return (0, None);
    }
    let grace_epochs = grace(slot, scan);
    let is_late = lag_epochs > grace_epochs;
    // Of who was fenced, is handed back and lives on nothing is to be told: to ask after all of them each time
    // would take the time in which others are fenced.
    let is_asked = is_late && (scan.is_round || !is_settled(slot, generation));
    let is_suspect = match certificate {
        Certificate::Died => true,
        Certificate::Armed => is_asked,
        Certificate::None | Certificate::Disarmed => is_asked || witness.lock_is_free(),
    };
    // The second look at the claim is also what orders the certificate behind it: without that, a mark
    // of the former owner could be read beside the claim of the present one.
    if !is_suspect || !slot.still_claimed_as(claim) {
        return (lag_epochs, None);
    }
    let evidence = match slot.certificate() {
        // The kernel's word; that the lock is still held only delays the slot's reuse.
        Certificate::Died => Evidence {
            proof: Proof::Gone,
            source: ProofSource::Certificate,
        },
        // Late in the scan nobody is fenced for silence, and of a death the mark will tell.
        Certificate::Armed if !witness.on_time() => Evidence::UNKNOWN,
        _ => witness.examine(claim),
    };
    let is_dead = evidence.proof == Proof::Gone;
    // Neither dead nor late: within the grace, or fenced by itself and about to release.
    if !is_dead && !is_late {
        return (lag_epochs, None);
    }
    let silent = Verdict::Silent {
        lag_epochs,
        grace_epochs,
    };
    let verdict = if is_dead { Verdict::Died } else { silent };
    let finding = Finding::new(claim, verdict, evidence, seen);
    if !is_dead && !is_fenced && scan.on_silence == OnSilence::ReportOnly {
        return (lag_epochs, Some(finding));
    }
    let still_true = slot.still_claimed_as(claim)
        && (is_dead || is_fenced || (slot.peek_beat() == beat && witness.on_time()))
        && witness.still_primary();
    if !still_true {
        return (lag_epochs, None);
    }
    let FenceOutcome::Fenced(units) = slot.fence(generation) else {
        return (lag_epochs, None);
    };
    if is_dead {
        witness.record_death(claim);
    }
    (lag_epochs, Some(finding.fenced(slot, units)))
}

fn judge_released(slot: &Slot, claim: Claim, seen: &Seen) -> Option<Finding> {
    if slot.units(claim.generation()).is_empty() {
        return None;
    }
    // The owner fenced its words before it released; fencing again only reads them.
    match slot.fence(claim.generation()) {
        FenceOutcome::Fenced(units) if !units.is_empty() => {
            let finding = Finding::new(claim, Verdict::Released, Evidence::UNKNOWN, seen);
            Some(finding.fenced(slot, units))
        }
        _ => None,
    }
}

fn judge_claiming(
    slot: &Slot,
    claim: Claim,
    scan: &Scan,
    seen: &mut Seen,
    witness: &impl Witness,
) -> (u64, Option<Finding>) {
    let lag_epochs = seen.lag(claim, scan.epoch, None);
    // A claimer holds the lock for as long as it is claiming; the claim is read again after the lock.
    if witness.lock_is_free()
        && let evidence = witness.examine(claim)
        && evidence.proof == Proof::Gone
        && slot.still_claimed_as(claim)
    {
        witness.record_death(claim);
        let finding = Finding::new(claim, Verdict::Died, evidence, seen);
        return (lag_epochs, Some(finding));
    }
    let verdict = Verdict::InTransition { pid: claim.pid() };
    let is_late = lag_epochs > grace(slot, scan);
    (
        lag_epochs,
        is_late.then(|| Finding::new(claim, verdict, Evidence::UNKNOWN, seen)),
    )
}

/// Whether the owner of `generation` is fenced in all words, and all of it is acknowledged. That is never undone.
fn is_settled(slot: &Slot, generation: u32) -> bool {
    let work = slot.peek_work();
    work[0].is_acked()
        && work
            .iter()
            .all(|work| work.generation() == generation && work.is_fenced() && work.units() == 0)
}

/// Whether it can be a beat: further ahead of the scan is damage.
fn is_plausible(beat: u64, now: u64) -> bool {
    beat <= now + PLAUSIBLY_AHEAD_EPOCHS
}

/// How many epochs the owner may miss; at least one.
fn grace(slot: &Slot, scan: &Scan) -> u64 {
    match slot.grace_epochs() {
        0 => scan.grace_epochs.max(1),
        own => u64::from(own),
    }
}

impl Default for Seen {
    /// Nobody was seen.
    fn default() -> Self {
        Self {
            claim: Claim::FREE,
            beat: Beat::from_bits(0),
        }
    }
}

impl Seen {
    /// Takes in what the slot shows now; the epochs since the last accepted beat.
    fn lag(&mut self, claim: Claim, now: u64, beat: Option<u64>) -> u64 {
        if self.claim.generation() != claim.generation() {
            self.beat = Beat::new(claim.generation(), now);
        }
        self.claim = claim;
        if let Some(beat) = beat
            && beat > self.beat.epoch()
            && is_plausible(beat, now)
        {
            self.beat = self.beat.at(beat.min(now));
        }
        now.saturating_sub(self.beat.epoch())
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    fn live(generation: u32) -> Claim {
        Claim::new(7, generation, ClaimState::Live)
    }

    #[test]
    fn the_first_sight_of_a_generation_is_a_beat_and_a_lower_beat_is_ignored() {
        let mut seen = Seen::default();
        assert_eq!(seen.lag(live(1), 10, Some(2)), 0);
        assert_eq!(seen.lag(live(1), 12, Some(2)), 2);
        assert_eq!(seen.lag(live(1), 13, Some(12)), 1);
        assert_eq!(seen.lag(live(1), 14, Some(11)), 2);
        assert_eq!(seen.lag(live(2), 20, None), 0);
    }

    #[test]
    fn a_beat_ahead_of_the_scan_is_no_lag_and_far_ahead_is_no_beat() {
        let mut seen = Seen::default();
        assert_eq!(seen.lag(live(1), 10, Some(10)), 0);
        assert_eq!(seen.lag(live(1), 11, Some(14)), 0);
        assert_eq!(seen.lag(live(1), 13, Some(1 << 40)), 2);
    }
}
