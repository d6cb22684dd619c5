//! All pairs, by subject.

#[cfg(feature = "plot")]
mod barrier;
mod beat;
mod every;
mod mark;
mod observed;
mod pool;
mod register;
mod scan;
pub mod snapshot;
mod standby;
mod units;

#[cfg(feature = "plot")]
use anyhow::Result;

use crate::pair::Pair;
#[cfg(feature = "plot")]
use crate::pair::Stage;

/// Every pair, in the order in which they are told.
pub fn all() -> impl Iterator<Item = &'static Pair> {
    [
        beat::PAIRS,
        snapshot::PAIRS,
        mark::PAIRS,
        every::PAIRS,
        register::PAIRS,
        scan::PAIRS,
        units::PAIRS,
        observed::PAIRS,
        standby::PAIRS,
        pool::PAIRS,
    ]
    .into_iter()
    .flatten()
}

/// A figure beside its floor, at rising sizes.
#[cfg(feature = "plot")]
#[derive(Debug)]
pub struct Growing {
    /// The name of the drawing.
    pub name: &'static str,
    /// What is measured.
    pub what: &'static str,
    /// What it is compared with.
    pub beside: &'static str,
    /// What the size counts.
    pub unit: &'static str,
    /// At which sizes.
    pub sizes: &'static [usize],
    /// Gives both to the stage, at that size.
    pub run: fn(&mut dyn Stage, usize) -> Result<()>,
}

/// Everything of which it is drawn how it grows.
#[cfg(feature = "plot")]
pub const GROWING: [Growing; 6] = [
    Growing {
        name: "beat",
        what: "a beat of every owner",
        beside: "one load, one store",
        unit: "slots",
        sizes: &[64, 256, 1_024, 4_096, 16_384, 65_536],
        run: every::beats,
    },
    Growing {
        name: "scan",
        what: "one scan, all alive",
        beside: "the loads alone",
        unit: "slots",
        sizes: &[64, 256, 1_024, 4_096, 16_384, 65_536],
        run: scan::beside_floor,
    },
    Growing {
        name: "register",
        what: "register + unregister, last free slot",
        beside: "of 64 free",
        unit: "slots",
        sizes: &[64, 256, 1_024, 4_096, 16_384, 65_536],
        run: register::last_free,
    },
    Growing {
        name: "snapshot",
        what: "snapshot of every slot",
        beside: "the loads alone",
        unit: "slots",
        sizes: &[64, 256, 1_024, 4_096, 16_384, 65_536],
        run: every::snapshots,
    },
    Growing {
        name: "checkpoint",
        what: "checkpoint, sent and adopted",
        beside: "one copy",
        unit: "bytes",
        sizes: &[64, 512, 4_096, 32_768, 262_144, 1_048_576],
        run: standby::checkpoint,
    },
    Growing {
        name: "barrier",
        what: "one epoch of a barrier, of threads",
        beside: "std::sync::Barrier",
        unit: "members",
        sizes: &[2, 4, 8, 16, 32, 64],
        run: barrier::epochs,
    },
];

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
