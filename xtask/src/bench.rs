//! The ratios: builds the measuring program, optimized, and lets it measure.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::child::Child;
use crate::steps::{self, PART_LIMIT};
use crate::workspace::Workspace;
use crate::{Outcome, cargo};

const PACKAGE: &str = "bumpless-benches";
/// A whole run; it is made for five minutes.
const RUN_LIMIT: Duration = Duration::from_secs(1_200);

/// Measures with these options (`cargo xtask bench --help` names them), and shows what came out.
pub fn run(workspace: &Workspace, words: &[&str]) -> Outcome {
    let build = ["build", "--release", "--locked", "-p", PACKAGE];
    let built = steps::run(Child::new(
        cargo::command(&workspace.root, &build),
        PART_LIMIT,
    ))?;
    built.require("cargo build")?;
    let start = [
        "run",
        "--release",
        "--locked",
        "--quiet",
        "-p",
        PACKAGE,
        "--",
    ];
    let mut command = cargo::command(&workspace.root, &start);
    command.args(words);
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
