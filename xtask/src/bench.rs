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
    let succeeded = finished.require("bench").is_ok();
    let (told, closing) = parts(succeeded, &finished.stdout, &finished.stderr)?;
    for line in told {
        println!("{line}");
    }
    if succeeded {
        Ok(closing)
    } else {
        bail!("{closing}")
    }
}

/// What to print before the closing line, and that. Of a failure, the closing line is what the program said
/// last, of an error; all that was measured stands before it, as it is.
fn parts<'o>(
    succeeded: bool,
    stdout: &'o [String],
    stderr: &[String],
) -> anyhow::Result<(impl Iterator<Item = &'o String> + use<'o>, String)> {
    let closing = if succeeded {
        stdout.last().cloned()
    } else {
        let said = stderr.last();
        said.map(|line| line.trim_start_matches("bench: ").to_owned())
    };
    let closing = closing.context("nothing was measured")?;
    let told_again = stdout.last() == Some(&closing);
    let told = stdout.len() - usize::from(told_again);
    Ok((stdout.iter().take(told), closing))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn told(succeeded: bool, stdout: &str, stderr: &str) -> (Vec<String>, String) {
        let (stdout, stderr) = (lines(stdout), lines(stderr));
        let (told, closing) = parts(succeeded, &stdout, &stderr).unwrap();
        (told.cloned().collect(), closing)
    }

    #[test]
    fn the_report_for_machines_stays_a_line_of_its_own_when_a_goal_is_missed() {
        let (json, error) = (r#"{"missed":1}"#, "beat\nbench: ratios: 1, missed: 1");
        let wanted = (lines(json), "ratios: 1, missed: 1".to_owned());
        assert_eq!(told(false, json, error), wanted);
        assert_eq!(told(true, json, "beat"), (vec![], json.to_owned()));
    }

    #[test]
    fn the_closing_line_is_told_once_and_an_error_without_a_report_is_told() {
        let wanted = (lines("| beat |"), "ratios: 1, missed: 1".to_owned());
        let table = "| beat |\nratios: 1, missed: 1";
        assert_eq!(told(true, table, "beat"), wanted);
        assert_eq!(told(false, table, "bench: ratios: 1, missed: 1"), wanted);
        let nothing = (vec![], "nothing has `x`".to_owned());
        assert_eq!(told(false, "", "bench: nothing has `x`"), nothing);
    }
}
