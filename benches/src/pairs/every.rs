//! One operation for each owner in turn, in tables of rising sizes: from the first cache to what is in none.
//!
//! The floors do the same to lines laid out alike.

use std::hint::black_box;

use anyhow::{Result, ensure};
use bumpless_heartbeat::Unit;

use super::snapshot::look;
use crate::fleet::Fleet;
use crate::floor::Lines;
use crate::pair::{Pair, Stage, in_a_row};

const LOOKS: &str = "as often the loads alone";
const STORES: &str = "as often one load, one store";
const SWAPS: &str = "as often two locked CAS";

pub const PAIRS: &[Pair] = &[
    Pair::told("a beat of each of 64", STORES, |stage| beats(stage, 64)),
    Pair::told("a beat of each of 1,024", STORES, |stage| {
        beats(stage, 1_024)
    }),
    Pair::told("a beat of each of 65,536", STORES, |stage| {
        beats(stage, 65_536)
    }),
    Pair::told("a snapshot of each of 64", LOOKS, |stage| {
        snapshots(stage, 64)
    }),
    Pair::told("a snapshot of each of 1,024", LOOKS, |stage| {
        snapshots(stage, 1_024)
    }),
    Pair::told("a snapshot of each of 65,536", LOOKS, |stage| {
        snapshots(stage, 65_536)
    }),
    Pair::told("mark, complete of each of 64", SWAPS, |stage| {
        marks(stage, 64)
    }),
    Pair::told("mark, complete of each of 1,024", SWAPS, |stage| {
        marks(stage, 1_024)
    }),
    Pair::told("mark, complete of each of 65,536", SWAPS, |stage| {
        marks(stage, 65_536)
    }),
];

/// Beats of all owners.
pub fn beats(stage: &mut dyn Stage, slots: usize) -> Result<()> {
    let fleet = Fleet::new(slots, slots, 1)?;
    let (table, lines) = (fleet.table(), Lines::new(slots));
    let mut all_beat = true;
    stage.compare(
        &mut in_a_row(|| {
            for handle in &fleet.handles {
                all_beat &= black_box(table).beat(*handle).is_ok();
            }
        }),
        &mut in_a_row(|| (0..slots).for_each(|index| black_box(&lines).beat(index))),
    )?;
    ensure!(all_beat, "a beat was refused");
    Ok(())
}

/// Snapshots of all slots of a full table.
pub fn snapshots(stage: &mut dyn Stage, slots: usize) -> Result<()> {
    let fleet = Fleet::new(slots, slots, 1)?;
    let (table, lines) = (fleet.table(), Lines::new(slots));
    stage.compare(
        &mut in_a_row(|| (0..slots).for_each(|slot| look(black_box(table), slot))),
        &mut in_a_row(|| (0..slots).for_each(|index| black_box(&lines).look(index))),
    )
}

/// One unit of each owner, marked and completed.
fn marks(stage: &mut dyn Stage, slots: usize) -> Result<()> {
    let fleet = Fleet::new(slots, slots, 1)?;
    let (table, lines) = (fleet.table(), Lines::new(slots));
    let unit = Unit::try_from(5_u8)?;
    let (mut all_done, mut all_won) = (true, true);
    stage.compare(
        &mut in_a_row(|| {
            for handle in &fleet.handles {
                all_done &= black_box(table).mark_in_flight(*handle, unit).is_ok();
                all_done &= black_box(table).clear_in_flight(*handle, unit).is_ok();
            }
        }),
        &mut in_a_row(|| {
            for index in 0..slots {
                all_won &= black_box(&lines).exchange_own(index);
            }
        }),
    )?;
    ensure!(all_done && all_won, "a unit or an exchange was refused");
    Ok(())
}
