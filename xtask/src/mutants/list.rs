//! The list of planted bugs: `xtask/mutants/*.toml`.
//!
//! ```toml
//! [[mutant]]
//! name = "claim_by_store"              # unique
//! rule = "1"                           # the rule of the design that it breaks, or a word
//! file = "crates/substrate/src/x.rs"
//! find = '''the exact text'''          # occurs once in the file
//! replace = '''the mistake'''
//! package = "bumpless-heartbeat"       # whose tests must see it
//! target = "loom"                      # test target, or "lib"; "loom" when left out
//! pass = "loom"                        # or "loom_rmw", or "test" for an ordinary test; "loom" when left out
//! tests = ["claim::two_claimers"]      # full names; every one must fail
//! hang = false                         # true: not ending within the limit is the failure
//! ```

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::plot::{Pass, Suite};

/// A deliberate mistake and the tests that must fail on it.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Unique.
    pub name: String,
    /// What it breaks.
    pub rule: String,
    /// Relative to the root.
    pub file: String,
    /// What is replaced.
    pub find: String,
    /// By what.
    pub replace: String,
    /// Where the tests are.
    pub suite: Suite,
    /// Their full names.
    pub tests: Vec<String>,
    /// Whether a test that does not end counts as one that fails.
    pub hang: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListFile {
    mutant: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    rule: String,
    file: String,
    find: String,
    replace: String,
    package: String,
    #[serde(default = "loom_target")]
    target: String,
    #[serde(default)]
    pass: Pass,
    tests: Vec<String>,
    #[serde(default)]
    hang: bool,
}

fn loom_target() -> String {
    crate::loom::TARGET.to_owned()
}

/// Reads every list in the folder.
pub fn read(folder: &Path) -> Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            let text = std::fs::read_to_string(&path)?;
            mutants.extend(parse(&text).with_context(|| path.display().to_string())?);
        }
    }
    require_unique(&mutants)?;
    Ok(mutants)
}

/// Reads one list.
pub fn parse(text: &str) -> Result<Vec<Mutant>> {
    let list: ListFile = toml::from_str(text)?;
    let mutants: Vec<Mutant> = list.mutant.into_iter().map(Mutant::from).collect();
    for mutant in &mutants {
        ensure!(!mutant.tests.is_empty(), "`{}` names no test", mutant.name);
        ensure!(
            mutant.find != mutant.replace,
            "`{}` changes nothing",
            mutant.name
        );
    }
    require_unique(&mutants)?;
    Ok(mutants)
}

fn require_unique(mutants: &[Mutant]) -> Result<()> {
    let mut names = BTreeSet::new();
    for mutant in mutants {
        ensure!(
            names.insert(&mutant.name),
            "two planted bugs are called `{}`",
            mutant.name
        );
    }
    Ok(())
}

impl From<Entry> for Mutant {
    fn from(entry: Entry) -> Self {
        let Entry {
            name,
            rule,
            file,
            find,
            replace,
            package,
            target,
            pass,
            tests,
            hang,
        } = entry;
        let suite = Suite {
            pass,
            package,
            target,
        };
        Self {
            name,
            rule,
            file,
            find,
            replace,
            suite,
            tests,
            hang,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "[[mutant]]\nname = 'a'\nrule = '1'\nfile = 'f'\nfind = 'x'\nreplace = 'y'\npackage = 'p'\ntests = ['t']\n";

    #[test]
    fn target_pass_and_hang_have_defaults() {
        let mutants = parse(ENTRY).expect("well formed");
        let suite = Suite {
            pass: Pass::Loom,
            package: "p".into(),
            target: "loom".into(),
        };
        assert_eq!((&mutants[0].suite, mutants[0].hang), (&suite, false));
        let with_pass = parse(&format!("{ENTRY}pass = 'loom_rmw'\n")).expect("well formed");
        assert_eq!(with_pass[0].suite.pass, Pass::LoomRmw);
    }

    #[test]
    fn a_list_that_says_nothing_or_too_much_is_refused() {
        for (text, told) in [
            (format!("{ENTRY}{ENTRY}"), "two planted bugs are called `a`"),
            (ENTRY.replace("['t']", "[]"), "`a` names no test"),
            (ENTRY.replace("'y'", "'x'"), "`a` changes nothing"),
            (format!("{ENTRY}expected = 1\n"), "unknown field `expected`"),
            (
                format!("{ENTRY}pass = 'shuttle'\n"),
                "unknown variant `shuttle`",
            ),
        ] {
            let error = format!("{:#}", parse(&text).unwrap_err());
            assert!(error.contains(told), "{error}");
        }
    }
}
