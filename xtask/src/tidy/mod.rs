//! The house rules that no compiler checks. Each is a function over the [`Tree`] with a test on a
//! fixture that breaks it.
//!
//! | rule | says |
//! |---|---|
//! | layers | a package depends, also for its tests, only on packages of lower layers |
//! | unsafe | the word `unsafe` stands in code of the substrate alone |
//! | forbid | every library and binary outside the substrate has `#![forbid(unsafe_code)]` |
//! | readme | every package under `crates/` has a README.md |
//! | header | every Rust file opens with `//!` |
//! | names | no file, folder or module is called util, utils, common or helpers |
//! | length | no Rust file has more than 500 lines; from 400 on it is listed |
//! | asserts | every test can fail: it asserts, or calls a function named `assert_`, `check_`, `expect_` |
//! | shortcuts | no ignored test, no `todo!`, `unimplemented!`, `dbg!` |
//! | sleeps | no test sleeps; only a function named `await_...` pauses between two looks |
//! | ordering | a comment at every atomic access that is not relaxed says what it pairs with |
//! | relaxed | a comment says why relaxed is enough: at the access, or one that names `Relaxed` in or above the function, or a `//!` line `Relaxed: ...` that speaks for the file |
//! | paths | no file but the lock file names a folder of one machine or a package source |

mod layers;
mod orderings;
mod packages;
mod source;
mod test_code;
mod text;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::Outcome;
use crate::workspace::{Package, Workspace};
use source::Source;

/// Everything that the rules look at.
#[derive(Debug)]
struct Tree {
    root: PathBuf,
    packages: Vec<Package>,
    /// The Rust files.
    sources: Vec<Source>,
    /// The other text files: path relative to the root, content.
    texts: Vec<(String, String)>,
}

/// One place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    path: String,
    line: usize,
    what: String,
}

impl Finding {
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: [(&str, Rule); 13] = [
    ("layers", layers::upward_only),
    ("unsafe", text::unsafe_in_the_substrate_alone),
    ("forbid", packages::roots_forbid_unsafe),
    ("readme", packages::readme),
    ("header", text::header),
    ("names", text::names),
    ("length", text::length),
    ("asserts", test_code::asserts),
    ("shortcuts", test_code::shortcuts),
    ("sleeps", test_code::sleeps),
    ("ordering", orderings::partner_named),
    ("relaxed", orderings::relaxed_explained),
    ("paths", text::machine_paths),
];

/// Applies every rule to the working tree: what git tracks or would track.
pub fn run(workspace: &Workspace) -> Outcome {
    let tree = Tree::read(&workspace.root, Workspace::load()?.packages)?;
    let mut findings = 0;
    for (name, rule) in RULES {
        for finding in rule(&tree) {
            println!(
                "{}:{}: {name}: {}",
                finding.path, finding.line, finding.what
            );
            findings += 1;
        }
    }
    for source in tree
        .sources
        .iter()
        .filter(|source| source.lines() > text::LINES_LISTED)
    {
        println!("{}: {} lines, long", source.path, source.lines());
    }
    let files = tree.sources.len() + tree.texts.len();
    let line = format!("{} rules, {files} files, {findings} findings", RULES.len());
    if findings > 0 {
        bail!("{line}");
    }
    Ok(format!("tidy: {line}"))
}

impl Tree {
    fn read(root: &Path, packages: Vec<Package>) -> anyhow::Result<Self> {
        let (mut sources, mut texts) = (Vec::new(), Vec::new());
        for path in tracked_files(root)? {
            let bytes = std::fs::read(root.join(&path)).with_context(|| path.clone())?;
            let Ok(content) = String::from_utf8(bytes) else {
                continue;
            };
            if path.ends_with(".rs") {
                sources.push(Source::parse(&path, content)?);
            } else {
                texts.push((path, content));
            }
        }
        Ok(Self {
            root: root.to_owned(),
            packages,
            sources,
            texts,
        })
    }
}

/// Files below `root` that no `.gitignore` leaves out, relative to it, in order of their paths.
pub fn tracked_files(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut builder = ignore::WalkBuilder::new(root);
    // Only what lies in the tree decides: not a user's global excludes, nor folders above.
    builder
        .hidden(false)
        .parents(false)
        .git_global(false)
        .git_exclude(false)
        .require_git(false);
    builder.filter_entry(|entry| entry.file_name() != ".git");
    builder.sort_by_file_path(Path::cmp);
    let mut files = Vec::new();
    for entry in builder.build() {
        let entry = entry.context("walking the tree")?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) {
            let relative = entry
                .path()
                .strip_prefix(root)
                .context("a path below the root")?;
            files.push(relative.to_string_lossy().into_owned());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod fixture {
    use super::*;

    /// A tree of these files, Rust and others, without packages.
    pub fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree {
            root: PathBuf::new(),
            packages: vec![],
            sources: vec![],
            texts: vec![],
        };
        for (path, content) in files {
            if path.ends_with(".rs") {
                tree.sources
                    .push(Source::parse(path, (*content).to_owned()).expect("Rust"));
            } else {
                tree.texts.push(((*path).to_owned(), (*content).to_owned()));
            }
        }
        tree
    }

    /// Where the rule finds something: `path:line`.
    pub fn places(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
        rule(&tree(files))
            .iter()
            .map(|f| format!("{}:{}", f.path, f.line))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_leaves_out_what_gitignore_names_and_keeps_hidden_files() {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, content) in [
            (".gitignore", "/target\n"),
            (".ci/run", ""),
            ("target/debug/x.rs", ""),
            (".git/config", ""),
            ("src/lib.rs", ""),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("created");
            std::fs::write(path, content).expect("written");
        }
        let files = tracked_files(folder.path()).expect("walked");
        assert_eq!(files, [".ci/run", ".gitignore", "src/lib.rs"]);
    }
}
