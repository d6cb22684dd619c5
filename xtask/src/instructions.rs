//! How many instructions the hot operations take, counted by callgrind, against what is recorded.
//!
//! Contract: counted is the measuring program, as it is shipped: once with 1,000 and once with 41,000
//! repetitions, so that a 40,000th of the difference is one operation; of ticks 3,000, as many as a conversation
//! has. Fails when one has grown by more than 2 %. Raw beats are counted in a program without the sidecar and in
//! one with it, and told side by side: the compiler makes less of a beat a part of its caller where it has
//! others. Needs `valgrind`, from the system's packages; not part of `ci`. Why not gungraun:
//! `docs/performance.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::child::Child;
use crate::steps::{self, PART_LIMIT};
use crate::workspace::Workspace;
use crate::{Outcome, cargo};

const RECORD: &str = "benches/instructions.toml";
const PACKAGE: &str = "bumpless-benches";
const TARGET: &str = "target/instructions";
/// Raw beats without the sidecar, and with it.
const RAW: [&str; 2] = ["raw_beats", "raw_beats_beside_sidecar"];
/// What the names of everything in the sidecar have in them.
const SIDECAR: &[u8] = b"bumpless_sidecar";
const VALGRIND: &str = "valgrind";
const INSTALL: &str = "install it from the system's packages: apt-get install valgrind";
const FEW: u64 = 1_000;
const MANY: u64 = 3_000;
/// What comes before and after operations on a table differs by some 2,000 instructions from run to run: with
/// so many operations, by a twentieth of one for each.
const MANY_OF_A_TABLE: u64 = 41_000;
const GROWTH_LIMIT: f64 = 1.02;
const LIMIT: Duration = Duration::from_secs(300);

/// Counts, and compares with the record; `--record` writes it anew.
pub fn run(workspace: &Workspace, words: &[&str]) -> Outcome {
    let path = workspace.root.join(RECORD);
    let text = fs::read_to_string(&path).context(RECORD)?;
    let recorded: BTreeMap<String, f64> = toml::from_str(&text).context(RECORD)?;
    require_valgrind()?;
    build(workspace)?;
    let mut lines = String::new();
    let mut grown = Vec::new();
    for (name, before) in &recorded {
        let counted = |times: u64| {
            let words = ["--count", name, &times.to_string()];
            count(workspace, PACKAGE, &words, &[])
        };
        let many = match name.starts_with("tick") {
            true => MANY,
            false => MANY_OF_A_TABLE,
        };
        let now = (counted(many)? - counted(FEW)?) as f64 / (many - FEW) as f64;
        println!("{name:24} {now:>10.1}, recorded {before:.1}");
        lines += &format!("\"{name}\" = {now:.1}\n");
        if has_grown(*before, now) {
            grown.push(format!("{name}: {before:.1} to {now:.1}"));
        }
    }
    let [raw, beside] = raw_beats(workspace)?;
    match words {
        ["--record"] => {
            let comments = text.lines().filter(|line| line.starts_with('#'));
            let head: String = comments.map(|line| format!("{line}\n")).collect();
            fs::write(&path, head + &lines).context(RECORD)?;
        }
        [] if !grown.is_empty() => bail!("grown: {}", grown.join("; ")),
        [] => {}
        _ => bail!("instructions [--record]"),
    }
    Ok(format!(
        "instructions: {} operations; a raw beat {raw:.1}, beside the sidecar {beside:.1}",
        recorded.len()
    ))
}

/// Before a build of minutes.
fn require_valgrind() -> anyhow::Result<()> {
    let mut command = Command::new(VALGRIND);
    command.arg("--version");
    let found = Child::new(command, LIMIT).run();
    let found = found.with_context(|| format!("cannot run `{VALGRIND}`: {INSTALL}"))?;
    found.require(VALGRIND).context(INSTALL)
}

/// Instructions of a raw beat, in a program without the sidecar and in one with it.
fn raw_beats(workspace: &Workspace) -> anyhow::Result<[f64; 2]> {
    let mut counts = [0; 2];
    for (count_of, (program, has_sidecar)) in
        counts.iter_mut().zip(RAW.into_iter().zip([false, true]))
    {
        let file = fs::read(program_path(workspace, program)).context(program)?;
        let found = file.windows(SIDECAR.len()).any(|window| window == SIDECAR);
        ensure!(
            found == has_sidecar,
            "{program}: the sidecar is in it: {found}, wanted {has_sidecar}"
        );
        // The beat itself: what its caller does with the answer is not the table's.
        let only_beats = ["--toggle-collect=*HeartbeatTable::beat"];
        *count_of = count(workspace, program, &[&MANY.to_string()], &only_beats)?;
    }
    let [alone, beside] = counts;
    println!(
        "{:24} {alone:>10}, beside the sidecar {beside}",
        format!("{MANY} raw beats")
    );
    ensure!(alone > MANY, "{alone} instructions for {MANY} raw beats");
    ensure!(
        alone == beside,
        "{MANY} raw beats: {alone} instructions, and {beside} with the sidecar in the program"
    );
    Ok([alone, beside].map(|count| count as f64 / MANY as f64))
}

fn program_path(workspace: &Workspace, program: &str) -> PathBuf {
    workspace.root.join(TARGET).join("release").join(program)
}

/// With the C library's system calls: valgrind hides the kernel's own page of code, which rustix would
/// otherwise look for the clock in.
fn build(workspace: &Workspace) -> anyhow::Result<()> {
    let words = ["build", "--release", "--locked", "-p", PACKAGE];
    let mut command = cargo::command(&workspace.root, &words);
    command
        .env("RUSTFLAGS", "--cfg rustix_use_libc")
        .env("CARGO_TARGET_DIR", workspace.root.join(TARGET));
    steps::run(Child::new(command, PART_LIMIT))?.require("cargo build")
}

fn has_grown(before: f64, now: f64) -> bool {
    now > before * GROWTH_LIMIT
}

/// Instructions of a run: all, unless callgrind is told which.
fn count(
    workspace: &Workspace,
    program: &str,
    words: &[&str],
    which: &[&str],
) -> anyhow::Result<u64> {
    let mut command = Command::new(VALGRIND);
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(which)
        .arg(program_path(workspace, program))
        .args(words);
    let finished = Child::new(command, LIMIT).run()?;
    finished
        .require(VALGRIND)
        .with_context(|| finished.text())?;
    collected(&finished.stderr).with_context(|| finished.text())
}

fn collected(lines: &[String]) -> Option<u64> {
    let line = lines.iter().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callgrinds_last_words_are_the_count() {
        let lines = ["==7== Events    : Ir", "==7== Collected : 123456"].map(str::to_owned);
        assert_eq!(collected(&lines), Some(123_456));
        assert_eq!(collected(&lines[..1]), None);
    }

    #[test]
    fn two_in_a_hundred_are_no_growth_and_three_are() {
        assert!(!has_grown(100.0, 102.0));
        assert!(has_grown(100.0, 103.0));
        assert!(!has_grown(100.0, 50.0));
    }
}
