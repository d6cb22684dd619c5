//! The scenarios with real processes: a program of the tool's package that prints one line for each
//! scenario and a last one with the counts.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::child::Child;
use crate::steps;
use crate::workspace::Workspace;
use crate::{Outcome, cargo};

/// The name of the test target that holds the scenarios.
pub const TARGET: &str = "xproc";
/// Its package.
const PACKAGE: &str = "bumpless";
/// All scenarios together take no longer than this: ten times what they take on an idle machine. One that
/// hangs ends the run by a limit of its own.
const LIMIT: Duration = Duration::from_secs(3_000);

/// Runs the scenarios whose names match a filter; without filters, all.
pub fn run(workspace: &Workspace, filters: &[&str]) -> Outcome {
    let found = workspace
        .packages_with_test(TARGET)
        .iter()
        .any(|p| p.name == PACKAGE);
    ensure!(
        found,
        "package {PACKAGE} has no test target called `{TARGET}`"
    );
    let arguments = [
        "test",
        "--profile",
        "scenarios",
        "--locked",
        "-p",
        PACKAGE,
        "--test",
        TARGET,
        "--",
    ];
    let mut command = cargo::command(&workspace.root, &arguments);
    command.args(filters);
    let finished = steps::run(Child::new(command, LIMIT))?;
    let closing = finished
        .stdout
        .iter()
        .rev()
        .find(|line| !line.trim().is_empty());
    let closing = closing.map_or("", |line| line.trim());
    let failed = failed(&finished.stdout);
    finished.require(&format!("the scenarios ({failed}last line: `{closing}`)"))?;
    let count = Count::parse(closing)
        .with_context(|| format!("last line is not a count of scenarios: `{closing}`"))?;
    count.require_all_passed()?;
    Ok(format!(
        "xproc: {} scenarios, {} passed, {} skipped",
        count.scenarios, count.passed, count.skipped
    ))
}

/// The scenarios that a line says failed, each once, and what each said, on one line.
fn failed(lines: &[String]) -> String {
    let mut told: Vec<&str> = Vec::new();
    for line in lines {
        if line.starts_with("scenario ") && line.contains(" ... FAILED") && !told.contains(&&**line)
        {
            told.push(line);
        }
    }
    told.iter().map(|line| format!("{line}; ")).collect()
}

#[derive(Debug, PartialEq, Eq)]
struct Count {
    scenarios: u32,
    passed: u32,
    skipped: u32,
}

impl Count {
    /// Reads `xproc: N scenarios, P passed, S skipped`.
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.strip_prefix("xproc: ")?.split(", ");
        let mut next = |word| parts.next()?.strip_suffix(word)?.trim_end().parse().ok();
        Some(Self {
            scenarios: next("scenarios")?,
            passed: next("passed")?,
            skipped: next("skipped")?,
        })
    }

    fn require_all_passed(&self) -> Result<()> {
        ensure!(self.passed > 0, "no scenario passed");
        ensure!(
            self.passed + self.skipped == self.scenarios,
            "{} of {} scenarios passed, {} skipped",
            self.passed,
            self.scenarios,
            self.skipped
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_read_and_must_add_up() {
        let count = Count::parse("xproc: 30 scenarios, 28 passed, 2 skipped").expect("well formed");
        assert_eq!(
            count,
            Count {
                scenarios: 30,
                passed: 28,
                skipped: 2
            }
        );
        assert!(count.require_all_passed().is_ok());
        let short = Count {
            passed: 27,
            ..count
        };
        assert_eq!(
            short.require_all_passed().unwrap_err().to_string(),
            "27 of 30 scenarios passed, 2 skipped"
        );
    }

    #[test]
    fn scenarios_that_failed_are_named_once_each() {
        let lines = [
            "scenario 1 a ... ok (0.1 s)",
            "scenario 2 b ... FAILED: at x: no (0.2 s)",
            "a child says: FAILED",
            "scenario 2 b ... FAILED: at x: no (0.2 s)",
        ];
        assert_eq!(
            failed(&lines.map(String::from)),
            "scenario 2 b ... FAILED: at x: no (0.2 s); "
        );
        assert_eq!(failed(&[]), "");
    }

    #[test]
    fn another_line_is_no_count_and_only_skipped_is_no_pass() {
        assert_eq!(Count::parse("test result: ok. 3 passed"), None);
        assert_eq!(
            Count::parse("xproc: 30 scenarios, many passed, 2 skipped"),
            None
        );
        assert!(
            Count {
                scenarios: 2,
                passed: 0,
                skipped: 2
            }
            .require_all_passed()
            .is_err()
        );
    }
}
