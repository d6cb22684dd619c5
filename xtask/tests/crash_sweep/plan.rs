//! Which points are tried, by whom, and what came of it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::course::Course;
use crate::findings::{Findings, Kind};
use crate::operations::Operation;
use crate::planted::Planted;
use crate::point::crash_at;

/// How many findings of one operation are told in full.
const TOLD_MAX: usize = 5;
/// More workers than this do not make it faster: each point is one spawn after the other.
const WORKERS_MAX: usize = 8;

/// Which crash points of an operation are tried.
#[derive(Debug, Clone, Copy)]
pub enum Extent {
    /// Every one.
    Every,
    /// Every one of a short operation; of a long one, those near to what others can see, and some.
    Staged,
    /// So many, spread evenly, the first and the last among them.
    Spread(usize),
    /// This one.
    Only(usize),
}

/// What came of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Victims that were killed.
    pub points: usize,
    /// Points by kind of finding.
    found: [usize; 4],
}

impl Totals {
    /// At how many points something of this kind was found.
    pub fn of(&self, kind: Kind) -> usize {
        self.found[kind as usize]
    }

    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.found == [0; 4]
    }

    fn take(&mut self, findings: &Findings) {
        self.points += 1;
        for kind in Kind::ALL {
            self.found[kind as usize] += usize::from(findings.has(kind));
        }
    }

    /// Adds another sweep's.
    pub fn add(&mut self, other: &Self) {
        self.points += other.points;
        for (sum, found) in self.found.iter_mut().zip(other.found) {
            *sum += found;
        }
    }
}

impl Extent {
    fn stage_steps(self) -> usize {
        match self {
            Self::Every | Self::Staged => 96,
            Self::Spread(_) | Self::Only(_) => 512,
        }
    }

    fn points(self, course: &Course) -> Vec<usize> {
        let instructions = course.instructions;
        match self {
            Self::Every => (0..=instructions).collect(),
            Self::Staged => course.points(),
            Self::Only(k) => vec![k],
            Self::Spread(wanted) => {
                let gaps = wanted.saturating_sub(1).clamp(1, instructions.max(1));
                let spread = (0..=gaps).map(|index| index * instructions / gaps);
                spread
                    .collect::<std::collections::BTreeSet<_>>()
                    .into_iter()
                    .collect()
            }
        }
    }
}

/// Sweeps one operation and prints its line, and above it what was found.
pub fn sweep(operation: &'static Operation, extent: Extent, folder: &Path) -> Result<Totals> {
    let began = Instant::now();
    let course =
        Course::measure(operation, extent.stage_steps(), folder).with_context(|| operation.name)?;
    let found = crash(operation, &course, &extent.points(&course), folder)?;
    let mut totals = Totals::default();
    found.values().for_each(|findings| totals.take(findings));
    let bad = found.iter().filter(|(_, findings)| !findings.0.is_empty());
    for (k, findings) in bad.clone().take(TOLD_MAX) {
        let name = operation.name;
        println!("{name} at {k}: {findings}\n  again: cargo xtask crash-sweep {name} --at {k}");
    }
    println!(
        "{:<16} {:>6} instructions, {:>3} system calls, {:>5} points, {} bad, {:.1} s",
        operation.name,
        course.instructions,
        course.system_calls,
        totals.points,
        bad.count(),
        began.elapsed().as_secs_f64()
    );
    Ok(totals)
}

/// Sweeps an operation with a mistake planted in it, and prints at how many points it was seen.
pub fn see(planted: &'static Planted, folder: &Path) -> Result<()> {
    let Planted { operation, kind } = planted;
    let course = Course::measure(operation, Extent::Every.stage_steps(), folder)
        .with_context(|| operation.name)?;
    let found = crash(operation, &course, &course.points(), folder)?;
    let seen = found
        .values()
        .filter(|findings| findings.has(*kind))
        .count();
    println!(
        "planted: {}: {kind:?} at {seen} of {} points",
        operation.name,
        found.len()
    );
    ensure!(
        seen > 0,
        "{}: nobody sees that it is {kind:?}",
        operation.name
    );
    Ok(())
}

/// Tries the points, with a worker on each core; a victim shares its worker's core.
fn crash(
    operation: &'static Operation,
    course: &Course,
    points: &[usize],
    folder: &Path,
) -> Result<BTreeMap<usize, Findings>> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = |core: usize| -> Result<()> {
        stay_on(core)?;
        let own = folder.join(core.to_string());
        std::fs::create_dir_all(&own)?;
        while let Some(k) = points.get(next.fetch_add(1, Ordering::Relaxed)) {
            let findings = crash_at(operation, course, *k, &own)
                .with_context(|| format!("{} at {k}", operation.name))?;
            found.lock().expect("no worker panics").insert(*k, findings);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = cores()?
            .into_iter()
            .map(|core| scope.spawn(move || work(core)))
            .collect();
        for worker in workers {
            worker.join().expect("no worker panics")?;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(found.into_inner().expect("no worker panics"))
}

/// The cores that this process may run on.
fn cores() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(Pid::from_raw(0))?;
    let cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false));
    Ok(cores.take(WORKERS_MAX).collect())
}

/// Keeps the calling thread, and whom it starts, on one core.
fn stay_on(core: usize) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(core)?;
    sched_setaffinity(Pid::from_raw(0), &only).context("stay on one core")
}
