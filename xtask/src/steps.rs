//! The checks that are one or two calls of cargo: fmt, lint, test, doc.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::child::{Child, Finished};
use crate::libtest::Count;
use crate::workspace::Workspace;
use crate::{Outcome, cargo, crash_sweep, loom, model, xproc};

/// One compilation or one test binary takes no longer than this.
pub const PART_LIMIT: Duration = Duration::from_secs(600);
/// The worked examples are bounded programs.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(60);

/// Formatting.
pub fn fmt(workspace: &Workspace) -> Outcome {
    run_cargo(workspace, &["fmt", "--all", "--", "--check"])?.require("cargo fmt")?;
    Ok(format!(
        "fmt: {} packages formatted",
        workspace.packages.len()
    ))
}

/// Clippy with warnings denied; the packages with models also under the model cfg.
pub fn lint(workspace: &Workspace) -> Outcome {
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        "bumpless-benches/plot,bumpless-benches/criterion",
        "--locked",
        "--",
        "-D",
        "warnings",
    ];
    run_cargo(workspace, &clippy)?.require("cargo clippy")?;
    let packages = workspace.packages.len();
    let mut under_model_cfg = String::new();
    let with_models = workspace.packages_with_test(loom::TARGET);
    if !with_models.is_empty() {
        let mut command = cargo::command(&workspace.root, &["clippy", "--locked", "--lib"]);
        command.args(["--test", loom::TARGET]);
        for package in &with_models {
            command.args(["-p", &package.name]);
        }
        loom::set_up(
            &mut command,
            loom::Pass::Plain,
            &workspace.root.join(loom::TARGET_FOLDER),
        );
        command.args(["--", "-D", "warnings"]);
        run(Child::new(command, PART_LIMIT))?.require("cargo clippy under the model cfg")?;
        under_model_cfg = format!(" ({} again under the model cfg)", with_models.len());
    }
    Ok(format!(
        "lint: {packages} packages, 0 warnings{under_model_cfg}"
    ))
}

/// Unit, integration and doc tests, then each example.
pub fn test(workspace: &Workspace) -> Outcome {
    // Named one by one: what has a check of its own is not run twice.
    let names: BTreeSet<&str> = workspace
        .targets("test")
        .map(|(_, t)| t.name.as_str())
        .collect();
    let mut arguments = vec![
        "test",
        "--workspace",
        "--locked",
        "--no-fail-fast",
        "--lib",
        "--bins",
    ];
    for name in names {
        let apart = [
            loom::TARGET,
            xproc::TARGET,
            crash_sweep::TARGET,
            model::TARGET,
        ];
        if !apart.contains(&name) {
            arguments.extend(["--test", name]);
        }
    }
    let tests = run_cargo(workspace, &arguments)?;
    let mut count = Count::of(&tests.stdout);
    let doc = run_cargo(
        workspace,
        &["test", "--workspace", "--locked", "--no-fail-fast", "--doc"],
    )?;
    let in_docs = Count::of(&doc.stdout);
    count.passed += in_docs.passed;
    count.failed += in_docs.failed;
    count.ignored += in_docs.ignored;
    let failed = format!(
        "cargo test: {} passed, {} failed",
        count.passed, count.failed
    );
    tests.require(&failed)?;
    doc.require(&failed)?;
    count.require_none_ignored()?;

    let mut examples = 0;
    for (package, example) in workspace.targets("example") {
        let run_it = [
            "run",
            "--quiet",
            "--locked",
            "-p",
            &package.name,
            "--example",
            &example.name,
        ];
        // Compiled by an earlier call with a limit of its own, so that this limit is the program's.
        let build = [
            "build",
            "--locked",
            "-p",
            &package.name,
            "--example",
            &example.name,
        ];
        run_cargo(workspace, &build)?.require(&format!("example {}", example.name))?;
        let command = cargo::command(&workspace.root, &run_it);
        run(Child::new(command, EXAMPLE_LIMIT))?.require(&format!("example {}", example.name))?;
        examples += 1;
    }
    Ok(format!(
        "test: {} passed, {examples} examples ran",
        count.passed
    ))
}

/// Documentation, private items too, warnings denied.
pub fn doc(workspace: &Workspace) -> Outcome {
    let arguments = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ];
    let mut command = cargo::command(&workspace.root, &arguments);
    command.env("RUSTDOCFLAGS", "-D warnings");
    run(Child::new(command, PART_LIMIT))?.require("cargo doc")?;
    Ok(format!("doc: {} packages", workspace.packages.len()))
}

/// Runs a child with its output shown and the deadline per part.
pub fn run(child: Child) -> anyhow::Result<Finished> {
    child.echo().limit_per(cargo::announces_progress).run()
}

fn run_cargo(workspace: &Workspace, arguments: &[&str]) -> anyhow::Result<Finished> {
    ensure!(!workspace.packages.is_empty(), "no packages");
    let command = cargo::command(&workspace.root, arguments);
    run(Child::new(command, PART_LIMIT)).with_context(|| format!("cargo {}", arguments[0]))
}
