//! The manifest: lines that `sha256sum -c` reads, written at once when all is done.
//!
//! Contract: who looks at the path sees the old file or the whole new one, on disk; a pool that fails
//! or is interrupted leaves no trace of it. A path with newline, carriage return or backslash has
//! them escaped and its line begins with a backslash, as GNU coreutils does.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::PoolError;
use super::own::{OwnKind, OwnName, PARTIAL};

/// Where the manifest goes.
#[derive(Debug)]
pub enum Manifest {
    /// Standard output, or a pipe or device: nothing to rename.
    Stream(Option<(PathBuf, File)>),
    /// A regular file: written beside its place, then renamed.
    Beside(Beside),
}

/// A file under a temporary name; removed unless it was renamed.
#[derive(Debug)]
pub struct Beside {
    folder: PathBuf,
    name: OsString,
    temporary: PathBuf,
    file: Option<File>,
}

impl Manifest {
    /// Makes sure that the manifest can be written later.
    ///
    /// # Errors
    /// [`PoolError::File`].
    pub fn prepare(path: Option<&Path>) -> Result<Self, PoolError> {
        let Some(path) = path else {
            return Ok(Self::Stream(None));
        };
        // What a symlink leads to is replaced, not the symlink.
        let (place, is_regular) = match std::fs::metadata(path) {
            Ok(found) => {
                let place = path.canonicalize();
                (
                    place.map_err(PoolError::file("find", path))?,
                    found.is_file(),
                )
            }
            Err(_) => (path.to_owned(), true),
        };
        if !is_regular {
            let file = File::options().write(true).open(&place);
            let file = file.map_err(PoolError::file("open", &place))?;
            return Ok(Self::Stream(Some((place, file))));
        }
        let Some(name) = place.file_name().map(OsStr::to_owned) else {
            let error = std::io::ErrorKind::IsADirectory.into();
            return Err(PoolError::file("write", path)(error));
        };
        let folder = match place.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let folder = folder
            .canonicalize()
            .map_err(PoolError::file("find", folder))?;
        let mut temporary = OsString::from(".");
        temporary.push(&name);
        temporary.push(format!(".{}", std::process::id()));
        temporary.push(PARTIAL);
        let temporary = folder.join(temporary);
        let file = File::create(&temporary).map_err(PoolError::file("create", &temporary))?;
        let file = Some(file);
        Ok(Self::Beside(Beside {
            folder,
            name,
            temporary,
            file,
        }))
    }

    /// The names that this manifest has and leaves.
    #[must_use]
    pub fn own_names(&self) -> Option<OwnName> {
        let Self::Beside(Beside { folder, name, .. }) = self else {
            return None;
        };
        Some(OwnName {
            folder: folder.clone(),
            name: name.clone(),
            kind: OwnKind::Manifest,
        })
    }

    /// Writes the lines and puts the file into its place.
    ///
    /// # Errors
    /// [`PoolError::File`].
    pub fn write<'a>(
        self,
        lines: impl Iterator<Item = (&'a [u8; 32], &'a Path)>,
    ) -> Result<(), PoolError> {
        match self {
            Self::Stream(None) => write_lines(std::io::stdout().lock(), lines)
                .map_err(PoolError::file("write", "standard output")),
            Self::Stream(Some((path, file))) => {
                write_lines(&file, lines).map_err(PoolError::file("write", &path))
            }
            Self::Beside(mut beside) => beside.write(lines),
        }
    }
}

impl Beside {
    fn write<'a>(
        &mut self,
        lines: impl Iterator<Item = (&'a [u8; 32], &'a Path)>,
    ) -> Result<(), PoolError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        write_lines(file, lines)
            .and_then(|()| file.sync_all())
            .map_err(PoolError::file("write", &self.temporary))?;
        let place = self.folder.join(&self.name);
        std::fs::rename(&self.temporary, &place).map_err(PoolError::file("write", &place))?;
        self.file = None;
        // The rename itself is on disk when the folder is.
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(PoolError::file("write the folder", &self.folder))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Nobody is there to be told, and the name says what it is.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

fn write_lines<'a>(
    out: impl Write,
    lines: impl Iterator<Item = (&'a [u8; 32], &'a Path)>,
) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let mut line = Vec::with_capacity(256);
    for (digest, path) in lines {
        line.clear();
        push_line(&mut line, digest, path.as_os_str().as_bytes());
        out.write_all(&line)?;
    }
    out.flush()
}

fn push_line(line: &mut Vec<u8>, digest: &[u8; 32], path: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let start = line.len();
    line.extend(digest.iter().flat_map(|byte| {
        let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
        [HEX[high], HEX[low]]
    }));
    line.extend_from_slice(b"  ");
    if push_escaped(line, path) {
        line.insert(start, b'\\');
    }
    line.push(b'\n');
}

/// Appends a path so that it stays on its line; whether that changed it.
pub fn push_escaped(line: &mut Vec<u8>, path: &[u8]) -> bool {
    let before = line.len();
    for &byte in path {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\\' => line.extend_from_slice(b"\\\\"),
            _ => line.push(byte),
        }
    }
    line.len() - before != path.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &[u8]) -> String {
        let mut line = Vec::new();
        push_line(&mut line, &[0xa5; 32], path);
        String::from_utf8_lossy(&line).replace(&"a5".repeat(32), "H")
    }

    #[test]
    fn names_with_newline_return_or_backslash_are_escaped_and_marked() {
        assert_eq!(line(b"a b"), "H  a b\n");
        assert_eq!(line(b"a\nb"), "\\H  a\\nb\n");
        assert_eq!(line(b"a\\b\r"), "\\H  a\\\\b\\r\n");
        assert_eq!(line(b" *x"), "H   *x\n");
    }

    #[test]
    fn the_file_appears_at_the_end_and_a_dropped_one_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        let manifest = Manifest::prepare(Some(&path)).unwrap();
        assert_eq!((names(), path.exists()), (1, false));
        drop(manifest);
        assert_eq!(names(), 0);
        let manifest = Manifest::prepare(Some(&path)).unwrap();
        manifest
            .write([(&[0; 32], Path::new("x"))].into_iter())
            .unwrap();
        assert_eq!(names(), 1);
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("00  x\n"));
    }

    #[test]
    fn a_symlink_stays_and_what_it_leads_to_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let manifest = Manifest::prepare(Some(&link)).unwrap();
        let own = manifest.own_names().unwrap();
        assert!(own.is(&target) && !own.is(&link));
        manifest.write(std::iter::empty()).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&target).unwrap(), b"");
    }

    #[test]
    fn a_pipe_or_device_is_written_to_and_not_replaced() {
        let manifest = Manifest::prepare(Some(Path::new("/dev/null"))).unwrap();
        assert!(matches!(manifest, Manifest::Stream(Some(_))));
        manifest
            .write([(&[0; 32], Path::new("x"))].into_iter())
            .unwrap();
    }

    #[test]
    fn a_manifest_in_a_folder_that_is_not_there_is_named_in_the_error() {
        let error = Manifest::prepare(Some(Path::new("/no/such/m"))).unwrap_err();
        assert!(error.to_string().contains("/no/such"), "{error}");
        let error = Manifest::prepare(Some(Path::new("/"))).unwrap_err();
        assert!(error.to_string().starts_with("cannot open /: "), "{error}");
    }
}
