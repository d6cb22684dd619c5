//! The portable tier: the tests of the lower crates without robust list, pidfd and byte locks.

use crate::child::Child;
use crate::libtest::Count;
use crate::steps::{self, PART_LIMIT};
use crate::workspace::Workspace;
use crate::{Outcome, cargo};

/// The packages that have a portable tier.
const PACKAGES: [&str; 5] = [
    "bumpless-substrate",
    "bumpless-heartbeat",
    "bumpless-failover",
    "bumpless-election",
    "bumpless-barrier",
];

/// Runs them under the cfg, in a target folder of their own: another cfg is another build.
pub fn run(workspace: &Workspace) -> Outcome {
    let mut command = cargo::command(&workspace.root, &["test", "--locked", "--no-fail-fast"]);
    for package in PACKAGES {
        command.args(["-p", package]);
    }
    command.env("RUSTFLAGS", "--cfg bumpless_portable");
    command.env("CARGO_TARGET_DIR", workspace.root.join("target/portable"));
    let finished = steps::run(Child::new(command, PART_LIMIT))?;
    let count = Count::of(&finished.stdout);
    finished.require(&format!(
        "the portable tier: {} passed, {} failed",
        count.passed, count.failed
    ))?;
    let passed = count.require_none_ignored()?.passed;
    Ok(format!("portable: {passed} passed"))
}
