//! Killed at every instruction: a program of this package that steps victims through each operation,
//! kills them after each step, lets survivors look, and prints a last line with the counts.

use anyhow::{Context, Result, bail, ensure};

use crate::child::Child;
use crate::steps::{self, PART_LIMIT};
use crate::workspace::Workspace;
use crate::{Outcome, cargo};

/// The name of the test target that holds the sweep.
pub const TARGET: &str = "crash-sweep";
/// How many points a run of all checks tries.
pub const SAMPLE: &str = "400";

/// Sweeps: all, one operation, one point (`OPERATION --at K`), or a spread sample (`--sample POINTS`).
pub fn run(workspace: &Workspace, words: &[&str]) -> Outcome {
    let arguments = match words {
        [] => vec!["--every"],
        ["--sample", points] => vec!["--sample", points],
        [operation] => vec!["--only", operation],
        [operation, "--at", k] => vec!["--only", operation, "--at", k],
        _ => bail!("crash-sweep [OPERATION [--at K] | --sample POINTS]"),
    };
    let mut command = cargo::command(
        &workspace.root,
        &["test", "--profile", "scenarios", "--locked", "-p", "xtask"],
    );
    command.args(["--test", TARGET, "--"]).args(arguments);
    let finished = steps::run(Child::new(command, PART_LIMIT))?;
    let mut lines = finished.stdout.iter().rev().map(|line| line.trim());
    let closing = lines.find(|line| !line.is_empty()).unwrap_or_default();
    if let Err(error) = finished.require("the sweep") {
        // The counts come last, also when something was found.
        bail!("{error}\n{closing}");
    }
    require_clean(closing)?;
    Ok(closing.to_owned())
}

/// The closing line has points, and nothing else that is not 0.
fn require_clean(closing: &str) -> Result<()> {
    let counts = counts(closing)
        .with_context(|| format!("last line is not a count of crash points: `{closing}`"))?;
    let [points, found @ ..] = counts;
    ensure!(points > 0, "no crash points\n{closing}");
    ensure!(found == [0; 4], "survivors were let down\n{closing}");
    Ok(())
}

/// Reads `crash points: N, hung: H, lost: L, doubled: D, unclaimable: U`.
fn counts(line: &str) -> Option<[u32; 5]> {
    const NAMES: [&str; 5] = ["crash points", "hung", "lost", "doubled", "unclaimable"];
    let parts: Vec<_> = line.split(", ").collect();
    let mut counts = [0; 5];
    if parts.len() != counts.len() {
        return None;
    }
    for ((count, part), name) in counts.iter_mut().zip(parts).zip(NAMES) {
        *count = part.strip_prefix(name)?.strip_prefix(": ")?.parse().ok()?;
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_line_must_have_points_and_no_findings() {
        let line = |points, lost| {
            format!("crash points: {points}, hung: 0, lost: {lost}, doubled: 0, unclaimable: 0")
        };
        assert_eq!(counts(&line(5_000, 2)), Some([5_000, 0, 2, 0, 0]));
        assert!(require_clean(&line(5_000, 0)).is_ok());
        assert!(require_clean(&line(0, 0)).is_err());
        let error = require_clean(&line(5_000, 1)).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("lost: 1, doubled: 0, unclaimable: 0")
        );
    }

    #[test]
    fn another_line_is_no_count_of_crash_points() {
        for line in [
            "",
            "test result: ok",
            "crash points: 1, hung: 0, lost: 0, doubled: 0",
        ] {
            assert_eq!(counts(line), None, "{line}");
        }
    }
}
