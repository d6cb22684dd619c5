//! How a model is run: it fails if an execution fails, and if it never met what it is about.
//!
//! loom 0.7 keeps one last access per object, so that "load, then CAS or store" on one atomic hides a
//! race with an earlier load of another thread: such a model has one execution and passes whatever
//! the code does. Therefore the writer runs on the main thread or is spawned first, each model names
//! the outcomes that some execution must have had, and all run in both passes of the shim.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bumpless_substrate::sync::is_rmw_pass;

/// What executions ended in; kept outside of loom.
#[derive(Debug, Default)]
pub struct Outcomes(Mutex<BTreeMap<&'static str, u64>>);

impl Outcomes {
    /// Counts an outcome of this execution.
    pub fn saw(&self, outcome: &'static str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(outcome).or_default() += 1;
    }

    fn count(&self, outcome: &str) -> u64 {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.get(outcome).copied().unwrap_or(0)
    }
}

/// Explores `model` up to `preemptions` forced switches; each outcome in `wanted` must occur.
pub fn check_seeing(
    name: &str,
    preemptions: usize,
    wanted: &[&str],
    model: impl Fn(&Outcomes) + Send + Sync + 'static,
) {
    check_each_death(name, preemptions, wanted, move |outcomes, _| {
        model(outcomes)
    });
}

/// As [`check_seeing`], once for each number of changes after which a process can die: the model
/// passes it to `die_before_change` and reports [`DIED`] when that came to a death. Ends with the
/// number at which no execution died any more.
pub fn check_each_death(
    name: &str,
    preemptions: usize,
    wanted: &[&str],
    model: impl Fn(&Outcomes, u32) + Send + Sync + 'static,
) {
    let outcomes = Arc::new(Outcomes::default());
    let model = Arc::new(model);
    let began = Instant::now();
    let mut changes = 0;
    loop {
        let deaths = outcomes.count(DIED);
        let (model, seen) = (Arc::clone(&model), Arc::clone(&outcomes));
        let mut builder = loom::model::Builder::new();
        // The second pass has no old values to read and can afford one switch more.
        builder.preemption_bound = Some(preemptions + usize::from(is_rmw_pass()));
        builder.max_branches = BRANCHES_MAX;
        builder.check(move || {
            seen.saw(EXECUTION);
            model(&seen, changes);
        });
        if outcomes.count(DIED) == deaths {
            break;
        }
        changes += 1;
    }
    let executions = outcomes.count(EXECUTION);
    let seconds = began.elapsed().as_secs_f64();
    println!("{name}: {executions} executions, {changes} deaths tried, {seconds:.1} s");
    for outcome in wanted {
        let seen = outcomes.count(outcome);
        assert!(
            seen > 0,
            "{name} is vacuous: `{outcome}` in none of {executions} executions"
        );
    }
}

/// The outcome of an execution in which the process died.
pub const DIED: &str = "a process died inside its operation";

const EXECUTION: &str = "execution";

/// More atomic accesses than any one execution makes.
const BRANCHES_MAX: usize = 20_000;
