//! How an integrator goes on from one node to the other, by the cycles that both ran.
//!
//! Contract: where nobody knows to a cycle when the old node was heard for the last time, as its fault took
//! effect late on a busy machine, or as clocks differ. Otherwise the report judges, by moments. Where no node
//! left out a cycle, only one step is right.

use crate::pair::{Offer, Pair};

/// Cycles before the change of the writer from which the old one may have been heard for the last time.
const UNHEARD_CYCLES_MAX: u64 = 20;

/// So many of these cycles lie behind the one and not behind the other.
pub fn ran(cycles: &[u64], after: u64, until: u64) -> usize {
    let ran = cycles.iter();
    ran.filter(|cycle| (after + 1..=until).contains(*cycle))
        .count()
}

/// The numbers of the cycles that a node ran.
pub fn cycles_of(pair: &Pair, node: u8) -> Vec<u64> {
    let cycles = pair.cycles(node).into_iter();
    cycles.map(|cycle| cycle.number).collect()
}

/// The integrator goes on by a step in each cycle that its node runs, from where the old writer was in the
/// cycle in which it was heard for the last time; a late node leaves cycles out.
pub fn goes_on(pair: &Pair, last: &Offer, first: &Offer) -> bool {
    let [old, new] = [last, first].map(|offer| cycles_of(pair, offer.node));
    let newest = last.cycle.min(first.cycle);
    let mut heard = newest.saturating_sub(UNHEARD_CYCLES_MAX)..=newest;
    let stepped = first.value - last.value;
    heard.any(|heard| {
        let [new, old] = [(&new, first), (&old, last)]
            .map(|(cycles, offer)| ran(cycles, heard, offer.cycle) as f64);
        new - old == stepped
    })
}
