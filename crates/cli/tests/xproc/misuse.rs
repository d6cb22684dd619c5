//! Calls that ask for what cannot be had: stale handles, numbers out of range, words at their maximum,
//! a full table.

use std::path::Path;

use bumpless_failover::{AcknowledgeError, FailoverWatchdog, OnSilence, Standing, Verdict};
use bumpless_heartbeat::{CAPACITY_MAX, HeartbeatError, HeartbeatTable, Label, Observed, SlotRole};
use bumpless_substrate::claim::{Claim, ClaimState, GENERATION_MAX};
use bumpless_substrate::region::RegionError;

use crate::child::Child;
use crate::death::{assert_acknowledged, scan_until_reported};
use crate::layout::{BEAT, CLAIM, EPOCH, FENCED, LEASE, SEQ, TableFile, WORK};
use crate::scene::Scene;

/// Asserts that a call was refused with this variant.
macro_rules! assert_refused {
    ($call:expr, $wanted:pat $(if $guard:expr)?) => {{
        let result = $call;
        assert!(
            matches!(result, Err($wanted) $(if $guard)?),
            "{}: {result:?}, not {}",
            stringify!($call),
            stringify!($wanted)
        );
    }};
}

/// 19.
pub fn stale_handle_writes_nothing(scene: &Scene) {
    let table = scene.table(1);
    let stale = table.register(std::process::id()).expect("a free slot");
    table.unregister(stale).expect("ours");
    let mut owner = scene.worker();
    owner.done("mark 5");
    owner.stop();
    let file = TableFile::open(&scene.table_path(), 1);
    let before = file.bytes();
    assert_refused!(table.beat(stale), HeartbeatError::StaleHandle { .. });
    let label = Label::new("x").expect("a label");
    assert_refused!(
        table.mark_in_flight(stale, 6_u8),
        HeartbeatError::StaleHandle { .. }
    );
    assert_refused!(
        table.clear_in_flight(stale, 5_u8),
        HeartbeatError::StaleHandle { .. }
    );
    assert_refused!(
        table.set_role(stale, SlotRole::Coordinator),
        HeartbeatError::StaleHandle { .. }
    );
    assert_refused!(
        table.set_grace(stale, 9),
        HeartbeatError::StaleHandle { .. }
    );
    assert_refused!(
        table.set_label(stale, label),
        HeartbeatError::StaleHandle { .. }
    );
    assert_refused!(table.unregister(stale), HeartbeatError::StaleHandle { .. });
    let text = table.beat(stale).expect_err("stale").to_string();
    let wanted = format!("pid {}, generation 2, Live", owner.pid());
    assert!(
        text.contains("generation 1 is over") && text.contains(&wanted),
        "{text}"
    );
    assert!(file.bytes() == before, "something was written");
    owner.resume();
    owner.done("beat");
    owner.done("complete 5");
    owner.done("unregister");
}

/// 20.
pub fn numbers_out_of_range_are_typed_errors(scene: &Scene) {
    let table = scene.table(4);
    let us = std::process::id();
    assert_refused!(table.register(0), HeartbeatError::ZeroPid);
    let foreign = scene.member();
    let result = table.register(foreign.pid());
    assert_refused!(result, HeartbeatError::ForeignPid { wanted, .. } if wanted == us);
    let handle = table.register(us).expect("a free slot");
    units_out_of_range_are_refused(&table, handle);
    capacities_out_of_range_are_refused(&scene.path("other"));

    let larger = HeartbeatTable::create(scene.path("larger"), 64).expect("a table");
    let handles: Vec<_> = (0..5).map(|_| larger.register(us).expect("free")).collect();
    let beyond = HeartbeatError::SlotOutOfRange {
        slot: 4,
        capacity: 4,
    };
    let found = table.beat(handles[4]).expect_err("beyond the table");
    assert_eq!(found.to_string(), beyond.to_string());
    assert_refused!(
        table.mark_in_flight(handles[0], 1_u8),
        HeartbeatError::StaleHandle { .. }
    );
    assert_eq!(table.observe(4_usize), Observed::Vacant);
    assert_eq!(table.snapshot(usize::MAX), None);
    assert!(table.cells(4).is_none());

    let watchdog = FailoverWatchdog::with_grace(&table, 0).on_silence(OnSilence::ReportOnly);
    let lags: Vec<_> = (0..3).map(|_| watchdog.scan()).collect();
    assert!(lags[1].suspects.is_empty(), "{:?}", lags[1]);
    let silent = Verdict::Silent {
        lag_epochs: 2,
        grace_epochs: 1,
    };
    assert_eq!(
        lags[2].suspects[0].verdict, silent,
        "a grace of 0 counts as 1"
    );
    assert_acknowledged(&watchdog, lags[2].suspects[0]);
    let others = FailoverWatchdog::new(&larger);
    assert_refused!(
        others.clear_dead_bitmap(lags[2].suspects[0]),
        AcknowledgeError::OtherTable { .. }
    );
}

fn units_out_of_range_are_refused(table: &HeartbeatTable, handle: bumpless_heartbeat::Handle) {
    let mark = |unit: i32| table.mark_in_flight(handle, unit);
    for unit in [128, 1_000, -1, i32::MAX, i32::MIN] {
        let wanted = i128::from(unit);
        let result = mark(unit);
        assert_refused!(result, HeartbeatError::UnitOutOfRange { unit } if unit == wanted);
    }
    assert_refused!(
        table.clear_in_flight(handle, u64::MAX),
        HeartbeatError::UnitOutOfRange { .. }
    );
    mark(127).expect("the last unit");
    assert_refused!(mark(127), HeartbeatError::AlreadyMarked { unit: 127, .. });
    let unmarked = table.clear_in_flight(handle, 126_u8);
    assert_refused!(unmarked, HeartbeatError::NotMarked { unit: 126, .. });
    table.clear_in_flight(handle, 127_u8).expect("marked");
}

fn capacities_out_of_range_are_refused(path: &Path) {
    for capacity in [0, CAPACITY_MAX + 1, 1 << 32, 1 << 58, usize::MAX] {
        let results = [
            HeartbeatTable::create(path, capacity),
            HeartbeatTable::reset(path, capacity),
        ];
        for result in results {
            assert_refused!(result, HeartbeatError::Capacity { found, limit: CAPACITY_MAX, .. }
                if found == capacity);
        }
    }
    let missing = HeartbeatTable::attach(path);
    assert_refused!(
        missing,
        HeartbeatError::Region(RegionError::NotFound { .. })
    );
}

/// 30.
pub fn words_at_their_maximum_wrap_or_retire(scene: &Scene) {
    drop(scene.table(5));
    let file = TableFile::open(&scene.table_path(), 5);
    let given_back = |slot, generation| {
        let claim = Claim::new(7, generation, ClaimState::Released);
        file.set_word(file.slot(slot) + CLAIM, claim.bits());
        for word in 0..4 {
            let fenced = FENCED | u64::from(generation) << 32;
            file.set_word(file.slot(slot) + WORK + 8 * word, fenced);
        }
    };
    given_back(0, GENERATION_MAX);
    given_back(1, GENERATION_MAX - 1);
    file.set_word(file.slot(1) + SEQ, u64::MAX);
    file.set_word(file.slot(1) + BEAT, u64::MAX);
    // Both counts of deaths at their maximum: none waits.
    let counts = u64::from(GENERATION_MAX - 1) << 36 | ((1 << 36) - 1);
    file.set_word(file.verdict(1), counts);
    given_back(2, 0xffff);
    file.set_word(file.slot(2) + SEQ, u64::MAX - 1);
    file.set_word(EPOCH, (1 << 48) - 1);
    file.set_word(LEASE, u64::MAX);

    let table = HeartbeatTable::attach(scene.table_path()).expect("a table");
    let mut last = scene.worker();
    let snapshot = table.snapshot(1_usize).expect("the first free slot");
    let owner = (last.pid(), GENERATION_MAX);
    assert_eq!((snapshot.pid, snapshot.generation), owner);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    // The lease names a holder that nobody can ask; it hangs, and the term wraps.
    let standings: Vec<_> = (0..10).map(|_| watchdog.scan().standing).collect();
    assert_eq!(standings.last(), Some(&Standing::Primary));
    let _others = [scene.worker(), scene.worker()];
    let text = scene.member().refused("register", "TableFull");
    assert!(text.contains("slot 0: retired"), "{text}");
    for unit in 0..3 {
        last.done("beat");
        last.done(&format!("mark {unit}"));
    }
    // The clock stands still, so nobody is late any more; who dies is dead all the same.
    for _ in 0..10 {
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
        assert_eq!(report.new_global_epoch, (1 << 48) - 1);
    }
    last.kill();
    let (slot, _) = scan_until_reported(&watchdog, last.pid());
    let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
    assert_eq!((taken.units.len(), taken.deaths), (3, 1));
    let text = scene.member().refused("register", "TableFull");
    assert!(text.contains("slot 1: retired"), "{text}");
}

/// 31.
pub fn full_table_names_the_oldest_owners(scene: &Scene) {
    let table = scene.table(64);
    let mut workers = Vec::new();
    for unit in 0..64 {
        let mut worker = scene.worker();
        worker.done(&format!("mark {unit}"));
        table.tick_global_epoch().expect("a writable table");
        workers.push(worker);
    }
    workers.iter().for_each(Child::stop);
    let file = TableFile::open(&scene.table_path(), 64);
    let before = file.bytes();
    let text = scene.member().refused("register", "TableFull");
    assert!(file.bytes() == before, "something was written");
    assert!(text.contains("all 64 slots are taken; oldest: "), "{text}");
    let mut rest = text.as_str();
    for worker in &workers[..8] {
        let (_, behind) = rest
            .split_once(&format!(": pid {}", worker.pid()))
            .unwrap_or_else(|| panic!("{} not in its turn: {text}", worker.pid()));
        rest = behind;
    }
    for (unit, worker) in workers.iter_mut().enumerate() {
        worker.resume();
        worker.done("beat");
        worker.done(&format!("complete {unit}"));
    }
}
