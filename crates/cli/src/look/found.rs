//! What lies in a folder: every finished region, known by its format.
//!
//! Contract: what is no region is passed over; a region that cannot be read is told with its error.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bumpless_sidecar::black_box::BLACK_BOX;
use bumpless_sidecar::ring::OBSERVATIONS;
use bumpless_substrate::region::{Inspection, Region, RegionError, Usage};
use serde::Serialize;

use super::error::LookError;
use super::table::TableView;

/// What a region is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A heartbeat table.
    Table,
    /// An election of a table.
    Election,
    /// A barrier of a table.
    Barrier,
    /// Where a standby node stands.
    Tag,
    /// A link between two standby nodes.
    Mailbox,
    /// The lanes of a pool.
    Lanes,
    /// A black box of events.
    Events,
    /// A ring of observations.
    Observations,
    /// A region of somebody else's format.
    Other,
}

impl Kind {
    fn of(letters: [u8; 4]) -> Self {
        match &letters {
            b"HBTB" => Self::Table,
            b"ELEC" => Self::Election,
            b"EBAR" => Self::Barrier,
            b"SBTG" => Self::Tag,
            b"MBOX" => Self::Mailbox,
            b"POOL" => Self::Lanes,
            _ if letters == BLACK_BOX.kind => Self::Events,
            _ if letters == OBSERVATIONS.kind => Self::Observations,
            _ => Self::Other,
        }
    }

    /// What lies at a path.
    ///
    /// # Errors
    /// [`LookError::Region`].
    pub fn at(path: &Path) -> Result<Self, LookError> {
        Ok(Self::of(Region::inspect(path)?.kind))
    }

    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Election => "election",
            Self::Barrier => "barrier",
            Self::Tag => "tag",
            Self::Mailbox => "mailbox",
            Self::Lanes => "lanes",
            Self::Events => "events",
            Self::Observations => "observations",
            Self::Other => "other",
        }
    }
}

/// A region.
#[derive(Debug, Clone, Serialize)]
pub struct Found {
    /// Where.
    #[serde(serialize_with = "super::path_text::serialize")]
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// The four letters of its format.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// The owner's user id.
    pub owner_uid: u32,
    /// The owner's name, where the system knows one.
    pub owner: Option<String>,
    /// Permission bits, in octal.
    pub mode: String,
    /// Length of the file; unit: bytes.
    pub bytes: u64,
    /// Memory that it takes; unit: bytes.
    pub memory_bytes: u64,
    /// Registered processes that live, in a table.
    pub live_processes: Option<usize>,
    /// Whether somebody has it open for writing: `unused`, `in_use` or `unknown`.
    pub usage: &'static str,
    /// Whether it is of the present start of the machine.
    pub is_of_this_boot: bool,
    /// Names it among all that ever had its path.
    pub creation_id: String,
}

impl Found {
    /// What lies at a path.
    ///
    /// # Errors
    /// [`LookError::Region`].
    pub fn at(path: &Path) -> Result<Self, LookError> {
        let Inspection {
            path,
            kind,
            version,
            file_len,
            owner,
            mode,
            creation_id,
            is_of_this_boot,
            usage,
            ..
        } = Region::inspect(path)?;
        let format = kind.escape_ascii().to_string();
        let kind = Kind::of(kind);
        // One that cannot be read is listed all the same.
        let view = (kind == Kind::Table).then(|| TableView::at(&path).ok());
        let memory_bytes = std::fs::metadata(&path).map_or(0, |found| found.blocks() * 512);
        Ok(Self {
            kind,
            format,
            version,
            owner_uid: owner,
            owner: user_name(owner),
            mode: format!("{mode:04o}"),
            bytes: file_len,
            memory_bytes,
            live_processes: view.flatten().map(|view| view.totals.live_processes),
            usage: match usage {
                Usage::Unused => "unused",
                Usage::InUse => "in_use",
                Usage::Unknown => "unknown",
            },
            is_of_this_boot,
            creation_id: format!("{creation_id:016x}"),
            path,
        })
    }
}

/// Every region of a folder, by name; and those that could not be read.
///
/// # Errors
/// [`LookError::Folder`].
pub fn look_in(folder: &Path) -> Result<(Vec<Found>, Vec<LookError>), LookError> {
    all_in(folder, Found::at)
}

/// Regions by their paths.
pub type Kinds = BTreeMap<PathBuf, Kind>;

/// Where the regions of a folder are, and what they are; and those that could not be read.
///
/// # Errors
/// [`LookError::Folder`].
pub fn kinds_in(folder: &Path) -> Result<(Kinds, Vec<LookError>), LookError> {
    let (found, failed) = all_in(folder, |path| Ok((path.to_owned(), Kind::at(path)?)))?;
    Ok((found.into_iter().collect(), failed))
}

fn all_in<T>(
    folder: &Path,
    look: impl Fn(&Path) -> Result<T, LookError>,
) -> Result<(Vec<T>, Vec<LookError>), LookError> {
    let unreadable = |error| LookError::Folder {
        path: folder.to_owned(),
        error,
    };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.sort();
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for path in paths {
        match look(&path) {
            Ok(region) => found.push(region),
            // No region, or gone since.
            Err(LookError::Region(
                RegionError::NotRegular { .. }
                | RegionError::Length { .. }
                | RegionError::Magic { .. }
                | RegionError::NotFound { .. },
            )) => {}
            Err(error) => failed.push(error),
        }
    }
    Ok((found, failed))
}

/// The name of a user, as `/etc/passwd` has it.
fn user_name(uid: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use bumpless_heartbeat::HeartbeatTable;

    use super::*;

    #[test]
    fn regions_are_known_by_their_format_and_other_files_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let table = HeartbeatTable::create(at("b"), 4).unwrap();
        table.register(std::process::id()).unwrap();
        drop(HeartbeatTable::create(at("a"), 2).unwrap());
        std::fs::write(at("text"), "no region").unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let (found, failed) = look_in(folder.path()).unwrap();
        assert!(failed.is_empty(), "{failed:?}");
        let live: Vec<_> = found
            .iter()
            .map(|region| (region.kind, region.live_processes))
            .collect();
        assert_eq!(live, [(Kind::Table, Some(0)), (Kind::Table, Some(1))]);
        assert_eq!(found[1].bytes, 64 * 4 + 128 + 4 * 256);
        let missing = look_in(&at("none")).unwrap_err();
        assert!(missing.to_string().contains("none"), "{missing}");
    }
}
