//! Going through the units of a set.

use std::hint::black_box;

use anyhow::Result;
use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::UnitSet;

use crate::pair::{Goal, Pair, Stage, in_a_row};

const SIX: u128 = 1 << 3 | 1 << 17 | 1 << 40 | 1 << 71 | 1 << 99 | 1 << 126;
const SIXTY_FOUR: u128 = u128::MAX / 3;

pub const PAIRS: &[Pair] = &[
    Pair {
        name: "iterate 6 units",
        beside: "a loop of trailing zeros",
        goal: Goal::AtMost(1.5),
        run: |stage| iterate(stage, SIX),
    },
    Pair {
        name: "iterate 64 units",
        beside: "a loop of trailing zeros",
        goal: Goal::AtMost(1.5),
        run: |stage| iterate(stage, SIXTY_FOUR),
    },
];

fn iterate(stage: &mut dyn Stage, bits: u128) -> Result<()> {
    let set = UnitSet::from_bits(bits);
    let words = [bits as u64, (bits >> 64) as u64];
    stage.compare(
        &mut in_a_row(|| {
            for unit in FailoverWatchdog::iter_in_flight_bits(*black_box(&set)) {
                black_box(unit.index());
            }
        }),
        &mut in_a_row(|| {
            for (word, base) in black_box(&words).iter().zip([0, 64]) {
                let mut rest = *word;
                while rest != 0 {
                    black_box(base + rest.trailing_zeros());
                    rest &= rest - 1;
                }
            }
        }),
    )
}
