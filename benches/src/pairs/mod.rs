//! All pairs, by subject.

mod beat;
mod mark;
mod observed;
mod pool;
mod register;
mod scan;
pub mod snapshot;
mod units;

use crate::pair::{Goal, Pair};

/// Every pair, in the order in which they are told.
pub fn all() -> impl Iterator<Item = &'static Pair> {
    [
        beat::PAIRS,
        snapshot::PAIRS,
        mark::PAIRS,
        register::PAIRS,
        scan::PAIRS,
        units::PAIRS,
        observed::PAIRS,
        pool::PAIRS,
    ]
    .into_iter()
    .flatten()
}

/// Scans of tables of rising sizes, all alive, each beside its floor.
#[must_use]
pub fn growing_scans() -> [(usize, Pair); 6] {
    let pair = |run| Pair {
        name: "scan, all alive",
        beside: "the loads alone",
        goal: Goal::Told,
        run,
    };
    [
        (64, pair(|stage| scan::beside_floor(stage, 64))),
        (256, pair(|stage| scan::beside_floor(stage, 256))),
        (1_024, pair(|stage| scan::beside_floor(stage, 1_024))),
        (4_096, pair(|stage| scan::beside_floor(stage, 4_096))),
        (16_384, pair(|stage| scan::beside_floor(stage, 16_384))),
        (65_536, pair(|stage| scan::beside_floor(stage, 65_536))),
    ]
}

/// Registering into the last free slot of tables of rising sizes, each beside an empty table of 64.
#[must_use]
pub fn growing_registers() -> [(usize, Pair); 6] {
    let pair = |run| Pair {
        name: "register, unregister: last free",
        beside: "of 64 free",
        goal: Goal::Told,
        run,
    };
    [
        (64, pair(|stage| register::last_free(stage, 64))),
        (256, pair(|stage| register::last_free(stage, 256))),
        (1_024, pair(|stage| register::last_free(stage, 1_024))),
        (4_096, pair(|stage| register::last_free(stage, 4_096))),
        (16_384, pair(|stage| register::last_free(stage, 16_384))),
        (65_536, pair(|stage| register::last_free(stage, 65_536))),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_pairs_are_of_the_same_name_beside_the_same() {
        let names: BTreeSet<_> = all().map(|pair| (pair.name, pair.beside)).collect();
        assert_eq!(names.len(), all().count());
    }
}
