//! Killed at every instruction: a victim is stepped through one operation, killed after each step, and
//! the survivors must go on.
//!
//! Contract: the last line is `crash points: N, hung: H, lost: L, doubled: D, unclaimable: U`; the exit
//! code is 0 only if the last four are 0 and N is what was asked for.
#![forbid(unsafe_code)]

mod aftermath;
mod barriers;
mod course;
mod elections;
mod findings;
mod mailboxes;
mod openers;
mod operations;
mod owners;
mod plan;
mod planted;
mod point;
mod rings;
mod stage;
mod survivors;
mod tracer;
mod victim;
mod watchdogs;

use std::process::ExitCode;

use anyhow::{Context, Result};
use nix::sys::personality::{self, Persona};

use crate::findings::Kind;
use crate::operations::{OPERATIONS, Operation};
use crate::plan::{Extent, Totals};
use crate::planted::PLANTED;
use crate::stage::Stage;

/// A full sweep has at least so many points.
const POINTS_MIN: usize = 5_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("crash-sweep {}: {error:#}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> Result<ExitCode> {
    match *words {
        [tracer::VICTIM, name, folder] => {
            victim::run(named(name)?.act, &Stage::new(folder)).map(|()| ExitCode::SUCCESS)
        }
        [tracer::BESIDE, part, folder] => {
            victim::run_beside(part, &Stage::new(folder)).map(|()| ExitCode::SUCCESS)
        }
        ["--every"] => sweep(OPERATIONS.iter(), Extent::Staged, POINTS_MIN, true),
        ["--sample", points] => {
            let points: usize = points.parse().context("--sample")?;
            let each = Extent::Spread(points.div_ceil(OPERATIONS.len()));
            sweep(OPERATIONS.iter(), each, points.min(POINTS_MIN), true)
        }
        ["--only", name] => sweep([named(name)?], Extent::Every, 1, false),
        ["--only", name, "--at", k] => {
            let only = Extent::Only(k.parse().context("--at")?);
            sweep([named(name)?], only, 1, false)
        }
        // As one of all tests: enough to see that it runs.
        [] => sweep(
            OPERATIONS.iter(),
            Extent::Spread(2),
            2 * OPERATIONS.len(),
            false,
        ),
        // A filter for other tests.
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn named(name: &str) -> Result<&'static Operation> {
    let planted = PLANTED.iter().map(|planted| &planted.operation);
    OPERATIONS
        .iter()
        .chain(planted)
        .find(|operation| operation.name == name)
        .with_context(|| format!("no such operation: {name}"))
}

fn sweep(
    operations: impl IntoIterator<Item = &'static Operation>,
    extent: Extent,
    points_min: usize,
    planted: bool,
) -> Result<ExitCode> {
    // Victims inherit it: the way of one is the way of the next.
    personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?;
    let folder = tempfile::Builder::new()
        .prefix("crash-sweep-")
        .tempdir_in(memory())?;
    if planted {
        for planted in &PLANTED {
            plan::see(planted, folder.path())?;
        }
    }
    let mut totals = Totals::default();
    for operation in operations {
        totals.add(&plan::sweep(operation, extent, folder.path())?);
    }
    let is_good = totals.is_clean() && totals.points >= points_min;
    println!(
        "crash points: {}, hung: {}, lost: {}, doubled: {}, unclaimable: {}",
        totals.points,
        totals.of(Kind::Hung),
        totals.of(Kind::Lost),
        totals.of(Kind::Doubled),
        totals.of(Kind::Unclaimable)
    );
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// A folder in memory, if there is one.
fn memory() -> std::path::PathBuf {
    let memory = std::path::PathBuf::from("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}
