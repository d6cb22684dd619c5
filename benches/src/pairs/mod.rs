//! All pairs, by subject.

mod beat;
mod mark;
mod register;
mod scan;
mod snapshot;
mod units;

use crate::pair::Pair;

/// Every pair, in the order in which they are told.
pub fn all() -> impl Iterator<Item = &'static Pair> {
    [
        beat::PAIRS,
        snapshot::PAIRS,
        mark::PAIRS,
        register::PAIRS,
        scan::PAIRS,
        units::PAIRS,
    ]
    .into_iter()
    .flatten()
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
