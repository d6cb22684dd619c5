//! The judgement of one owner by itself: how often it asks the world, and what a pause excuses.

use std::cell::Cell;

use bumpless_failover::Verdict;
use bumpless_failover::judge::{Finding, Mode, OnSilence, Scan, Seen, Witness, judge};
use bumpless_heartbeat::slot::Slot;
use bumpless_heartbeat::{Handle, HeartbeatTable, UnitSet};
use bumpless_substrate::claim::Claim;
use bumpless_substrate::proof::{Evidence, Proof, ProofSource};
use bumpless_substrate::sync::Ordering;

use crate::scene::{Scene, register, units};

/// Named by a thread that lives.
const ARMED: u32 = 0x8000_0001;
const LATE: u64 = 100;

const LIVES: Evidence = Evidence {
    proof: Proof::Alive,
    source: ProofSource::Pid,
};

/// An owner that is silent and lives, and who is asked about it.
struct Silent {
    table: HeartbeatTable,
    handle: Handle,
    seen: Seen,
    asked: Cell<u32>,
    is_on_time: bool,
}

impl Silent {
    fn new(scene: &Scene) -> Self {
        let table = scene.table(1);
        let handle = register(&table, &[40]);
        let mut silent = Self {
            table,
            handle,
            seen: Seen::default(),
            asked: Cell::new(0),
            is_on_time: true,
        };
        // The portable tier has no keepers. Relaxed: one thread.
        silent.slot().keeper_word().store(ARMED, Ordering::Relaxed);
        assert_eq!(silent.judged(1, false), None, "the first sight is a beat");
        silent
    }

    fn slot(&self) -> &Slot {
        self.table.cells(self.handle.slot()).expect("ours").slot
    }

    fn judged(&mut self, epoch: u64, is_round: bool) -> Option<Finding> {
        let (lag_epochs, finding) = self.judged_by(&Scan {
            is_round,
            ..scan(Mode::Tick, epoch)
        });
        assert_eq!(lag_epochs, epoch - 1);
        finding
    }

    fn judged_by(&mut self, scan: &Scan) -> (u64, Option<Finding>) {
        let mut seen = self.seen;
        let judged = judge(self.slot(), scan, &mut seen, &*self);
        self.seen = seen;
        judged
    }

    /// What was found must be silence; its units, and what is known of the owner's life.
    #[track_caller]
    fn silent(&mut self, epoch: u64) -> (UnitSet, Evidence) {
        let finding = self.judged(epoch, false).expect("something to tell");
        assert!(matches!(finding.verdict, Verdict::Silent { .. }) && finding.is_fenced);
        (finding.units, finding.evidence)
    }

    fn acknowledge(&self, units: UnitSet) {
        let taken = self.slot().acknowledge(self.handle.generation(), units);
        assert_eq!(taken.units, units);
    }
}

fn scan(mode: Mode, epoch: u64) -> Scan {
    Scan {
        mode,
        epoch,
        grace_epochs: 3,
        on_silence: OnSilence::Reclaim,
        is_round: false,
        forgave_epoch: 0,
    }
}

impl Witness for Silent {
    fn lock_is_free(&self) -> bool {
        unreachable!("nobody asks for the lock of who is certified")
    }

    fn examine(&self, _: Claim) -> Evidence {
        self.asked.set(self.asked.get() + 1);
        LIVES
    }

    fn still_primary(&self) -> bool {
        true
    }

    fn on_time(&self) -> bool {
        self.is_on_time
    }

    fn record_death(&self, _: Claim) {
        unreachable!("it lives")
    }
}

#[test]
fn who_is_fenced_and_handed_back_and_lives_is_asked_after_by_each_round_only() {
    let scene = Scene::new();
    let mut owner = Silent::new(&scene);
    for scan in 0..3 {
        assert_eq!(owner.silent(LATE + scan), (units(&[40]), LIVES));
    }
    assert_eq!(owner.asked.get(), 3);
    owner.acknowledge(units(&[40]));
    for scan in 3..9 {
        assert_eq!(owner.judged(LATE + scan, false), None);
    }
    assert_eq!(owner.asked.get(), 3);
    let finding = owner.judged(LATE + 9, true).expect("what a round finds");
    assert!(finding.is_acknowledged && finding.units.is_empty());
    assert_eq!(owner.asked.get(), 4);
}

#[test]
fn units_or_a_notice_that_nobody_took_are_told_of_again() {
    let scene = Scene::new();
    let mut owner = Silent::new(&scene);
    assert_eq!(owner.silent(LATE).0, units(&[40]));
    // The notice alone.
    owner.acknowledge(UnitSet::EMPTY);
    assert_eq!(owner.silent(LATE + 1).0, units(&[40]));
    let scene = Scene::new();
    let mut owner = Silent::new(&scene);
    owner
        .table
        .clear_in_flight(owner.handle, 40_u8)
        .expect("our slot");
    assert_eq!(owner.silent(LATE).0, UnitSet::EMPTY);
    assert_eq!(owner.silent(LATE + 1).0, UnitSet::EMPTY);
    assert_eq!(owner.asked.get(), 2);
}

#[test]
fn late_in_a_scan_nobody_is_asked_after_or_fenced_and_who_was_fenced_is_told_of() {
    let scene = Scene::new();
    let mut owner = Silent::new(&scene);
    owner.is_on_time = false;
    assert_eq!(owner.judged(LATE, false), None);
    owner.table.beat(owner.handle).expect("not fenced");
    owner.is_on_time = true;
    assert_eq!(owner.silent(LATE + 1), (units(&[40]), LIVES));
    owner.is_on_time = false;
    assert_eq!(owner.silent(LATE + 2), (units(&[40]), Evidence::UNKNOWN));
    assert_eq!(owner.asked.get(), 1);
}

#[test]
fn one_silence_is_forgiven_one_pause() {
    let scene = Scene::new();
    let mut owner = Silent::new(&scene);
    let after_pause = |epoch, forgave_epoch| Scan {
        forgave_epoch,
        ..scan(Mode::TickAfterPause, epoch)
    };
    let beat = |owner: &Silent, epoch| {
        let live = owner.slot().peek_claim();
        owner.slot().beat(live, epoch).expect("not fenced");
    };
    // However long it was.
    assert_eq!(owner.judged_by(&after_pause(LATE, 0)), (0, None));
    // It has not beaten since: the next pause excuses nothing, and the silence goes on.
    assert_eq!(owner.judged_by(&after_pause(LATE + 1, LATE)), (1, None));
    // With a beat in between it is another silence.
    beat(&owner, LATE + 1);
    assert_eq!(owner.judged_by(&scan(Mode::Tick, LATE + 4)), (3, None));
    assert_eq!(owner.judged_by(&after_pause(LATE + 9, LATE + 1)), (0, None));
    // A beat of long after now is none.
    beat(&owner, 1 << 40);
    for lag_epochs in 1..=3 {
        let scan = after_pause(LATE + 9 + lag_epochs, LATE + 8 + lag_epochs);
        assert_eq!(owner.judged_by(&scan), (lag_epochs, None));
    }
    let (lag_epochs, finding) = owner.judged_by(&after_pause(LATE + 13, LATE + 12));
    assert_eq!(
        (lag_epochs, finding.is_some_and(|found| found.is_fenced)),
        (4, true)
    );
}
