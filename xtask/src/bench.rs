//! The ratios: builds the measuring program, optimized, and lets it measure.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::child::Child;
use crate::steps::{self, PART_LIMIT};
use crate::workspace::Workspace;
use crate::{Outcome, cargo};

/// The measuring program, and the tool, which one of the pairs runs.
const PACKAGES: [&str; 2] = ["bumpless-benches", "bumpless"];
/// A whole run; it is made for five minutes.
const RUN_LIMIT: Duration = Duration::from_secs(1_200);

/// Measures with these options (`cargo xtask bench --help` names them), and shows what came out.
pub fn run(workspace: &Workspace, words: &[&str]) -> Outcome {
    let draws: &[&str] = if words.contains(&"--plot") {
        &["--features", "plot"]
    } else {
        &[]
    };
    build(workspace, PACKAGES[0], draws)?;
    build(workspace, PACKAGES[1], &[])?;
    let mut command = Command::new(program(workspace));
    command.current_dir(&workspace.root).args(words);
    let finished = Child::new(command, RUN_LIMIT).echo_errors().run()?;
    let Some((closing, told)) = finished.stdout.split_last() else {
        bail!(
            "{}",
            finished.stderr.last().context("nothing was measured")?
        );
    };
    for line in told {
        println!("{line}");
    }
    if finished.require("bench").is_err() {
        bail!("{closing}");
    }
    Ok(closing.clone())
}

/// Builds a package as it is shipped.
fn build(workspace: &Workspace, package: &str, features: &[&str]) -> anyhow::Result<()> {
    let build = ["build", "--release", "--locked", "-p", package];
    let build = [&build, features].concat();
    let built = steps::run(Child::new(
        cargo::command(&workspace.root, &build),
        PART_LIMIT,
    ))?;
    built.require("cargo build")
}

/// The measuring program, once it is built.
fn program(workspace: &Workspace) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| workspace.root.join("target"));
    target.join("release").join(PACKAGES[0])
}
