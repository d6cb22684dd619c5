//! Files of the pool's own, which a walk leaves out.
//!
//! Contract: compared by folder and name, so that it does not matter how the walk spells the way
//! there; only a path whose last part fits costs a system call.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How a manifest's temporary names end.
pub const PARTIAL: &str = ".partial";

/// What else, beside the name itself, is the pool's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnKind {
    /// `.NAME.PID.partial`.
    Manifest,
    /// `NAME.anything`.
    Table,
    /// Nothing: a folder.
    OutputDir,
}

/// A name in a folder.
#[derive(Debug, Clone)]
pub struct OwnName {
    /// Canonical.
    pub folder: PathBuf,
    /// The name in it.
    pub name: OsString,
    /// What else.
    pub kind: OwnKind,
}

impl OwnName {
    /// Of something that exists, or whose folder does.
    pub fn of(path: &Path, kind: OwnKind) -> Option<Self> {
        let name = path.file_name()?.to_owned();
        Some(Self {
            folder: folder_of(path)?,
            name,
            kind,
        })
    }

    /// Whether a walked path is this, or belongs to it.
    #[must_use]
    pub fn is(&self, path: &Path) -> bool {
        let (Some(found), name) = (path.file_name(), self.name.as_bytes()) else {
            return false;
        };
        let found = found.as_bytes();
        let fits = found == name
            || match self.kind {
                OwnKind::Manifest => is_temporary(found, name),
                OwnKind::Table => found
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(b".")),
                OwnKind::OutputDir => false,
            };
        fits && folder_of(path).as_deref() == Some(self.folder.as_path())
    }
}

fn folder_of(path: &Path) -> Option<PathBuf> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).canonicalize().ok()
}

fn is_temporary(found: &[u8], name: &[u8]) -> bool {
    let inner = found
        .strip_prefix(b".")
        .and_then(|rest| rest.strip_prefix(name))
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(PARTIAL.as_bytes()));
    inner.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_own_in_its_folder_alone_however_it_is_spelled() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnName::of(&folder.path().join("m"), OwnKind::Manifest).unwrap();
        let is = |name: &str| own.is(&folder.path().join(name));
        assert!(is("m") && is(".m.1.partial"));
        assert!(!is(".m..partial") && !is(".m.x.partial") && !is("m.1.partial") && !is("n"));
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        assert!(!is("sub/m"));
        assert!(is("sub/../m"));
    }

    #[test]
    fn what_lies_beside_a_table_under_its_name_is_own_too() {
        let folder = tempfile::tempdir().unwrap();
        let own = OwnName::of(&folder.path().join("t"), OwnKind::Table).unwrap();
        let is = |name: &str| own.is(&folder.path().join(name));
        assert!(is("t") && is("t.lock") && is("t.lanes.lock"));
        assert!(!is("tx") && !is("x.t"));
    }
}
