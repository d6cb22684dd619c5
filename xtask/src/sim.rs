//! The seeded simulator of the standby pair: a test of its crate, with seeds and cycles by option.

use anyhow::{Context, bail};

use crate::child::Child;
use crate::steps::{self, PART_LIMIT};
use crate::workspace::Workspace;
use crate::{Outcome, cargo};

/// The test that runs the seeds, and its settings.
const TEST: &str = "swarm::every_seed_keeps_the_rules_and_becomes_a_pair_after_the_last_fault";
const SETTINGS: [(&str, &str); 3] = [
    ("--seed", "BUMPLESS_SIM_SEED"),
    ("--seeds", "BUMPLESS_SIM_SEEDS"),
    ("--cycles", "BUMPLESS_SIM_CYCLES"),
];

/// Runs the seeds of the tests, one (`--seed N`), or the first so many (`--seeds N`); each for the cycles
/// of the tests, or so many (`--cycles N`).
pub fn run(workspace: &Workspace, words: &[&str]) -> Outcome {
    let mut command = cargo::command(
        &workspace.root,
        &["test", "--locked", "-p", "bumpless-standby", "--test", "it"],
    );
    command.args(["--", "--exact", "--nocapture", TEST]);
    for (name, value) in settings(words)? {
        command.env(name, value.to_string());
    }
    let finished = steps::run(Child::new(command, PART_LIMIT))?;
    let mut lines = finished.stdout.iter().map(|line| line.trim());
    let closing = lines
        .find(|line| line.starts_with("sim: "))
        .unwrap_or_default();
    if let Err(error) = finished.require("the simulator") {
        bail!("{error}\n{closing}");
    }
    if closing.is_empty() {
        bail!("the simulator ran nothing");
    }
    Ok(closing.to_owned())
}

fn settings(words: &[&str]) -> anyhow::Result<Vec<(&'static str, u64)>> {
    let (pairs, rest) = words.as_chunks::<2>();
    if !rest.is_empty() {
        bail!("sim [--seed N | --seeds N] [--cycles N]");
    }
    let setting = |[option, value]: &[&str; 2]| {
        let known = SETTINGS.iter().find(|(name, _)| name == option);
        let (_, variable) = known.with_context(|| format!("sim has no option `{option}`"))?;
        let number = value.parse().with_context(|| format!("{option} {value}"))?;
        Ok((*variable, number))
    };
    pairs.iter().map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_settings_of_the_test() {
        assert!(settings(&[]).unwrap().is_empty());
        assert_eq!(
            settings(&["--seed", "7", "--cycles", "100"]).unwrap(),
            [("BUMPLESS_SIM_SEED", 7), ("BUMPLESS_SIM_CYCLES", 100)]
        );
    }

    #[test]
    fn what_is_no_option_is_refused() {
        for words in [&["--seed"][..], &["--seed", "x"], &["--speed", "1"], &["7"]] {
            assert!(settings(words).is_err(), "{words:?}");
        }
    }
}
