//! The scenarios with real processes, real files and real signals: registry and runner.
//!
//! Contract: one line for each scenario, `ok`, `skipped` or `FAILED`, and a last line with the counts;
//! exit code 1 when one failed. Arguments choose scenarios by number or by a part of the name. The
//! same program is every child: with a role as its first argument it plays that role.
//!
//! "Table" is 64 slots and a grace of 3 epochs unless a scenario says otherwise. The watchdog's scans
//! are made one by one, so that lateness is counted exactly and a busy machine fails nothing.
#![forbid(unsafe_code)]
#![allow(dead_code)]

mod child;
mod death;
mod layout;
mod lines;
mod roles;
mod scene;
mod silence;
mod tally;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use scene::Scene;

/// One scenario.
struct Scenario {
    number: u32,
    name: &'static str,
    needs: Needs,
    run: fn(&Scene),
}

/// What a scenario needs of the machine.
#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    /// To become another user.
    Root,
    /// To mount a file system.
    Mounts,
}

macro_rules! scenarios {
    ($($number:literal $needs:ident $module:ident::$name:ident,)*) => {
        &[$(Scenario {
            number: $number,
            name: stringify!($name),
            needs: Needs::$needs,
            run: $module::$name,
        },)*]
    };
}

const SCENARIOS: &[Scenario] = scenarios![
    1 Nothing death::killed_worker_is_reported_dead_and_its_units_once,
    2 Nothing death::idle_deaths_never_fill_the_table,
    4 Nothing silence::stopped_worker_is_fenced_and_cannot_commit,
    6 Nothing silence::units_marked_between_scan_and_acknowledgement_are_never_lost,
    8 Nothing silence::watchdog_killed_half_way_loses_nothing,
    12 Nothing death::stop_within_the_grace_is_nothing,
    15 Nothing death::zombie_is_dead,
    39 Nothing silence::paused_watchdog_does_not_touch_the_next_owner,
    44 Nothing death::deaths_found_by_recyclers_are_reported,
];

/// What the first failing assertion of a scenario said.
static FAILURE: Mutex<Option<String>> = Mutex::new(None);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((roles::ROLE_ARGUMENT, rest)) = arguments
        .split_first()
        .map(|(first, rest)| (first.as_str(), rest))
    {
        return roles::play(rest);
    }
    std::panic::set_hook(Box::new(|panic| {
        let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(panic.to_string());
    }));
    let chosen: Vec<&Scenario> = SCENARIOS
        .iter()
        .filter(|scenario| scenario.is_chosen(&arguments))
        .collect();
    let (mut passed, mut skipped) = (0, 0);
    for scenario in &chosen {
        match scenario.run_alone() {
            Outcome::Passed => passed += 1,
            Outcome::Skipped => skipped += 1,
            Outcome::Failed => {}
        }
    }
    let count = chosen.len();
    println!("xproc: {count} scenarios, {passed} passed, {skipped} skipped");
    ExitCode::from(u8::from(passed + skipped < count || count == 0))
}

enum Outcome {
    Passed,
    Skipped,
    Failed,
}

impl Scenario {
    fn is_chosen(&self, filters: &[String]) -> bool {
        let mut filters = filters.iter().filter(|filter| !filter.starts_with('-'));
        let mut any = false;
        let matches = filters.any(|filter| {
            any = true;
            filter.parse() == Ok(self.number) || self.name.contains(filter.as_str())
        });
        matches || !any
    }

    fn run_alone(&self) -> Outcome {
        let title = format!("scenario {} {}", self.number, self.name);
        if let Some(reason) = self.needs.missing() {
            println!("{title} ... skipped ({reason})");
            return Outcome::Skipped;
        }
        let start = Instant::now();
        let scene = Scene::set(&title);
        let run = catch_unwind(AssertUnwindSafe(|| (self.run)(&scene)));
        drop(scene);
        let seconds = start.elapsed().as_secs_f64();
        let failure = FAILURE
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if run.is_ok() && failure.is_none() {
            println!("{title} ... ok ({seconds:.1} s)");
            return Outcome::Passed;
        }
        let failure = failure.unwrap_or_default();
        println!("{title} ... FAILED: {failure} ({seconds:.1} s)");
        Outcome::Failed
    }
}

impl Needs {
    /// Why the machine does not have it.
    fn missing(self) -> Option<&'static str> {
        let is_root = rustix::process::geteuid().is_root();
        match self {
            Self::Nothing => None,
            Self::Root | Self::Mounts if !is_root => Some("not root"),
            Self::Root => None,
            Self::Mounts => {
                let mounts = rustix::mount::fsopen("tmpfs", rustix::mount::FsOpenFlags::empty());
                mounts.err().map(|_| "may not mount a file system")
            }
        }
    }
}
