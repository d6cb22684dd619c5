//! Which files there are, in an order that is the same each time.
//!
//! Contract: symlinks below a given path are not followed, a given path that is one is; what is
//! neither file nor folder is skipped and counted; a name in a folder counts once, by whatever way it
//! is reached (two names of one file are two); folders are walked by the bytes of the names. Errors
//! stop nothing: each is passed on with its path.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// What the walk comes across.
#[derive(Debug)]
pub enum Found {
    /// A file to process, named as the user named the path to it.
    File(PathBuf),
    /// What could not be looked at.
    Failed(PathBuf, String),
    /// FIFOs, sockets, devices.
    Skipped,
}

/// Where paths come from.
#[derive(Debug)]
pub struct Sources {
    /// Given as arguments.
    pub paths: Vec<PathBuf>,
    /// A list of more: a file, or `-`.
    pub files_from: Option<PathBuf>,
    /// What ends each of them in the list.
    pub separator: u8,
}

/// Walks everything. `is_own` names files and folders to be left out; `found` says whether to go on.
pub fn walk(
    sources: &Sources,
    is_own: &dyn Fn(&Path) -> bool,
    found: &mut dyn FnMut(Found) -> bool,
) {
    let mut walk = Walk {
        is_own,
        found,
        // One path alone reaches each name once.
        seen: (sources.paths.len() != 1 || sources.files_from.is_some()).then(HashSet::new),
        goes_on: true,
    };
    for path in &sources.paths {
        walk.root(path);
    }
    if let Some(list) = &sources.files_from {
        walk.list(list, sources.separator);
    }
}

struct Walk<'a> {
    is_own: &'a dyn Fn(&Path) -> bool,
    found: &'a mut dyn FnMut(Found) -> bool,
    seen: Option<HashSet<PathBuf>>,
    goes_on: bool,
}

impl Walk<'_> {
    fn list(&mut self, list: &Path, separator: u8) {
        let opened: std::io::Result<Box<dyn BufRead>> = if list == Path::new("-") {
            Ok(Box::new(std::io::stdin().lock()))
        } else {
            std::fs::File::open(list).map(|file| Box::new(BufReader::new(file)) as Box<dyn BufRead>)
        };
        let mut lines = match opened {
            Ok(reader) => reader.split(separator),
            Err(error) => return self.failed(list, &error),
        };
        while self.goes_on {
            match lines.next() {
                Some(Ok(name)) if name.is_empty() => {}
                Some(Ok(name)) => self.root(Path::new(&std::ffi::OsString::from_vec(name))),
                Some(Err(error)) => return self.failed(list, &error),
                None => return,
            }
        }
    }

    fn root(&mut self, root: &Path) {
        if !self.goes_on {
            return;
        }
        match std::fs::metadata(root) {
            Ok(found) if found.is_dir() => self.folder(root),
            Ok(found) if found.is_file() && (self.is_own)(root) => {}
            Ok(found) if found.is_file() => {
                let place = self.place_of(root);
                self.file(root.to_owned(), place);
            }
            Ok(_) => self.tell(Found::Skipped),
            Err(error) => self.failed(root, &error),
        }
    }

    fn folder(&mut self, root: &Path) {
        let place = match (&self.seen, root.canonicalize()) {
            (None, _) => None,
            (Some(_), Ok(place)) => Some(place),
            (Some(_), Err(error)) => return self.failed(root, &error),
        };
        let entries = WalkDir::new(root)
            .follow_links(false)
            .follow_root_links(true)
            .sort_by_file_name();
        let is_own = self.is_own;
        for entry in entries
            .into_iter()
            .filter_entry(|entry| entry.depth() == 0 || !is_own(entry.path()))
        {
            if !self.goes_on {
                return;
            }
            match entry {
                Ok(entry) if entry.file_type().is_file() => {
                    let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
                    let place = place.as_ref().map(|place| place.join(below));
                    self.file(entry.into_path(), place);
                }
                Ok(entry) if entry.file_type().is_dir() || entry.file_type().is_symlink() => {}
                Ok(_) => self.tell(Found::Skipped),
                Err(error) => {
                    let path = error.path().unwrap_or(root).to_owned();
                    let reason = error.io_error().map_or_else(
                        || std::io::Error::from(ErrorKind::Other),
                        |inner| {
                            inner.raw_os_error().map_or_else(
                                || inner.kind().into(),
                                std::io::Error::from_raw_os_error,
                            )
                        },
                    );
                    self.failed(&path, &reason);
                }
            }
        }
    }

    /// The name's place, free of symlinks and dots; None when it is not needed.
    fn place_of(&self, path: &Path) -> Option<PathBuf> {
        self.seen.as_ref()?;
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new(".")).canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    }

    fn file(&mut self, path: PathBuf, place: Option<PathBuf>) {
        if let (Some(seen), Some(place)) = (&mut self.seen, place)
            && !seen.insert(place)
        {
            return;
        }
        self.tell(Found::File(path));
    }

    fn failed(&mut self, path: &Path, error: &std::io::Error) {
        self.tell(Found::Failed(path.to_owned(), error.to_string()));
    }

    fn tell(&mut self, found: Found) {
        self.goes_on = (self.found)(found);
    }
}

/// A path for people: on one line, whatever its bytes.
pub fn shown(path: &OsStr) -> String {
    let mut line = Vec::with_capacity(path.len());
    super::manifest::push_escaped(&mut line, path.as_bytes());
    String::from_utf8_lossy(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn walked(paths: &[PathBuf], files_from: Option<PathBuf>, separator: u8) -> Vec<String> {
        let sources = Sources {
            paths: paths.to_vec(),
            files_from,
            separator,
        };
        let mut names = Vec::new();
        let is_own = |path: &Path| path.ends_with("own");
        walk(&sources, &is_own, &mut |found| {
            names.push(match found {
                Found::File(path) => path.to_string_lossy().into_owned(),
                Found::Failed(path, _) => format!("failed {}", path.display()),
                Found::Skipped => "skipped".to_owned(),
            });
            true
        });
        names
    }

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let at = |name: &str| tree.path().join(name);
        fs::create_dir_all(at("d/e")).unwrap();
        for file in ["d/b", "d/a", "d/e/c", "d/own", "f"] {
            fs::write(at(file), file).unwrap();
        }
        symlink("../f", at("d/link")).unwrap();
        symlink("d", at("linked")).unwrap();
        let fifo = at("d/fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        tree
    }

    fn below(tree: &tempfile::TempDir, names: Vec<String>) -> Vec<String> {
        let root = format!("{}/", tree.path().display());
        names
            .into_iter()
            .map(|name| name.replace(&root, ""))
            .collect()
    }

    #[test]
    fn a_folder_is_walked_by_name_without_symlinks_and_without_what_is_own() {
        let tree = tree();
        let names = walked(&[tree.path().join("d")], None, b'\n');
        assert_eq!(below(&tree, names), ["d/a", "d/b", "d/e/c", "skipped"]);
    }

    #[test]
    fn a_given_symlink_is_followed_and_a_given_file_is_taken() {
        let tree = tree();
        let paths = ["linked", "f"].map(|name| tree.path().join(name));
        let names = walked(&paths, None, b'\n');
        assert_eq!(
            below(&tree, names),
            ["linked/a", "linked/b", "linked/e/c", "skipped", "f"]
        );
    }

    #[test]
    fn a_name_reached_twice_counts_once_under_its_first_spelling() {
        let tree = tree();
        let paths = ["d/e/../b", "d", "linked", "d/link", "f"].map(|name| tree.path().join(name));
        let names = walked(&paths, None, b'\n');
        let names: Vec<_> = below(&tree, names)
            .into_iter()
            .filter(|name| name != "skipped")
            .collect();
        assert_eq!(names, ["d/e/../b", "d/a", "d/e/c", "d/link", "f"]);
    }

    #[test]
    fn a_list_of_names_may_hold_any_bytes() {
        let tree = tree();
        let odd = tree.path().join(OsStr::from_bytes(b"new\nline \xff"));
        fs::write(&odd, "x").unwrap();
        let list = tree.path().join("list");
        let mut bytes = odd.as_os_str().as_bytes().to_vec();
        bytes.extend_from_slice(b"\0\0");
        bytes.extend_from_slice(tree.path().join("f").as_os_str().as_bytes());
        fs::write(&list, bytes).unwrap();
        let names = walked(&[], Some(list), 0);
        assert_eq!(below(&tree, names), ["new\nline \u{fffd}", "f"]);
    }

    #[test]
    fn what_is_missing_is_named_and_stops_nothing() {
        let tree = tree();
        let paths = ["none", "f"].map(|name| tree.path().join(name));
        let names = walked(&paths, Some(tree.path().join("no-list")), b'\n');
        assert_eq!(
            below(&tree, names),
            [
                "failed ".to_owned() + &paths[0].display().to_string(),
                "f".to_owned(),
                format!("failed {}", tree.path().join("no-list").display())
            ]
            .map(|name| name.replace(&format!("{}/", tree.path().display()), ""))
        );
    }
}
