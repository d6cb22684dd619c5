//! Registering and giving back: into an empty table, and into the last free slot.

use std::fs::File;
use std::hint::black_box;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use bumpless_heartbeat::HeartbeatTable;

use crate::fleet::{Fleet, in_memory_folder};
use crate::floor::Lines;
use crate::locks::ByteLock;
use crate::mutexes::Whole;
use crate::pair::{Goal, Pair, Stage, in_a_row};

pub const PAIRS: &[Pair] = &[
    Pair {
        name: "register, unregister",
        beside: "8 locked CAS, a lock and an unlock call",
        goal: Goal::AtMost(1.0),
        run: beside_floor,
    },
    Pair {
        name: "register, unregister: last free of 1,024",
        beside: "register, unregister: 64 free",
        goal: Goal::AtMost(2.0),
        run: |stage| last_free(stage, 1_024),
    },
    Pair {
        name: "register, unregister: last free of 65,536",
        beside: "register, unregister: 64 free",
        goal: Goal::AtMost(2.0),
        run: |stage| last_free(stage, 65_536),
    },
    Pair {
        name: "register, unregister",
        beside: "Mutex<table>, std",
        goal: Goal::Told,
        run: |stage| {
            let empty = Empty::new()?;
            let mutexes = Whole::<Mutex<_>>::new(64);
            mutexes.leave(0);
            stage.compare(
                &mut in_a_row(|| empty.once()),
                &mut in_a_row(|| mutexes.register_and_leave(black_box(1))),
            )
        },
    },
];

/// A table of 64 free slots, and our process id.
struct Empty(Fleet, u32);

impl Empty {
    fn new() -> Result<Self> {
        let empty = Self(Fleet::new(64, 0, 1)?, std::process::id());
        // The first starts the keeper.
        let first = empty.0.table().register(std::process::id())?;
        ensure!(first.slot() == 0, "not the first slot");
        empty.0.table().unregister(first)?;
        Ok(empty)
    }

    fn once(&self) {
        register_and_leave(self.0.table(), self.1);
    }
}

/// Takes a slot and gives it back.
#[inline]
fn register_and_leave(table: &HeartbeatTable, pid: u32) {
    let done = table
        .register(black_box(pid))
        .and_then(|handle| table.unregister(handle));
    black_box(done.is_ok());
}

pub fn last_free(stage: &mut dyn Stage, capacity: usize) -> Result<()> {
    let fleet = Fleet::new(capacity, capacity - 1, 1)?;
    let newcomer = fleet.open()?;
    let handle = newcomer.register(std::process::id())?;
    ensure!(handle.slot() == capacity - 1, "not the last slot");
    newcomer.unregister(handle)?;
    let empty = Empty::new()?;
    stage.compare(
        &mut in_a_row(|| register_and_leave(&newcomer, empty.1)),
        &mut in_a_row(|| empty.once()),
    )?;
    let handle = newcomer.register(std::process::id())?;
    ensure!(handle.slot() == capacity - 1, "not the last slot any more");
    Ok(())
}

fn beside_floor(stage: &mut dyn Stage) -> Result<()> {
    let empty = Empty::new()?;
    let folder = in_memory_folder()?;
    let file = File::create(folder.path().join("lock")).context("a file to lock")?;
    let lock = ByteLock::new(file);
    let lines = Lines::new(1);
    let (mut value, mut all_done) = (0, true);
    stage.compare(
        &mut in_a_row(|| empty.once()),
        &mut in_a_row(|| {
            all_done &= lock.take();
            for _ in 0..8 {
                all_done &= black_box(&lines).exchange(value, value + 1);
                value += 1;
            }
            all_done &= lock.give_back();
            black_box(all_done);
        }),
    )?;
    ensure!(all_done, "a lock was refused");
    Ok(())
}
