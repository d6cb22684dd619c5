//! The copy of the tree in which bugs are planted, and the test binaries built from it.
//!
//! Only files that differ are written, so that what an earlier run compiled stays valid. Builds are
//! incremental and without debug information; ordinary tests have a target folder of their own, models
//! share the one of the tree.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::cargo;
use crate::child::Child;
use crate::loom;
use crate::model;
use crate::steps::PART_LIMIT;
use crate::tidy::tracked_files;

/// How a test is compiled.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// As an ordinary test.
    Test,
    /// A model, first pass.
    #[default]
    Loom,
    /// A model, loads and stores as read-modify-writes.
    LoomRmw,
    /// The model of the standby pair, optimized.
    Explore,
}

/// A test binary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Suite {
    /// How it is compiled.
    pub pass: Pass,
    /// Its package.
    pub package: String,
    /// Its test target, or `lib`.
    pub target: String,
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{} ({:?})", self.package, self.target, self.pass)
    }
}

/// The copy.
#[derive(Debug)]
pub struct Plot {
    folder: PathBuf,
    /// Where the models of the tree itself are built: what they depend on is already there.
    models: PathBuf,
}

/// A file with a mistake in it; put right again when dropped.
#[derive(Debug)]
pub struct Planted {
    path: PathBuf,
    original: String,
    /// Where cargo keeps what it knows of the tree's models, and how that of the file's package begins.
    prints: PathBuf,
    package: Option<String>,
}

/// A compiled test binary.
#[derive(Debug)]
pub struct Binary {
    path: PathBuf,
    package: PathBuf,
    pass: Pass,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It passed.
    Passed,
    /// It failed, or ended the process by a signal.
    Failed,
    /// It was killed at its limit.
    Hung,
    /// The binary has no test of this name.
    Missing,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Hung => "did not end",
            Self::Missing => "no such test",
        })
    }
}

impl Plot {
    /// Makes `folder/src` equal to the tracked files of `root`.
    pub fn prepare(root: &Path, folder: &Path) -> Result<Self> {
        let copy = folder.join("src");
        fs::create_dir_all(&copy).with_context(|| copy.display().to_string())?;
        let wanted: BTreeSet<String> = tracked_files(root)?.into_iter().collect();
        for path in tracked_files(&copy)?
            .iter()
            .filter(|path| !wanted.contains(*path))
        {
            fs::remove_file(copy.join(path)).with_context(|| path.clone())?;
        }
        for path in &wanted {
            let (from, to) = (root.join(path), copy.join(path));
            let content = fs::read(&from).with_context(|| path.clone())?;
            if fs::read(&to).ok().as_ref() != Some(&content) {
                fs::create_dir_all(to.parent().unwrap_or(&copy))?;
                fs::write(&to, content).with_context(|| path.clone())?;
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
            models: root.join(loom::TARGET_FOLDER),
        })
    }

    /// Fails unless the text occurs exactly once in the file.
    pub fn require_once(&self, file: &str, text: &str) -> Result<()> {
        let content = fs::read_to_string(self.source(file)).with_context(|| file.to_owned())?;
        let times = content.matches(text).count();
        ensure!(
            times == 1,
            "the text to be replaced occurs {times} times in {file}, not once"
        );
        Ok(())
    }

    /// Replaces the text until the returned value is dropped.
    pub fn replace(&self, file: &str, find: &str, replace: &str) -> Result<Planted> {
        self.require_once(file, find)?;
        let path = self.source(file);
        let original = fs::read_to_string(&path).with_context(|| file.to_owned())?;
        let mistaken = original.replacen(find, replace, 1);
        let planted = Planted {
            path,
            original,
            prints: self.models.join("model/.fingerprint"),
            package: package_of(file),
        };
        fs::write(&planted.path, mistaken).with_context(|| file.to_owned())?;
        Ok(planted)
    }

    /// Compiles a test binary from the copy as it is now.
    pub fn build(&self, suite: &Suite) -> Result<Binary> {
        let finished = Child::new(self.build_command(suite), PART_LIMIT).run()?;
        finished
            .require("does not compile")
            .with_context(|| finished.text())?;
        for line in &finished.stdout {
            let Ok(artifact) = serde_json::from_str::<Artifact>(line) else {
                continue;
            };
            let package = artifact.manifest_path.parent().map(Path::to_owned);
            if let (true, Some(path), Some(package)) =
                (artifact.profile.test, artifact.executable, package)
            {
                let pass = suite.pass;
                return Ok(Binary {
                    path,
                    package,
                    pass,
                });
            }
        }
        bail!("cargo named no test binary for {suite}");
    }

    fn build_command(&self, suite: &Suite) -> Command {
        let arguments = ["test", "--no-run", "--locked", "--message-format", "json"];
        let mut command = cargo::command(&self.folder.join("src"), &arguments);
        command.args(["-p", &suite.package]);
        match suite.target.as_str() {
            "lib" => command.arg("--lib"),
            test => command.args(["--test", test]),
        };
        match suite.pass {
            Pass::Test => {
                command.env("CARGO_TARGET_DIR", self.folder.join("test"));
            }
            Pass::Loom => loom::set_up(&mut command, loom::Pass::Plain, &self.models),
            Pass::LoomRmw => loom::set_up(&mut command, loom::Pass::Rmw, &self.models),
            Pass::Explore => model::set_up(&mut command, &self.folder.join("explore")),
        }
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        command
    }

    fn source(&self, file: &str) -> PathBuf {
        self.folder.join("src").join(file)
    }
}

/// The beginning of what cargo keeps of the package in which a file lies.
fn package_of(file: &str) -> Option<String> {
    let (folder, _) = file.strip_prefix("crates/")?.split_once('/')?;
    Some(format!("bumpless-{folder}-"))
}

/// Has cargo build the package again: the tree's own files are older than what was built with a mistake in
/// it, under the same name, so that the tree's models would be taken for built.
fn forget(prints: &Path, package: &str) -> std::io::Result<()> {
    for entry in fs::read_dir(prints)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(package) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

impl Drop for Planted {
    fn drop(&mut self) {
        if let Some(package) = &self.package
            && let Err(error) = forget(&self.prints, package)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            eprintln!("{}: {error}", self.prints.display());
        }
        if let Err(error) = fs::write(&self.path, &self.original) {
            // The next run makes the copy equal to the tree before it builds anything.
            eprintln!("{}: not put right: {error}", self.path.display());
        }
    }
}

impl Binary {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs the one test of this name.
    pub fn run(&self, test: &str, limit: Duration) -> Result<Ended> {
        let mut command = Command::new(&self.path);
        command.args(["--exact", test, "--test-threads=1"]);
        command
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package);
        match self.pass {
            Pass::Loom => loom::set_up_run(&mut command, loom::Pass::Plain),
            Pass::LoomRmw => loom::set_up_run(&mut command, loom::Pass::Rmw),
            Pass::Test | Pass::Explore => {}
        }
        let finished = Child::new(command, limit).run()?;
        let ran = finished.stdout.iter().any(|line| line == "running 1 test");
        Ok(match finished.status {
            _ if !ran => Ended::Missing,
            None => Ended::Hung,
            Some(status) if status.success() => Ended::Passed,
            Some(_) => Ended::Failed,
        })
    }
}

/// A line of cargo's JSON output, as far as it names a test binary.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    executable: Option<PathBuf>,
    profile: Profile,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_with_a_mistake_in_it_is_forgotten_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = [
            "bumpless-a-0f",
            "bumpless-a-1f",
            "bumpless-ab-2f",
            "loom-3f",
        ];
        for name in names {
            fs::create_dir(folder.path().join(name)).expect("room");
        }
        let package = package_of("crates/a/src/lib.rs").expect("a package's file");
        forget(folder.path(), &package).expect("forgotten");
        let is_left = names.map(|name| folder.path().join(name).exists());
        assert_eq!(is_left, [false, false, true, true]);
        assert_eq!(package_of("xtask/src/main.rs"), None);
    }
}
