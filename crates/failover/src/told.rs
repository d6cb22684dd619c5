//! The deaths that the last scan told of, told again as long as nothing about them has changed.
//!
//! Contract: repeats exactly what [`judge`](crate::judge::judge) would find of an owner that the kernel has
//! marked and that is fenced: nothing but an acknowledgement or the next owner changes anything about it,
//! and each changes a word that is compared. Any other finding is made anew by every scan.
//!
//! ```text
//!   judged: died, by certificate, fenced ──remember──▶ told ──all words as they were──▶ told again
//!                                                       └──a word has changed──▶ judged
//! ```

use bumpless_heartbeat::slot::WORK_WORDS;
use bumpless_heartbeat::{Certificate, HeartbeatSnapshot, SlotCells};
use bumpless_substrate::claim::Claim;
use bumpless_substrate::proof::ProofSource;
use bumpless_substrate::work::Work;

use crate::judge::Seen;
use crate::report::SlotRef;
use crate::verdict::Verdict;

/// How many deaths are remembered at most; more are judged by every scan.
const TOLD_MAX: usize = 256;

/// One death, and all that was decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    claim: Claim,
    work: [Work; WORK_WORDS],
    entry: (SlotRef, HeartbeatSnapshot),
}

/// What was told of, by slot; in a scan, how far it has come.
#[derive(Debug, Default)]
pub(crate) struct ToldDeaths {
    deaths: Vec<Told>,
    next: usize,
}

impl ToldDeaths {
    /// A scan begins: it asks for slots in rising order, and for all whose owners are marked.
    pub(crate) fn begin(&mut self) {
        self.next = 0;
    }

    /// What the last scan told of the slot's owner, if it still holds for a holder of the lease in `term`.
    #[inline]
    pub(crate) fn again(
        &mut self,
        slot: u32,
        cells: SlotCells<'_>,
        seen: &Seen,
        term: u32,
    ) -> Option<&(SlotRef, HeartbeatSnapshot)> {
        if self.deaths.get(self.next)?.slot() < slot {
            self.forget_before(slot);
        }
        let index = self.next;
        let told = self.deaths.get(index)?;
        if told.slot() > slot {
            return None;
        }
        if !told.holds(cells, seen, term) {
            self.forget_before(slot + 1);
            return None;
        }
        self.next += 1;
        Some(&self.deaths.get(index)?.entry)
    }

    /// Forgets what has changed, or was not asked for any more: acknowledged and recycled, say.
    #[cold]
    #[inline(never)]
    fn forget_before(&mut self, slot: u32) {
        let rest = self.deaths.get(self.next..).unwrap_or_default();
        let count = rest.iter().take_while(|told| told.slot() < slot).count();
        self.deaths.drain(self.next..self.next + count);
    }

    /// Takes in what the scan has just told of a slot, if that can be told again.
    pub(crate) fn remember(
        &mut self,
        cells: SlotCells<'_>,
        claim: Claim,
        seen: &Seen,
        entry: &(SlotRef, HeartbeatSnapshot),
    ) {
        let (told, snapshot) = entry;
        let work = cells.slot.peek_work();
        let beat = cells.slot.peek_beat().epoch_of(claim.generation());
        let is_final = told.verdict == Verdict::Died
            && told.evidence.source == ProofSource::Certificate
            && snapshot.is_fenced
            // A beat ahead of the scan would count for more at the next one.
            && beat.is_none_or(|epoch| epoch <= seen.beat.epoch())
            // Read behind the words above: units only ever leave a fenced word, so none left in between.
            && cells.slot.units(claim.generation()) == told.units;
        if is_final && self.deaths.len() < TOLD_MAX {
            let told = Told {
                claim,
                work,
                entry: *entry,
            };
            self.deaths.insert(self.next, told);
            self.next += 1;
        }
    }
}

impl Told {
    fn slot(&self) -> u32 {
        self.entry.0.slot
    }

    /// Whether every word says what it said. No ordering: the judgement had it, and a word that still says
    /// the same has nothing new to be read behind it.
    #[inline(always)]
    fn holds(&self, cells: SlotCells<'_>, seen: &Seen, term: u32) -> bool {
        let (told, snapshot) = &self.entry;
        let (slot, deaths) = (cells.slot, cells.verdict.deaths());
        slot.peek_claim() == self.claim
            && slot.certificate() == Certificate::Died
            && slot.peek_work() == self.work
            && (deaths.waiting(), deaths.recorded()) == (told.deaths, told.deaths_recorded)
            && (seen.claim, seen.beat.epoch()) == (self.claim, snapshot.last_seen_epoch)
            && slot.peek_role() == snapshot.role
            && slot.grace_epochs() == snapshot.grace_epochs
            && told.term == term
    }
}

#[cfg(test)]
mod tests {
    use bumpless_heartbeat::identity_line::{IdentityLine, Registration};
    use bumpless_heartbeat::slot::Slot;
    use bumpless_heartbeat::verdict_line::VerdictLine;
    use bumpless_heartbeat::{Profile, UnitSet};
    use bumpless_substrate::layout::Shared;
    use bumpless_substrate::proof::Evidence;
    use bumpless_substrate::sync::Ordering;

    use super::*;
    use crate::judge::{Mode, OnSilence, Scan, Witness, judge};

    const DIED: u32 = 0xc000_0001;
    const TERM: u32 = 3;
    const EPOCH: u64 = 100;
    const UNIT_5: u128 = 1 << 5;
    const UNIT_40: u128 = 1 << 40;

    /// An owner with two units in flight that the kernel has marked.
    struct Corpse {
        slot: Slot,
        identity: IdentityLine,
        verdict: VerdictLine,
        seen: Seen,
    }

    /// What may happen to it between two scans.
    type Change = fn(&mut Corpse);

    /// Nobody has to be asked for a proof.
    struct Certified<'a>(&'a VerdictLine);

    impl Witness for Certified<'_> {
        fn lock_is_free(&self) -> bool {
            false
        }
        fn examine(&self, _: Claim) -> Evidence {
            Evidence::UNKNOWN
        }
        fn still_primary(&self) -> bool {
            true
        }
        fn on_time(&self) -> bool {
            true
        }
        fn record_death(&self, claim: Claim) {
            self.0.record_death(claim);
        }
    }

    impl Corpse {
        fn new() -> Self {
            let corpse = Self {
                slot: Slot::zeroed(),
                identity: IdentityLine::zeroed(),
                verdict: VerdictLine::zeroed(),
                seen: Seen::default(),
            };
            corpse.live(Claim::FREE);
            corpse
        }

        /// The next owner, dead as well.
        fn live(&self, before: Claim) -> Claim {
            let claiming = self.slot.claim(before, 7).expect("as it was");
            let registration = Registration {
                profile: Profile::default(),
                epoch: EPOCH - 1,
                start_ticks: 1,
                pid_namespace: 1,
                time_namespace: 1,
            };
            self.slot.fill(claiming, &self.identity, &registration);
            let claim = self.slot.publish(claiming).expect("claiming");
            for unit in [5_u8, 40] {
                let unit = unit.try_into().expect("a unit");
                self.slot.mark(claim, unit).expect("our slot");
            }
            self.slot.keeper_word().store(DIED, Ordering::Relaxed);
            claim
        }

        /// Somebody takes over this one unit.
        fn acknowledge(&self, unit: u128) {
            let generation = self.slot.peek_claim().generation();
            let taken = self.slot.acknowledge(generation, UnitSet::from_bits(unit));
            assert_eq!(taken.units, UnitSet::from_bits(unit));
        }

        fn cells(&self) -> SlotCells<'_> {
            SlotCells {
                slot: &self.slot,
                identity: &self.identity,
                verdict: &self.verdict,
            }
        }

        /// Judges it, and what a report would say.
        fn judged(&mut self, index: u32) -> (SlotRef, HeartbeatSnapshot) {
            let scan = Scan {
                mode: Mode::Tick,
                epoch: EPOCH,
                grace_epochs: 3,
                on_silence: OnSilence::Reclaim,
                is_round: false,
                forgave_epoch: 0,
            };
            let mut seen = self.seen;
            let (_, finding) = judge(&self.slot, &scan, &mut seen, &Certified(&self.verdict));
            self.seen = seen;
            let finding = finding.expect("dead");
            let deaths = self.verdict.deaths();
            let slot_ref = SlotRef {
                slot: index,
                generation: finding.claim.generation(),
                pid: finding.claim.pid(),
                verdict: finding.verdict,
                evidence: finding.evidence,
                units: finding.units,
                deaths: deaths.waiting(),
                deaths_recorded: deaths.recorded(),
                term: TERM,
                creation_id: 9,
            };
            (slot_ref, finding.snapshot(&self.slot))
        }
    }

    /// Judged, and told of in the slots of these indices.
    fn told(corpse: &mut Corpse, indices: &[u32]) -> ToldDeaths {
        let mut told = ToldDeaths::default();
        for index in indices {
            let entry = corpse.judged(*index);
            let claim = corpse.slot.peek_claim();
            told.remember(corpse.cells(), claim, &corpse.seen, &entry);
        }
        told.begin();
        told
    }

    /// Whether the slot's death is told again by the next scan.
    fn is_told(told: &mut ToldDeaths, corpse: &Corpse, index: u32, term: u32) -> bool {
        told.again(index, corpse.cells(), &corpse.seen, term)
            .is_some_and(|(slot, _)| slot.slot == index)
    }

    #[test]
    fn a_death_is_told_again_as_it_was_judged() {
        let mut corpse = Corpse::new();
        let mut deaths = told(&mut corpse, &[4]);
        for _ in 0..3 {
            let entry = corpse.judged(4);
            assert_eq!(
                deaths.again(4, corpse.cells(), &corpse.seen, TERM),
                Some(&entry)
            );
            deaths.begin();
        }
    }

    #[test]
    fn whatever_changes_about_a_death_has_it_judged_again() {
        let changes: [(&str, Change); 7] = [
            ("the first word's units", |corpse| {
                corpse.acknowledge(UNIT_5);
            }),
            ("the second word's units", |corpse| {
                corpse.acknowledge(UNIT_40);
            }),
            ("the deaths", |corpse| {
                assert_eq!(corpse.verdict.acknowledge(1), 1);
            }),
            ("the mark", |corpse| {
                corpse.slot.keeper_word().store(1, Ordering::Relaxed);
            }),
            ("what was seen", |corpse| {
                corpse.seen.beat = corpse.seen.beat.at(EPOCH + 1);
            }),
            ("the grace", |corpse| corpse.slot.set_grace(9)),
            ("the owner", |corpse| {
                let dead = corpse.slot.peek_claim();
                corpse.acknowledge(UNIT_5);
                corpse.acknowledge(UNIT_40);
                corpse.live(dead);
            }),
        ];
        for (what, change) in changes {
            let mut corpse = Corpse::new();
            let mut deaths = told(&mut corpse, &[4]);
            change(&mut corpse);
            assert!(!is_told(&mut deaths, &corpse, 4, TERM), "{what}");
            assert!(deaths.deaths.is_empty(), "{what}");
        }
        let mut corpse = Corpse::new();
        let mut deaths = told(&mut corpse, &[4]);
        assert!(!is_told(&mut deaths, &corpse, 4, TERM + 1));
    }

    #[test]
    fn a_beat_ahead_of_the_scan_is_judged_by_every_scan() {
        let mut corpse = Corpse::new();
        let claim = corpse.slot.peek_claim();
        corpse.slot.beat(claim, EPOCH + 2).expect("not fenced yet");
        assert!(told(&mut corpse, &[4]).deaths.is_empty());
    }

    #[test]
    fn units_that_left_since_the_judgement_are_not_told_again() {
        let mut corpse = Corpse::new();
        let entry = corpse.judged(4);
        let claim = corpse.slot.peek_claim();
        corpse.acknowledge(UNIT_5);
        let mut deaths = ToldDeaths::default();
        deaths.remember(corpse.cells(), claim, &corpse.seen, &entry);
        assert!(deaths.deaths.is_empty());
    }

    #[test]
    fn slots_that_are_not_asked_for_any_more_are_forgotten_and_the_others_are_not() {
        let mut corpse = Corpse::new();
        let mut deaths = told(&mut corpse, &[1, 4, 9]);
        assert!(!is_told(&mut deaths, &corpse, 0, TERM));
        assert!(is_told(&mut deaths, &corpse, 1, TERM));
        assert!(is_told(&mut deaths, &corpse, 9, TERM));
        deaths.begin();
        assert!(!is_told(&mut deaths, &corpse, 4, TERM));
        let entry = corpse.judged(4);
        deaths.remember(
            corpse.cells(),
            corpse.slot.peek_claim(),
            &corpse.seen,
            &entry,
        );
        assert!(is_told(&mut deaths, &corpse, 9, TERM));
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let mut corpse = Corpse::new();
        let all: Vec<u32> = (0..TOLD_MAX as u32 + 2).collect();
        assert_eq!(told(&mut corpse, &all).deaths.len(), TOLD_MAX);
    }
}
