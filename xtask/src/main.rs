//! The gate of the repository: `cargo xtask <check>`.
//!
//! Contract: each check ends with one line that carries its count, on standard output, and with an
//! exit code other than 0 when anything is wrong. `ci` runs all of them, goes on after a failure so
//! that one run shows everything, and closes with a table. Every child runs in a process group of
//! its own under a deadline and is killed as a group: a check never hangs and leaves nothing running.
#![forbid(unsafe_code)]

mod bench;
mod cargo;
mod child;
mod ci;
mod crash_sweep;
mod instructions;
mod libtest;
mod loom;
mod model;
mod mutants;
mod portable;
mod sim;
mod steps;
mod tidy;
mod workspace;
mod xproc;

use std::process::ExitCode;

use crate::model::Extent;
use crate::workspace::Workspace;

/// A check returns its closing line, or says what is wrong.
type Outcome = anyhow::Result<String>;

const HELP: &str = "\
cargo xtask <check>

  fmt              rustfmt agrees with every file
  lint             clippy, warnings denied; again under the model cfg where there are models
  tidy             the house rules: layers, unsafe, comments at atomics, assertions in tests, ...
  test             unit, integration and doc tests; every example runs and exits 0
  portable         the tests of the lower crates in the portable tier
  doc              rustdoc, warnings denied
  loom             the models, both passes
  model [--quick]  every interleaving of a standby pair, and without each of its repairs
  mutants [NAME]   planted bugs: every one must be caught by the models it names
  xproc [FILTER]   the scenarios with real processes
  crash-sweep [OPERATION [--at K] | --sample POINTS]
                   killed at every instruction; ci tries a sample
  sim [--seed N | --seeds N] [--cycles N]
                   the simulator of the standby pair; test runs its first seeds
  ci               all of these, with a table at the end

  bench [--json] [--check] [--ms N] [FILTER]
                   what things cost beside their floors and baselines: docs/performance.md
  bench --plot [FILTER]
                   how they grow with the table: docs/figures
  instructions [--record]
                   the hot operations' instructions have not grown; needs valgrind, from
                   the system's packages (apt-get install valgrind)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [] | ["help" | "-h" | "--help"] = words[..] {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match child::kill_on_signal().and_then(|()| dispatch(&words)) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{}: FAILED: {error:#}", words[0]);
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> Outcome {
    let workspace = Workspace::load()?;
    match words {
        ["fmt"] => steps::fmt(&workspace),
        ["lint"] => steps::lint(&workspace),
        ["tidy"] => tidy::run(&workspace),
        ["test"] => steps::test(&workspace),
        ["portable"] => portable::run(&workspace),
        ["doc"] => steps::doc(&workspace),
        ["loom"] => loom::run(&workspace),
        ["model"] => model::run(&workspace, Extent::All),
        ["model", "--quick"] => model::run(&workspace, Extent::Quick),
        ["mutants"] => mutants::run(&workspace, None),
        ["mutants", name] => mutants::run(&workspace, Some(name)),
        ["xproc", filters @ ..] => xproc::run(&workspace, filters),
        ["crash-sweep", words @ ..] => crash_sweep::run(&workspace, words),
        ["sim", words @ ..] => sim::run(&workspace, words),
        ["bench", words @ ..] => bench::run(&workspace, words),
        ["instructions", words @ ..] => instructions::run(&workspace, words),
        ["ci"] => ci::run(&workspace),
        _ => anyhow::bail!("no such check: `{}`\n\n{HELP}", words.join(" ")),
    }
}
