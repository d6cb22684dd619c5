//! Liveness, as a check of each state at the end of the watched cycles: from here nothing goes wrong any
//! more, and so many cycles later the pair drives and is redundant.
//!
//! Whatever was still on its way is once lost, and once delivered late, with the first cycle. A node that
//! is down is once started anew, and once left down: then the other one drives alone. With a file as the
//! authority it does so only if it drove or was qualified and knows of the last epoch that drove; behind
//! a partner that has taken over and died, it cannot tell that death from a broken link.

use bumpless_standby::node::State;

use crate::outcomes::Outcomes;
use crate::pair::{Message, Pair};
use crate::search::Search;
use crate::setups::Authority;

/// Cycles from the last fault to a redundant pair: both notice silence, agree, synchronise, echo.
pub const SETTLE_TICKS: u64 = 12;

/// Whether the pair settles from this state on, if it is one at the end.
pub fn settles(search: &Search, pair: &Pair) -> bool {
    if !search.is_at_end(pair) || pair.ghosts.violated().is_some() || !search.is_new_end(pair) {
        return true;
    }
    let mut lossy = pair.clone();
    lossy.fresh = [Vec::new(), Vec::new()];
    lossy.late.clear();
    let delivers = || {
        let mut pair = pair.clone();
        for message in std::mem::take(&mut pair.late) {
            match (message.get(), message.get().receiver()) {
                (Message::Request(request), _) => {
                    pair.reach_actuator(request, true, &search.outcomes);
                }
                (_, Some(index)) => pair.fresh[index].push(message),
                _ => {}
            }
        }
        pair
    };
    survives(search, lossy.clone())
        && revives(search, lossy)
        && (pair.late.is_empty() || revives(search, delivers()))
}

fn revives(search: &Search, mut pair: Pair) -> bool {
    for index in 0..2 {
        if pair.sides[index].node.is_none() {
            pair.sides[index].start();
        }
    }
    becomes(search, pair, Pair::is_redundant)
}

/// With one node down for good.
fn survives(search: &Search, pair: Pair) -> bool {
    let Some(index) = (0..2).find(|index| pair.sides[1 - index].node.is_none()) else {
        return true;
    };
    if search.setup.authority == Authority::File && !is_abreast(&pair, index) {
        return true;
    }
    becomes(search, pair, |pair| pair.state(index) == Some(State::Solo))
}

/// Within the time for it, and for a cycle more, nothing that must never happen on the way.
fn becomes(search: &Search, mut pair: Pair, is_there: impl Fn(&Pair) -> bool) -> bool {
    let mut cycles_there = 0;
    for _ in 0..SETTLE_TICKS {
        pair.tick_perfectly(&search.setup, &Outcomes::default());
        let is_good = is_there(&pair) && drives_now(&pair);
        cycles_there = if is_good { cycles_there + 1 } else { 0 };
        if pair.ghosts.violated().is_some() || cycles_there == 2 {
            break;
        }
    }
    cycles_there == 2 && pair.ghosts.violated().is_none()
}

/// Drives or could, and knows of the last epoch that did.
fn is_abreast(pair: &Pair, index: usize) -> bool {
    let able = [State::Qualified, State::Primary, State::Solo];
    let node = pair.sides[index].node.as_ref();
    node.map(|node| node.get().status()).is_some_and(|status| {
        able.contains(&status.state) && status.epoch >= pair.ghosts.applied().0
    })
}

/// The plant got this cycle's or the last cycle's output.
fn drives_now(pair: &Pair) -> bool {
    let latest = pair.sides[0].ticks.max(pair.sides[1].ticks);
    pair.ghosts.applied().1 + 1 >= latest
}
