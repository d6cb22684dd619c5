//! The workspace as cargo describes it: packages, their dependencies among each other, targets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::cargo;
use crate::child::Child;

/// What `cargo metadata --no-deps` says, as far as the checks need it.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    /// The folder of the root manifest.
    #[serde(rename = "workspace_root")]
    pub root: PathBuf,
    /// The members.
    pub packages: Vec<Package>,
}

/// A member of the workspace.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name in the manifest.
    pub name: String,
    /// The path of its manifest.
    pub manifest_path: PathBuf,
    /// Everything it depends on.
    pub dependencies: Vec<Dependency>,
    /// Libraries, binaries, tests, examples.
    pub targets: Vec<Target>,
}

/// A dependency; only the ones with a path are the workspace's own.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The name of the package depended on.
    pub name: String,
    /// `dev`, `build`, or none for a normal one.
    pub kind: Option<String>,
    /// Where it lies, when it is a member.
    pub path: Option<PathBuf>,
}

/// A target of a package.
#[derive(Debug, Deserialize)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// `lib`, `bin`, `test`, `example`, ...
    pub kind: Vec<String>,
    /// Its root file.
    pub src_path: PathBuf,
}

impl Workspace {
    /// Asks cargo about the workspace that this program was built in.
    pub fn load() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .unwrap_or(Path::new("."));
        let command = cargo::command(root, &["metadata", "--no-deps", "--format-version", "1"]);
        let finished = Child::new(command, Duration::from_secs(120)).run()?;
        finished
            .require("cargo metadata")
            .with_context(|| finished.text())?;
        serde_json::from_str(&finished.stdout.concat()).context("cargo metadata: not as expected")
    }

    /// The packages that have an integration test target of this name.
    pub fn packages_with_test(&self, name: &str) -> Vec<&Package> {
        let has = |package: &&Package| {
            package
                .targets
                .iter()
                .any(|t| t.is("test") && t.name == name)
        };
        self.packages.iter().filter(has).collect()
    }

    /// All targets of a kind, with their package.
    pub fn targets(&self, kind: &str) -> impl Iterator<Item = (&Package, &Target)> {
        let all = self
            .packages
            .iter()
            .flat_map(|p| p.targets.iter().map(move |t| (p, t)));
        all.filter(move |(_, target)| target.is(kind))
    }
}

impl Target {
    /// Whether it is of this kind.
    pub fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|found| found == kind)
    }
}
