//! The models: every package with a test target called `loom`, in two passes.
//!
//! The second pass turns every load and store into a read-modify-write: see the shim,
//! `crates/substrate/src/sync.rs`, for what each pass can see that the other cannot.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::child::Child;
use crate::libtest::Count;
use crate::steps::{self, PART_LIMIT};
use crate::workspace::Workspace;
use crate::{Outcome, cargo};

/// The name of the test target that holds a package's models.
pub const TARGET: &str = "loom";

/// Where models are built, also those with planted bugs: their dependencies are the same.
pub const TARGET_FOLDER: &str = "target/loom";

/// How many preemptions a model explores; one that can afford more says so itself, in its builder.
pub const MAX_PREEMPTIONS: &str = "2";

/// How the shim's loads and stores are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pass {
    /// As they are.
    Plain,
    /// As read-modify-writes.
    Rmw,
}

/// Runs both passes.
pub fn run(workspace: &Workspace) -> Outcome {
    let first = pass(workspace, Pass::Plain)?;
    let second = pass(workspace, Pass::Rmw)?;
    ensure!(
        first == second,
        "{first} models in the first pass, {second} in the second"
    );
    Ok(format!("loom: {first} models, 2 passes"))
}

fn pass(workspace: &Workspace, pass: Pass) -> Result<u32> {
    let packages = workspace.packages_with_test(TARGET);
    ensure!(
        !packages.is_empty(),
        "no package has a test target called `{TARGET}`"
    );
    let mut command = cargo::command(&workspace.root, &["test", "--locked"]);
    command.args(["--no-fail-fast", "--test", TARGET]);
    for package in packages {
        command.args(["-p", &package.name]);
    }
    set_up(&mut command, pass, &workspace.root.join(TARGET_FOLDER));
    let finished = steps::run(Child::new(command, PART_LIMIT))?;
    let count = Count::of(&finished.stdout);
    finished.require(&format!("{pass:?} pass: {} models passed", count.passed))?;
    ensure!(count.passed > 0, "{pass:?} pass: no model ran");
    Ok(count.require_none_ignored()?.passed)
}

/// Sets the model cfg and the profile, and a target folder of its own: another cfg is another build. Both
/// passes are one build.
pub fn set_up(command: &mut Command, pass: Pass, target: &Path) {
    command.args(["--profile", "model"]);
    command.env("RUSTFLAGS", "--cfg bumpless_loom");
    command.env("CARGO_TARGET_DIR", target);
    set_up_run(command, pass);
}

/// Sets what a model reads when it runs.
pub fn set_up_run(command: &mut Command, pass: Pass) {
    command.env("LOOM_MAX_PREEMPTIONS", MAX_PREEMPTIONS);
    if pass == Pass::Rmw {
        command.env("BUMPLESS_LOOM_RMW", "1");
    }
}
