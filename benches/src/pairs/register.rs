//! Registering and giving back: into an empty table, and into the last free slot.

use std::fs::File;
use std::hint::black_box;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use bumpless_heartbeat::HeartbeatTable;

use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::folder::Folder;
use crate::locks::ByteLock;
use crate::mutexes::{Lock, Record, Whole};
use crate::pair::{Goal, Pair, Stage, in_a_row};

const EMPTY: &str = "register, unregister: 64 free";

pub const PAIRS: &[Pair] = &[
    Pair {
        name: "register, unregister",
        beside: "8 locked CAS, a lock and an unlock call",
        goal: Goal::AtMost(1.0),
        run: beside_floor,
    },
    Pair {
        name: "register, unregister: last free of 64",
        beside: EMPTY,
        goal: Goal::Told,
        run: |stage| last_free(stage, 64),
    },
    Pair {
        name: "register, unregister: last free of 1,024",
        beside: EMPTY,
        goal: Goal::AtMost(2.0),
        run: |stage| last_free(stage, 1_024),
    },
    Pair {
        name: "register, unregister: last free of 65,536",
        beside: EMPTY,
        goal: Goal::AtMost(2.0),
        run: |stage| last_free(stage, 65_536),
    },
    Pair {
        name: "register, unregister: 1,024 free",
        beside: EMPTY,
        goal: Goal::Told,
        run: |stage| all_free(stage, 1_024),
    },
    Pair {
        name: "register, unregister: 65,536 free",
        beside: EMPTY,
        goal: Goal::Told,
        run: |stage| all_free(stage, 65_536),
    },
    Pair {
        name: "register, unregister",
        beside: "Mutex<table>, std",
        goal: Goal::Told,
        run: beside_mutex::<Mutex<_>>,
    },
    Pair {
        name: "register, unregister",
        beside: "Mutex<table>, parking_lot",
        goal: Goal::Told,
        run: beside_mutex::<parking_lot::Mutex<_>>,
    },
];

/// A table in which all slots are free.
struct Empty(Fleet);

impl Empty {
    fn new(capacity: usize) -> Result<Self> {
        let empty = Self(Fleet::new(capacity, 0, 1)?);
        // The first starts the keeper.
        require_slot(empty.0.table(), 0)?;
        Ok(empty)
    }

    fn batch(&self) -> impl FnMut(u64) -> Result<f64> {
        registrations(self.0.table())
    }
}

/// Takes a slot and gives it back.
fn registrations(table: &HeartbeatTable) -> impl FnMut(u64) -> Result<f64> {
    let pid = std::process::id();
    move |times| {
        let mut all_done = true;
        let ns = in_a_row(|| {
            let registered = table.register(black_box(pid));
            all_done &= registered
                .and_then(|handle| table.unregister(handle))
                .is_ok();
        })(times);
        ensure!(all_done, "a registration was refused");
        ns
    }
}

/// Whoever registers next gets that slot.
fn require_slot(table: &HeartbeatTable, slot: usize) -> Result<()> {
    let handle = table.register(std::process::id())?;
    let found = handle.slot();
    table.unregister(handle)?;
    ensure!(found == slot, "slot {found}, not {slot}");
    Ok(())
}

pub fn last_free(stage: &mut dyn Stage, capacity: usize) -> Result<()> {
    let fleet = Fleet::new(capacity, capacity - 1, 1)?;
    let newcomer = fleet.open()?;
    require_slot(&newcomer, capacity - 1)?;
    let empty = Empty::new(64)?;
    stage.compare(&mut registrations(&newcomer), &mut empty.batch())?;
    require_slot(&newcomer, capacity - 1)
}

fn all_free(stage: &mut dyn Stage, capacity: usize) -> Result<()> {
    let (large, empty) = (Empty::new(capacity)?, Empty::new(64)?);
    stage.compare(&mut large.batch(), &mut empty.batch())?;
    require_slot(large.0.table(), 0)
}

fn beside_mutex<L: Lock<(u64, Vec<Record>)>>(stage: &mut dyn Stage) -> Result<()> {
    let empty = Empty::new(64)?;
    let mutexes = Whole::<L>::new(64);
    mutexes.leave(0);
    stage.compare(
        &mut empty.batch(),
        &mut in_a_row(|| mutexes.register_and_leave(black_box(1))),
    )
}

fn beside_floor(stage: &mut dyn Stage) -> Result<()> {
    let empty = Empty::new(64)?;
    let folder = Folder::in_memory()?;
    let file = File::create(folder.path().join("lock")).context("a file to lock")?;
    let lock = ByteLock::new(file);
    let lines = Lines::new(1);
    let (mut value, mut all_done) = (0, true);
    stage.compare(
        &mut empty.batch(),
        &mut in_a_row(|| {
            all_done &= lock.take();
            for _ in 0..8 {
                all_done &= black_box(&lines).exchange(value, value + 1);
                value += 1;
            }
            all_done &= lock.give_back();
        }),
    )?;
    ensure!(all_done, "a lock or an exchange was refused");
    Ok(())
}
