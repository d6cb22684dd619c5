//! Every interleaving of a pair within stated bounds: the shipped nodes and the shipped actuator, over a
//! network that loses, delays, doubles and reorders, with crashes, restarts and drifting clocks.
//!
//! Contract: a line for each configuration with its unique states, `complete` or the cap, depth,
//! violations and seconds; the last line is `configurations: N, complete: M, V violations`, and the exit
//! code is 0 only without violations, and if each configuration met what it must meet. With
//! `--without REPAIR` it is 0 only if something was found.
#![forbid(unsafe_code)]

mod controller;
mod ghosts;
mod outcomes;
mod pair;
mod search;
mod settle;
mod setups;
mod shared;
mod side;

use std::process::ExitCode;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model};

use crate::search::Search;
use crate::setups::{ALL, QUICK, Setup, WITHOUT};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_good = match words[..] {
        ["--all"] => run_all(&ALL),
        ["--quick"] => run_all(&QUICK),
        ["--only", name] => {
            let named: Vec<Setup> = ALL.into_iter().filter(|setup| setup.name == name).collect();
            !named.is_empty() && run_all(&named)
        }
        ["--without", repair] => is_missed(repair),
        // As one of all tests: enough to see that it runs.
        [] => run_all(&[Setup {
            ticks: 3,
            wanted: &[],
            ..QUICK[0]
        }]),
        // A filter for other tests.
        _ => true,
    };
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run_all(setups: &[Setup]) -> bool {
    let found: Vec<Found> = setups.iter().map(|setup| search(*setup)).collect();
    let complete = found.iter().filter(|found| found.is_complete).count();
    let violations: usize = found.iter().map(|found| found.violations).sum();
    println!(
        "configurations: {}, complete: {complete}, {violations} violations",
        setups.len()
    );
    found
        .iter()
        .all(|found| found.violations == 0 && found.has_met_all)
}

/// Without a repair, something must be found.
fn is_missed(repair: &str) -> bool {
    let without = WITHOUT.iter().find(|(name, _)| *name == repair);
    without.is_some_and(|(_, setup)| search(*setup).violations > 0)
}

/// What a search found.
#[derive(Debug)]
struct Found {
    is_complete: bool,
    violations: usize,
    has_met_all: bool,
}

fn search(setup: Setup) -> Found {
    let began = Instant::now();
    let checker = Search::new(setup)
        .checker()
        .threads(std::thread::available_parallelism().map_or(1, usize::from))
        .finish_when(HasDiscoveries::AnyFailures)
        .target_state_count(setup.states_max)
        .spawn_bfs()
        .join();
    let violated = checker.discoveries();
    let is_complete = violated.is_empty() && checker.state_count() < setup.states_max;
    let missing = if violated.is_empty() {
        checker.model().missing()
    } else {
        Vec::new()
    };
    println!(
        "{}: {} unique states, {}, depth {}, {} violations, {:.1} s",
        setup.name,
        checker.unique_state_count(),
        if is_complete {
            "complete".to_owned()
        } else {
            format!("ended after {} generated", checker.state_count())
        },
        checker.max_depth(),
        violated.len(),
        began.elapsed().as_secs_f64(),
    );
    for (property, path) in &violated {
        println!("  violated: {property}");
        for (pair, step) in path.clone().into_vec() {
            let states = [0, 1].map(|index| pair.state(index));
            println!("    {states:?} {:?}", pair.ghosts);
            println!("      {step:?}");
        }
        if *property == settle::SETTLES {
            settle::tell(checker.model(), path.last_state());
        }
    }
    if !missing.is_empty() {
        println!("  never met: {missing:?}");
    }
    Found {
        is_complete,
        violations: violated.len(),
        has_met_all: missing.is_empty(),
    }
}
