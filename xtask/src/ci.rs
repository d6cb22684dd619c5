//! All checks in one run, the cheap ones first, with a table at the end.

use std::time::{Duration, Instant};

use anyhow::bail;

use crate::model::Extent;
use crate::workspace::Workspace;
use crate::{Outcome, crash_sweep, loom, model, mutants, portable, steps, tidy, xproc};

type Check = fn(&Workspace) -> Outcome;

const CHECKS: [(&str, Check); 11] = [
    ("fmt", steps::fmt),
    ("tidy", tidy::run),
    ("lint", steps::lint),
    ("doc", steps::doc),
    ("test", steps::test),
    ("portable", portable::run),
    ("loom", loom::run),
    ("model", |workspace| model::run(workspace, Extent::Quick)),
    ("mutants", |workspace| mutants::run(workspace, None)),
    ("xproc", |workspace| xproc::run(workspace, &[])),
    ("crash-sweep", |workspace| {
        crash_sweep::run(workspace, &["--sample", crash_sweep::SAMPLE])
    }),
];

/// Runs every check, also after a failure.
pub fn run(workspace: &Workspace) -> Outcome {
    let started = Instant::now();
    let mut rows = Vec::new();
    for (name, check) in CHECKS {
        println!("\n== {name}");
        let began = Instant::now();
        let outcome = check(workspace);
        match &outcome {
            Ok(line) => println!("{line}"),
            Err(error) => println!("{name}: FAILED: {error:#}"),
        }
        rows.push(Row {
            name,
            took: began.elapsed(),
            outcome,
        });
    }
    println!("\n{}", table(&rows));
    let failed: Vec<_> = rows
        .iter()
        .filter(|row| row.outcome.is_err())
        .map(|r| r.name)
        .collect();
    if !failed.is_empty() {
        bail!(
            "{} of {} checks: {}",
            failed.len(),
            rows.len(),
            failed.join(", ")
        );
    }
    Ok(format!(
        "ci: {} checks, {} failed, {}",
        rows.len(),
        0,
        minutes(started.elapsed())
    ))
}

struct Row {
    name: &'static str,
    took: Duration,
    outcome: Outcome,
}

fn table(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let told = match &row.outcome {
            Ok(line) => line.lines().last().unwrap_or_default().to_owned(),
            Err(error) => format!("FAILED: {}", error.to_string().lines().next().unwrap_or("")),
        };
        let told = told
            .strip_prefix(&format!("{}: ", row.name))
            .unwrap_or(&told)
            .to_owned();
        format!("{:<11} {:>8}  {told}", row.name, minutes(row.took))
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn minutes(time: Duration) -> String {
    format!("{}:{:04.1}", time.as_secs() / 60, time.as_secs_f64() % 60.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_row_with_time_and_count_for_each_check() {
        let rows = [
            Row {
                name: "tidy",
                took: Duration::from_millis(61_500),
                outcome: Ok("tidy: 9 rules, 61 files, 0 findings".into()),
            },
            Row {
                name: "loom",
                took: Duration::from_millis(300),
                outcome: Err(anyhow::anyhow!("no package\ndetails")),
            },
        ];
        assert_eq!(
            table(&rows),
            "tidy          1:01.5  9 rules, 61 files, 0 findings\nloom          0:00.3  FAILED: no package"
        );
    }
}
