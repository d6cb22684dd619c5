//! Owners that fall silent, and watchdogs that are killed or paused in the middle of their work.

use std::time::{Duration, Instant};

use bumpless_failover::judge::{Mode, OnSilence, Scan, Seen, Witness, judge};
use bumpless_failover::{
    AcknowledgeError, FailoverWatchdog, ReclaimReport, SlotRef, Standing, Verdict,
};
use bumpless_heartbeat::{Handle, HeartbeatError, HeartbeatTable, SlotCells, UnitSet};
use bumpless_substrate::claim::Claim;
use bumpless_substrate::locks::LockState;
use bumpless_substrate::proof::Evidence;
use rustix::process::Signal;

use crate::child::{Child, await_until};
use crate::death::{assert_acknowledged, scan_until_reported, units};
use crate::layout::{FENCED, TableFile, WORK};
use crate::roles;
use crate::scene::Scene;
use crate::tally::Tally;

/// 4.
pub fn stopped_worker_is_fenced_and_cannot_commit(scene: &Scene) {
    // For the watchdog and two workers, and no more.
    let table = scene.table(3);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let (mut bystander, mut worker) = (scene.worker(), scene.worker());
    let mut newcomer = scene.member();
    worker.done("mark 5");
    assert!(watchdog.scan().is_empty());
    worker.stop();
    let mut scans = 0;
    let (slot, snapshot) = loop {
        bystander.done("beat");
        scans += 1;
        if let Some(reported) = watchdog.scan().dead_slots.first() {
            break *reported;
        }
        assert!(scans < 50, "not reported");
    };
    let Verdict::Silent {
        lag_epochs,
        grace_epochs: 3,
    } = slot.verdict
    else {
        panic!("{slot}");
    };
    assert!(
        lag_epochs == scans && lag_epochs > 3,
        "{slot} in scan {scans}"
    );
    assert_eq!(slot.pid, worker.pid());
    assert_eq!(snapshot.in_flight_bitmap, units(&[5]));
    newcomer.refused("register", "TableFull");
    let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
    assert_eq!((taken.units, taken.deaths), (units(&[5]), 0));
    // Late is not gone: with nothing left to hand back the slot is still its owner's.
    newcomer.refused("register", "TableFull");
    worker.resume();
    worker.refused("beat", "Fenced");
    worker.refused("mark 6", "Fenced");
    worker.refused("complete 5", "Fenced");
    newcomer.refused("register", "TableFull");
    bystander.done("beat");
    assert!(watchdog.scan().is_empty(), "acknowledged");
    worker.done("unregister");
    worker.done("register");
    worker.done("mark 5");
    worker.done("complete 5");
    bystander.done("beat");
    assert!(watchdog.scan().is_empty());
}

/// 6.
pub fn units_marked_between_scan_and_acknowledgement_are_never_lost(scene: &Scene) {
    const ROUNDS: u32 = 100_000;
    let table = scene.table(MARKER_SLOTS + 1);
    let watchdog = FailoverWatchdog::with_grace(&table, 1);
    let arguments = [scene.table_path().into(), ROUNDS.to_string().into()];
    let mut worker = Child::start("marker", &arguments);
    let mut acknowledged = Tally::default();
    let mut finished: Vec<SlotRef> = Vec::new();
    let mut report = ReclaimReport::default();
    let mut lost = None;
    for scans in 0_u64.. {
        watchdog.scan_into(&mut report);
        for old in finished.drain(..) {
            // By now the worker may have marked the same units for its next generation.
            let again = watchdog.clear_dead_bitmap(old);
            assert!(again.is_err(), "{old}: {again:?}");
        }
        for (slot, _) in &report.dead_slots {
            // Now and then one unit alone: the others are reported again.
            let one = slot.units.iter().next().filter(|_| scans % 4 == 0);
            let taken = match one {
                Some(unit) => watchdog.acknowledge_unit(*slot, unit),
                None => watchdog.clear_dead_bitmap(*slot),
            };
            match taken {
                Ok(taken) => {
                    assert_eq!(taken.deaths, 0, "{slot}");
                    acknowledged.add(slot.slot, slot.generation, taken.units);
                    finished.extend(Some(*slot).filter(|slot| slot.units == taken.units));
                }
                // Idle, fenced, and registered again since the scan.
                Err(AcknowledgeError::AlreadyAcknowledged { .. }) => {
                    assert!(slot.units.is_empty(), "{slot}: units {:?}", slot.units);
                }
                Err(other) => panic!("{slot}: {other}"),
            }
        }
        if lost.is_some() && report.is_empty() {
            break;
        }
        lost = lost.or_else(|| worker.answer_so_far());
        end_turn_after(scans);
    }
    assert_eq!(lost, Some(acknowledged.as_answer()));
    assert!(acknowledged.count() > u64::from(ROUNDS), "{acknowledged:?}");
}

/// How long a watchdog that hangs may keep the lease, on a busy machine.
const TAKEOVER_LIMIT: Duration = Duration::from_secs(60);

/// In how many slots the marker works.
const MARKER_SLOTS: usize = 48;

/// Lets the other one have this processor, now and then: on a busy machine a turn comes again only when all
/// others have had theirs.
fn end_turn_after(passes: u64) {
    const PASSES_PER_TURN: u64 = 64;
    if passes.is_multiple_of(PASSES_PER_TURN) {
        std::thread::yield_now();
    }
}

/// Marks and completes in as many slots as it can get, without a beat, until it is fenced in one;
/// gives that back and takes another. Answers with the tally of the units that it lost.
pub fn marker(arguments: &[String]) {
    let [path, rounds] = arguments else {
        panic!("table and rounds");
    };
    let table = HeartbeatTable::attach(path).expect("the table");
    let mut lost = Tally::default();
    let mut held: Vec<(Handle, u128)> = Vec::new();
    let mut give_back = |(handle, left): (Handle, u128)| {
        let (slot, generation) = (handle.slot() as u32, handle.generation());
        lost.add(slot, generation, UnitSet::from_bits(left));
        table.unregister(handle).expect("ours still");
    };
    let (mut fenced, mut lost_count, mut unit, mut passes) = (0, 0, 0_usize, 0);
    let rounds = roles::number(rounds);
    // Where the other one is always the quicker one, few units are lost with each slot: then it goes on.
    while fenced < rounds || lost_count <= rounds {
        if held.len() < MARKER_SLOTS {
            match table.register(std::process::id()) {
                Ok(handle) => held.push((handle, 0)),
                Err(HeartbeatError::TableFull { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
        for index in (0..held.len()).rev() {
            unit = (unit + 37) % 128;
            let (handle, left) = &mut held[index];
            let changed = if *left & (1 << unit) == 0 {
                table.mark_in_flight(*handle, unit)
            } else {
                table.clear_in_flight(*handle, unit)
            };
            match changed {
                Ok(()) => *left ^= 1 << unit,
                Err(HeartbeatError::Fenced { .. }) => {
                    fenced += 1;
                    let late = held.swap_remove(index);
                    lost_count += late.1.count_ones() as usize;
                    give_back(late);
                }
                Err(other) => panic!("{other}"),
            }
        }
        passes += 1;
        end_turn_after(passes);
    }
    held.into_iter().for_each(&mut give_back);
    roles::answer(&Ok(lost.to_string()));
}

/// 8.
pub fn watchdog_killed_half_way_loses_nothing(scene: &Scene) {
    let table = scene.table(64);
    half_a_fence_is_finished_by_the_next(scene, &table);
    a_killed_reporter_is_replaced_and_a_paused_one_is_refused(scene, &table);
    killed_at_any_moment(scene, &table);
}

fn half_a_fence_is_finished_by_the_next(scene: &Scene, table: &HeartbeatTable) {
    let mut worker = scene.worker();
    worker.done("mark 1 33 65 97");
    worker.stop();
    // What a watchdog leaves that was killed after the first of its four compare-and-swaps.
    let file = TableFile::open(&scene.table_path(), 64);
    let word_0 = file.slot(0) + WORK;
    file.set_word(word_0, file.word(word_0) | FENCED);
    worker.resume();
    worker.refused("beat", "Fenced");
    worker.refused("complete 1", "Fenced");
    // Not lost yet, and so still the owner's alone.
    worker.done("complete 33");
    worker.done("mark 34");
    let watchdog = FailoverWatchdog::with_grace(table, 3);
    let (slot, scans) = scan_until_reported(&watchdog, worker.pid());
    assert!(
        scans > 4,
        "in scan {scans}: within the grace of its first sight"
    );
    assert_eq!(slot.units, units(&[1, 34, 65, 97]));
    worker.refused("complete 34", "Fenced");
    let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
    assert_eq!(taken.units, slot.units);
    worker.done("unregister");
}

fn a_killed_reporter_is_replaced_and_a_paused_one_is_refused(
    scene: &Scene,
    table: &HeartbeatTable,
) {
    let mut worker = scene.worker();
    worker.done("mark 0 127");
    worker.kill();
    let mut reporters = [scene.member(), scene.member()];
    let [killed, paused] = &mut reporters;
    killed.done("watch 3");
    let reported = killed.done("scan");
    killed.kill();
    paused.done("watch 3");
    assert_eq!(
        paused.done("scan"),
        reported,
        "the same names at once in the next term"
    );
    paused.stop();
    // The primary is not gone but hangs: found out after four of its intervals.
    let watchdog = FailoverWatchdog::with_grace(table, 3);
    await_until(TAKEOVER_LIMIT, "a takeover", || {
        watchdog.scan().standing == Standing::Primary
    });
    let (slot, _) = scan_until_reported(&watchdog, worker.pid());
    let names: Vec<String> = slot
        .units
        .iter()
        .map(|unit| slot.unit_name(unit).to_string())
        .collect();
    assert_eq!(reported, format!("Primary {}", names.join(" ")));
    let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
    assert_eq!(taken.units, units(&[0, 127]));
    paused.resume();
    paused.refused("acknowledge", "StaleTerm");
    assert_eq!(paused.done("scan"), "Standby");
    assert_acknowledged(&watchdog, slot);
}

fn killed_at_any_moment(scene: &Scene, table: &HeartbeatTable) {
    const KILLS: u64 = 400;
    let mut worker = scene.member();
    for kill in 0..KILLS {
        let registered = worker.done("register");
        let slot = registered.split(' ').next().map_or(0, roles::number);
        worker.done("mark 3 40 80 120");
        let acknowledges = kill % 2 == 1;
        let mut scanner = Child::start("scanner", &[scene.table_path().into()]);
        scanner.done(if acknowledges { "reclaim" } else { "report" });
        let start = Instant::now();
        while start.elapsed() < Duration::from_nanos(kill * 400) {
            std::hint::spin_loop();
        }
        scanner.kill();
        let watchdog = FailoverWatchdog::with_grace(table, 1);
        let mut acknowledged = UnitSet::EMPTY;
        while table
            .snapshot(slot)
            .is_none_or(|s| !s.is_fenced || !s.in_flight_bitmap.is_empty())
        {
            for (slot, _) in watchdog.scan().dead_slots {
                let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
                assert_eq!(taken.units, slot.units);
                if slot.pid == worker.pid() {
                    assert!(acknowledged.is_empty(), "kill {kill}: twice");
                    acknowledged = taken.units;
                }
            }
        }
        // Whoever acknowledges goes from the last word to the first.
        let all = [3, 40, 80, 120];
        let left = acknowledged.len() as usize;
        assert!(
            acknowledges || left == all.len(),
            "kill {kill}: {acknowledged:?}"
        );
        assert_eq!(acknowledged, units(&all[..left]), "kill {kill}");
        worker.refused("beat", "Fenced");
        worker.done("unregister");
    }
}

/// Scans without a pause, and acknowledges what it finds or not, until it is killed.
pub fn scanner(arguments: &[String]) {
    let table = HeartbeatTable::attach(&arguments[0]).expect("the table");
    let watchdog = FailoverWatchdog::with_grace(&table, 1);
    let crate::lines::Next::Line(order) = roles::commands().next(None) else {
        return;
    };
    roles::answer(&Ok(String::new()));
    loop {
        let report = watchdog.scan();
        for (slot, _) in report.dead_slots.iter().filter(|_| order == "reclaim") {
            let _ = watchdog.clear_dead_bitmap(*slot);
        }
    }
}

/// 39.
pub fn paused_watchdog_does_not_touch_the_next_owner(scene: &Scene) {
    let table = scene.table(1);
    // Paused between judging and fencing.
    let owner = scene.worker();
    owner.stop();
    let mut judge = Child::start("pausing judge", &[scene.table_path().into()]);
    judge.await_stopped();
    owner.kill();
    let mut heir = scene.worker();
    heir.done("mark 9");
    judge.resume();
    assert_eq!(judge.done("say"), "None");
    heir.done("beat");
    heir.done("complete 9");
    // Paused between hand-back and acknowledgement.
    heir.done("mark 5");
    heir.kill();
    let mut paused = scene.member();
    paused.done("watch 3");
    assert!(paused.done("scan").ends_with("/5"));
    paused.stop();
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let (slot, _) = scan_until_reported(&watchdog, heir.pid());
    assert_eq!(slot.deaths, 2, "the first owner's too");
    let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
    assert_eq!((taken.units, taken.deaths), (units(&[5]), 2));
    let mut third = scene.worker();
    third.done("mark 5");
    assert_acknowledged(&watchdog, slot);
    paused.resume();
    paused.refused("acknowledge", "StaleTerm");
    third.done("beat");
    third.done("complete 5");
}

/// Judges slot 0 until it is about to fence it, stops itself there, and then says what came of it.
pub fn pausing_judge(arguments: &[String]) {
    let table = HeartbeatTable::attach(&arguments[0]).expect("the table");
    let cells = table.cells(0).expect("a slot");
    let witness = PausingWitness {
        table: &table,
        cells,
        asked: false.into(),
    };
    let mut seen = Seen::default();
    while !witness.asked.get() {
        let scan = Scan {
            mode: Mode::Tick,
            epoch: table.tick_global_epoch().expect("a writable table"),
            grace_epochs: 3,
            on_silence: OnSilence::Reclaim,
            is_round: false,
            forgave_epoch: 0,
        };
        let (_, finding) = judge(cells.slot, &scan, &mut seen, &witness);
        if witness.asked.get() {
            let _ = roles::commands().next(None);
            roles::answer(&Ok(format!("{finding:?}")));
        }
    }
}

/// Tells the truth, late: it stops its process at the last question before a fence.
struct PausingWitness<'a> {
    table: &'a HeartbeatTable,
    cells: SlotCells<'a>,
    asked: std::cell::Cell<bool>,
}

impl Witness for PausingWitness<'_> {
    fn lock_is_free(&self) -> bool {
        self.table.lock_state(0).expect("a lock") == LockState::Free
    }

    fn examine(&self, claim: Claim) -> Evidence {
        self.table.examine(0, claim)
    }

    fn on_time(&self) -> bool {
        true
    }

    fn still_primary(&self) -> bool {
        self.asked.set(true);
        let us = rustix::process::getpid();
        rustix::process::kill_process(us, Signal::STOP).expect("a stop");
        true
    }

    fn record_death(&self, claim: Claim) {
        self.table.record_death(self.cells, claim);
    }
}
