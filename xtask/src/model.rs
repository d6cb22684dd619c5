//! Every interleaving of a standby pair, searched with the shipped nodes: a package of its own, as no
//! other check needs its search engine (`xtask/model`), runs the configurations, and once more without
//! each of the five repairs of the protocol.
//!
//! `xtask/repairs.toml` tells how a repair is taken away: by edits in a copy of the tree, as planted bugs
//! are, or, without edits, by the environment that the program itself builds. Without a repair the search
//! must find a counterexample, or it would find none for anything else either.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::Outcome;
use crate::child::{Child, Finished};
use crate::mutants::plot::{Pass, Plot, Suite};
use crate::steps::{self, PART_LIMIT};
use crate::workspace::Workspace;

/// The name of the test target that holds the model.
pub const TARGET: &str = "model";

/// How much is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Small configurations.
    Quick,
    /// All of them.
    All,
}

/// A repair of the protocol, and what takes it away.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repair {
    /// As the program calls it.
    name: String,
    /// None: the environment takes it away.
    #[serde(default)]
    edit: Vec<Edit>,
}

/// One place of one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// Relative to the root.
    file: String,
    /// What is replaced; occurs once.
    find: String,
    /// By what.
    replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepairList {
    repair: Vec<Repair>,
}

/// Searches the configurations, then without each repair.
pub fn run(workspace: &Workspace, extent: Extent) -> Outcome {
    let text = std::fs::read_to_string(workspace.root.join("xtask/repairs.toml"))?;
    let RepairList { repair: repairs } = toml::from_str(&text).context("xtask/repairs.toml")?;
    let plot = Plot::prepare(&workspace.root, &workspace.root.join("target/model"))?;
    let whole = match extent {
        Extent::Quick => "--quick",
        Extent::All => "--all",
    };
    let finished = search(&plot, &[whole])?;
    let closing = finished.stdout.last().cloned().unwrap_or_default();
    finished.require(&closing)?;
    require_clean(&closing)?;
    let mut missed = Vec::new();
    for repair in &repairs {
        if let Err(error) = take_away(&plot, repair) {
            println!("{}: NOT CAUGHT: {error:#}", repair.name);
            missed.push(repair.name.as_str());
        }
    }
    let caught = repairs.len() - missed.len();
    let line = format!(
        "{closing}, removed repairs caught: {caught} of {}",
        repairs.len()
    );
    ensure!(
        missed.is_empty(),
        "{line}; not caught: {}",
        missed.join(", ")
    );
    Ok(line)
}

/// Sets the profile, and a target folder that the copy and every edit of it share.
pub fn set_up(command: &mut Command, target: &Path) {
    command.args(["--profile", "explore"]);
    command.env("CARGO_TARGET_DIR", target);
}

fn take_away(plot: &Plot, repair: &Repair) -> Result<()> {
    let mut planted = Vec::new();
    for edit in &repair.edit {
        planted.push(plot.replace(&edit.file, &edit.find, &edit.replace)?);
    }
    let finished = search(plot, &["--without", &repair.name]);
    // The last edit first: each puts back what it found.
    while planted.pop().is_some() {}
    finished?.require("no counterexample")
}

fn search(plot: &Plot, words: &[&str]) -> Result<Finished> {
    let binary = plot.build(&Suite {
        pass: Pass::Explore,
        package: "standby-model".to_owned(),
        target: TARGET.to_owned(),
    })?;
    let mut command = Command::new(binary.path());
    command.args(words);
    steps::run(Child::new(command, PART_LIMIT))
}

/// The closing line has configurations and no violations.
fn require_clean(closing: &str) -> Result<()> {
    let [configurations, complete, violations] = counts(closing)
        .with_context(|| format!("last line is no count of configurations: `{closing}`"))?;
    ensure!(
        configurations > 0 && complete > 0,
        "nothing was searched\n{closing}"
    );
    ensure!(violations == 0, "counterexamples were found\n{closing}");
    Ok(())
}

/// Reads `configurations: N, complete: M, V violations`.
fn counts(line: &str) -> Option<[u32; 3]> {
    let mut parts = line.split(", ");
    let configurations = parts.next()?.strip_prefix("configurations: ")?;
    let complete = parts.next()?.strip_prefix("complete: ")?;
    let violations = parts.next()?.strip_suffix(" violations")?;
    if parts.next().is_some() {
        return None;
    }
    let [Ok(configurations), Ok(complete), Ok(violations)] =
        [configurations, complete, violations].map(str::parse)
    else {
        return None;
    };
    Some([configurations, complete, violations])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closing_line_must_have_configurations_and_no_violations() {
        assert_eq!(
            counts("configurations: 7, complete: 6, 0 violations"),
            Some([7, 6, 0])
        );
        assert!(require_clean("configurations: 7, complete: 6, 0 violations").is_ok());
        for line in [
            "configurations: 0, complete: 0, 0 violations",
            "configurations: 7, complete: 0, 0 violations",
            "configurations: 7, complete: 7, 1 violations",
        ] {
            assert!(require_clean(line).is_err(), "{line}");
        }
    }

    #[test]
    fn another_line_is_no_count_of_configurations() {
        for line in ["", "test result: ok", "configurations: 7, complete: 6"] {
            assert_eq!(counts(line), None, "{line}");
        }
    }

    #[test]
    fn the_five_repairs_are_listed_with_edits_that_change_something() {
        let RepairList { repair: repairs } =
            toml::from_str(include_str!("../repairs.toml")).expect("well formed");
        assert_eq!(repairs.len(), 5);
        for edit in repairs.iter().flat_map(|repair| &repair.edit) {
            assert_ne!(edit.find, edit.replace, "{}", edit.file);
        }
    }
}
