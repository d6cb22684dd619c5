//! Rules about each package: its root files, its README.

use std::path::Path;

use super::{Finding, Tree};

/// Libraries and binaries outside the substrate forbid unsafe code.
pub fn roots_forbid_unsafe(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree
        .packages
        .iter()
        .filter(|p| p.name != "bumpless-substrate")
    {
        for target in package
            .targets
            .iter()
            .filter(|t| t.is("lib") || t.is("bin"))
        {
            let path = relative(tree, &target.src_path);
            let Some(source) = tree.sources.iter().find(|source| source.path == path) else {
                findings.push(Finding::new(&path, 1, "is not tracked"));
                continue;
            };
            let forbid = ["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"];
            if !source.contains(0..source.tokens.len(), &forbid) {
                findings.push(Finding::new(&path, 1, "no `#![forbid(unsafe_code)]`"));
            }
        }
    }
    findings
}

/// Packages under `crates/` have a README.md with something in it.
pub fn readme(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        let manifest = relative(tree, &package.manifest_path);
        let Some(folder) = manifest.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let readme = format!("{folder}/README.md");
        let found = tree
            .texts
            .iter()
            .any(|(path, text)| *path == readme && !text.trim().is_empty());
        if folder.starts_with("crates/") && !found {
            findings.push(Finding::new(&readme, 1, "missing or empty"));
        }
    }
    findings
}

fn relative(tree: &Tree, path: &Path) -> String {
    path.strip_prefix(&tree.root)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture;
    use crate::workspace::{Package, Target};

    fn package(name: &str, folder: &str) -> Package {
        Package {
            name: name.to_owned(),
            manifest_path: format!("/w/{folder}/Cargo.toml").into(),
            dependencies: vec![],
            targets: vec![Target {
                name: name.to_owned(),
                kind: vec!["lib".to_owned()],
                src_path: format!("/w/{folder}/src/lib.rs").into(),
            }],
        }
    }

    #[test]
    fn a_root_without_forbid_and_a_package_without_readme_are_found() {
        let mut tree = fixture::tree(&[
            ("crates/a/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\n"),
            (
                "crates/b/src/lib.rs",
                "//! `#![forbid(unsafe_code)]` in words only.\n",
            ),
            ("crates/substrate/src/lib.rs", "//! S.\n"),
            ("crates/a/README.md", "# a\n"),
            ("crates/b/README.md", "\n"),
            ("crates/substrate/README.md", "# s\n"),
        ]);
        tree.root = "/w".into();
        tree.packages = vec![
            package("a", "crates/a"),
            package("b", "crates/b"),
            package("bumpless-substrate", "crates/substrate"),
        ];
        let paths = |found: Vec<Finding>| found.into_iter().map(|f| f.path).collect::<Vec<_>>();
        assert_eq!(paths(roots_forbid_unsafe(&tree)), ["crates/b/src/lib.rs"]);
        assert_eq!(paths(readme(&tree)), ["crates/b/README.md"]);
    }
}
