//! Planted bugs: the proof that the models and tests can see what they are there for.
//!
//! `xtask/mutants/*.toml` lists deliberate mistakes, each in one place of one file, with the tests
//! that must fail on it. The runner works on a copy of the tree and requires, for each entry: the
//! text to be replaced occurs exactly once (the list does not rot); each named test passes on the
//! copy as it is; with the mistake in place it still compiles, and each named test fails.

mod list;
pub mod plot;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::Outcome;
use crate::workspace::Workspace;
use list::Mutant;
use plot::{Ended, Plot, Suite};

/// Fewer planted bugs than this prove too little about the protocols.
const PLANTED_MIN: usize = 24;
/// Each of these rules of the slot's protocol has at least one.
const RULES: [&str; 6] = ["1", "2", "3", "4", "5", "6"];
/// A model that has not ended by then hangs.
const TEST_LIMIT: Duration = Duration::from_secs(120);

/// Runs all planted bugs, or the one of this name.
pub fn run(workspace: &Workspace, name: Option<&str>) -> Outcome {
    let mut mutants = list::read(&workspace.root.join("xtask/mutants"))?;
    // Judged last: a list that is still short is run too.
    let covered = match name {
        None => require_coverage(&mutants),
        Some(name) => {
            mutants.retain(|mutant| mutant.name == name);
            ensure!(!mutants.is_empty(), "no planted bug is called `{name}`");
            Ok(())
        }
    };
    let folder = workspace.root.join("target/mutants");
    let closing = plant_all(&workspace.root, &folder, mutants, TEST_LIMIT)?;
    covered.map(|()| closing)
}

fn require_coverage(mutants: &[Mutant]) -> Result<()> {
    ensure!(
        mutants.len() >= PLANTED_MIN,
        "{} planted bugs are listed, at least {PLANTED_MIN} wanted",
        mutants.len()
    );
    let without: Vec<_> = RULES
        .into_iter()
        .filter(|rule| mutants.iter().all(|m| m.rule != *rule))
        .collect();
    ensure!(
        without.is_empty(),
        "no planted bug breaks rule {}",
        without.join(", ")
    );
    Ok(())
}

fn plant_all(root: &Path, folder: &Path, mut mutants: Vec<Mutant>, limit: Duration) -> Outcome {
    // The same build is used as often as possible before the next one.
    mutants.sort_by(|a, b| (&a.suite, &a.file, &a.name).cmp(&(&b.suite, &b.file, &b.name)));
    let plot = Plot::prepare(root, folder)?;
    for mutant in &mutants {
        plot.require_once(&mutant.file, &mutant.find)
            .with_context(|| format!("planted bug `{}`", mutant.name))?;
    }
    require_green(&plot, &mutants, limit)?;

    let mut survivors = Vec::new();
    for mutant in &mutants {
        let began = Instant::now();
        let told = match plant(&plot, mutant, limit) {
            Ok(()) => "caught".to_owned(),
            Err(error) => {
                survivors.push(mutant.name.as_str());
                format!("NOT CAUGHT: {error:#}")
            }
        };
        let (name, rule) = (&mutant.name, &mutant.rule);
        println!(
            "{name} (rule {rule}): {told} ({:.1} s)",
            began.elapsed().as_secs_f64()
        );
    }
    let (planted, caught) = (mutants.len(), mutants.len() - survivors.len());
    let line = format!("{planted} planted, {caught} caught");
    ensure!(
        survivors.is_empty(),
        "{line}; not caught: {}",
        survivors.join(", ")
    );
    Ok(format!("mutants: {line}"))
}

/// A test that fails without a bug would prove nothing by failing with one.
fn require_green(plot: &Plot, mutants: &[Mutant], limit: Duration) -> Result<()> {
    let suites: BTreeSet<&Suite> = mutants.iter().map(|mutant| &mutant.suite).collect();
    for suite in suites {
        let binary = plot
            .build(suite)
            .with_context(|| format!("{suite} as it is"))?;
        let of_suite = mutants.iter().filter(|mutant| mutant.suite == *suite);
        let tests: BTreeSet<&String> = of_suite.flat_map(|mutant| &mutant.tests).collect();
        println!("{suite}: {} tests on the tree as it is", tests.len());
        for test in tests {
            match binary.run(test, limit)? {
                Ended::Passed => {}
                other => bail!("{suite}: `{test}` on the tree as it is: {other}"),
            }
        }
    }
    Ok(())
}

fn plant(plot: &Plot, mutant: &Mutant, limit: Duration) -> Result<()> {
    let _planted = plot.replace(&mutant.file, &mutant.find, &mutant.replace)?;
    let binary = plot.build(&mutant.suite)?;
    for test in &mutant.tests {
        match (binary.run(test, limit)?, mutant.hang) {
            (Ended::Failed, _) | (Ended::Hung, true) => {}
            (other, _) => bail!("`{test}`: {other}"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
[[mutant]]
name = "off_by_one"
rule = "1"
file = "src/lib.rs"
find = "x + 1"
replace = "x + 2"
package = "field"
target = "lib"
pass = "test"
tests = ["tests::one_more"]

[[mutant]]
name = "seen_by_nobody"
rule = "2"
file = "src/lib.rs"
find = "x * 2"
replace = "x * 3"
package = "field"
target = "lib"
pass = "test"
tests = ["tests::one_more"]

[[mutant]]
name = "never_ends"
rule = "3"
file = "src/lib.rs"
find = "while false"
replace = "while true"
package = "field"
target = "lib"
pass = "test"
tests = ["tests::ends"]
hang = true

[[mutant]]
name = "does_not_compile"
rule = "4"
file = "src/lib.rs"
find = "x + 1"
replace = "x + "
package = "field"
target = "lib"
pass = "test"
tests = ["tests::one_more"]
"#;

    const CODE: &str = "\
pub fn more(x: u8) -> u8 { x + 1 }
pub fn twice(x: u8) -> u8 { x * 2 }
pub fn ends() { while false {} }
#[cfg(test)]
mod tests {
    #[test]
    fn one_more() { assert_eq!(super::more(1), 2); }
    #[test]
    fn ends() { super::ends(); assert!(true); }
    #[test]
    fn fails() { assert!(false); }
}
";

    /// A package of one file in a folder of its own.
    fn field() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, content: &str| {
            std::fs::write(folder.path().join(path), content).expect("written");
        };
        std::fs::create_dir(folder.path().join("src")).expect("created");
        let manifest = "[package]\nname = \"field\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
        write("Cargo.toml", &format!("{manifest}[workspace]\n"));
        write(
            "Cargo.lock",
            "version = 4\n[[package]]\nname = \"field\"\nversion = \"0.1.0\"\n",
        );
        write(".gitignore", "/target\n");
        write("src/lib.rs", CODE);
        folder
    }

    fn mutants(names: &[&str]) -> Vec<Mutant> {
        let mut mutants = list::parse(LIST).expect("well formed");
        mutants.retain(|mutant| names.contains(&mutant.name.as_str()));
        mutants
    }

    fn plant_in(field: &tempfile::TempDir, mutants: Vec<Mutant>) -> Outcome {
        let target = field.path().join("target/mutants");
        plant_all(field.path(), &target, mutants, Duration::from_secs(5))
    }

    #[test]
    fn only_a_failing_test_or_an_announced_hang_catches_a_bug() {
        let field = field();
        let caught = plant_in(&field, mutants(&["off_by_one", "never_ends"]));
        assert_eq!(caught.expect("both caught"), "mutants: 2 planted, 2 caught");

        let mut missed = mutants(&["seen_by_nobody", "never_ends", "does_not_compile"]);
        missed.iter_mut().for_each(|mutant| mutant.hang = false);
        assert_eq!(
            plant_in(&field, missed).unwrap_err().to_string(),
            "3 planted, 0 caught; not caught: does_not_compile, never_ends, seen_by_nobody"
        );
        let code = std::fs::read_to_string(field.path().join("src/lib.rs")).expect("read");
        assert_eq!(code, CODE, "the tree itself is never touched");
    }

    #[test]
    fn a_test_that_fails_or_is_missing_without_the_bug_proves_nothing() {
        let field = field();
        for (test, told) in [("tests::fails", "failed"), ("tests::gone", "no such test")] {
            let mut mutants = mutants(&["off_by_one"]);
            mutants[0].tests = vec![test.to_owned()];
            let error = plant_in(&field, mutants).unwrap_err().to_string();
            assert!(error.contains(test) && error.contains(told), "{error}");
        }
    }

    #[test]
    fn text_that_does_not_occur_exactly_once_is_refused_before_anything_is_built() {
        let field = field();
        for (find, told) in [("x", "occurs 4 times"), ("x - 1", "occurs 0 times")] {
            let mut mutants = mutants(&["off_by_one"]);
            mutants[0].find = find.to_owned();
            let error = format!("{:#}", plant_in(&field, mutants).unwrap_err());
            assert!(error.contains(told), "{error}");
        }
    }

    #[test]
    fn a_short_list_and_a_rule_without_a_bug_are_refused() {
        let all: Vec<Mutant> = list::parse(LIST).expect("well formed");
        let error = require_coverage(&all).unwrap_err().to_string();
        assert_eq!(error, "4 planted bugs are listed, at least 24 wanted");
        let many: Vec<Mutant> = (0..PLANTED_MIN).map(|i| all[i % 4].clone()).collect();
        let error = require_coverage(&many).unwrap_err().to_string();
        assert_eq!(error, "no planted bug breaks rule 5, 6");
    }
}
