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

/// The property's name.
pub const SETTLES: &str = "settles";
/// Cycles from the last fault to a redundant pair: both notice silence, agree, synchronise, echo.
pub const SETTLE_TICKS: u64 = 12;

/// Whether the pair settles from this state on, if it is one at the end.
pub fn settles(search: &Search, pair: &Pair) -> bool {
    if !search.is_at_end(pair) || pair.ghosts.violated().is_some() || !search.is_new_end(pair) {
        return true;
    }
    ways_on(search, pair)
        .into_iter()
        .all(|(_, pair, wanted)| goes_on(search, pair, wanted, |_| {}))
}

/// Prints how the pair goes on, cycle for cycle, where it does not settle.
pub fn tell(search: &Search, pair: &Pair) {
    for (way, pair, wanted) in ways_on(search, pair) {
        if goes_on(search, pair.clone(), wanted, |_| {}) {
            continue;
        }
        println!("    {way}, the pair is not {wanted:?} after {SETTLE_TICKS} cycles:");
        goes_on(search, pair, wanted, |pair| {
            let states = [0, 1].map(|index| pair.state(index));
            println!("      {states:?} {:?}", pair.ghosts);
        });
    }
}

/// What the pair must become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Redundant,
    Driven,
}

/// How it may go on from here without a fault.
fn ways_on(search: &Search, pair: &Pair) -> Vec<(&'static str, Pair, Wanted)> {
    let mut lossy = pair.clone();
    lossy.fresh = [Vec::new(), Vec::new()];
    lossy.late.clear();
    let mut ways = Vec::new();
    let up = [0, 1].map(|index| pair.sides[index].node.is_some());
    if let Some(index) = (0..2).find(|index| up[*index] && !up[1 - index])
        && (search.setup.authority == Authority::Witness || is_abreast(pair, index))
    {
        ways.push(("with one node down", lossy.clone(), Wanted::Driven));
    }
    let revived = |mut pair: Pair| {
        for side in &mut pair.sides {
            if side.node.is_none() {
                side.start();
            }
        }
        pair
    };
    ways.push(("all late lost", revived(lossy), Wanted::Redundant));
    if !pair.late.is_empty() {
        let mut late = pair.clone();
        for message in std::mem::take(&mut late.late) {
            match (message.get(), message.get().receiver()) {
                (Message::Request(request), _) => {
                    late.reach_actuator(request, true, &search.outcomes);
                }
                (_, Some(index)) => late.fresh[index].push(message),
                _ => {}
            }
        }
        ways.push(("all late delivered", revived(late), Wanted::Redundant));
    }
    ways
}

/// Within the time for it, and for a cycle more, nothing that must never happen on the way.
fn goes_on(search: &Search, mut pair: Pair, wanted: Wanted, see: impl Fn(&Pair)) -> bool {
    let mut cycles_there = 0;
    for _ in 0..SETTLE_TICKS {
        pair.tick_perfectly(&search.setup, &Outcomes::default());
        see(&pair);
        let is_there = match wanted {
            Wanted::Redundant => pair.is_redundant(),
            Wanted::Driven => (0..2).any(|index| pair.state(index) == Some(State::Solo)),
        };
        cycles_there = if is_there && drives_now(&pair) {
            cycles_there + 1
        } else {
            0
        };
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
