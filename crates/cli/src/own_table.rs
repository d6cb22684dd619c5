//! Tables that a command of this tool makes when they are missing.
//!
//! ```text
//!   path ─┬─ a table ─────────────────────────▶ opened, whatever its size
//!         ├─ missing, or of an earlier boot ──▶ made, or gone on with
//!         └─ of another version ─┬─ named ────▶ refused
//!                                └─ default ──▶ made anew, if nobody has it open
//! ```
//! Contract: what somebody has open is never replaced.

use std::path::Path;

use bumpless_heartbeat::{HeartbeatError, HeartbeatTable};
use bumpless_substrate::region::{Region, RegionError, default_folder};

use crate::look::path_line;

/// Slots in a table that is made here: each command takes one, and each watchdog.
const SLOTS: usize = 1024;

/// Opens a table that was named, or makes it; whether it was made.
///
/// # Errors
/// [`HeartbeatError`].
pub fn open_or_make(path: &Path) -> Result<(HeartbeatTable, bool), HeartbeatError> {
    let is_missing = match HeartbeatTable::attach(path) {
        Ok(table) => return Ok((table, false)),
        Err(HeartbeatError::Region(RegionError::NotFound { .. })) => true,
        Err(HeartbeatError::Region(RegionError::StaleBoot { .. })) => false,
        Err(error) => return Err(error),
    };
    match HeartbeatTable::create(path, SLOTS) {
        Ok(table) => Ok((table, is_missing)),
        // Made by somebody else since, with another size.
        Err(HeartbeatError::Region(RegionError::CapacityDiffers { .. })) if is_missing => {
            Ok((HeartbeatTable::attach(path)?, false))
        }
        Err(error) => Err(error),
    }
}

/// Opens the default table of that name, or makes it. One that an earlier version of this tool left, and
/// that nobody has open, is of no use to anybody: it would only keep the command from working.
///
/// # Errors
/// [`HeartbeatError`].
pub fn open_default(name: &str, command: &str) -> Result<HeartbeatTable, HeartbeatError> {
    open_or_renew(&default_folder()?.join(name), command)
}

fn open_or_renew(path: &Path, command: &str) -> Result<HeartbeatTable, HeartbeatError> {
    match open_or_make(path) {
        Err(HeartbeatError::Region(
            error @ (RegionError::Version { .. } | RegionError::RecordSize { .. }),
        )) => match Region::remove_unused(path) {
            Ok(()) => {
                tell!("bumpless {command}: {error}: nobody uses it, so it is made anew");
                Ok(open_or_make(path)?.0)
            }
            // By another one who found the same.
            Err(RegionError::NotFound { .. }) => Ok(open_or_make(path)?.0),
            Err(why) => {
                let path = path_line(path);
                tell!("bumpless {command}: {path}: cannot be made anew: {why}");
                Err(error.into())
            }
        },
        opened => Ok(opened?.0),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn one_of_another_version_is_made_anew_only_when_it_is_the_default_and_nobody_has_it_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let old = HeartbeatTable::create(&path, 8).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        // The version in the preamble.
        file.write_all_at(&99_u32.to_ne_bytes(), 12).unwrap();
        let other = open_or_renew(&path, "test").unwrap_err();
        assert!(other.to_string().contains("99"), "{other}");
        drop(old);
        let other = open_or_make(&path).unwrap_err();
        assert!(other.to_string().contains("99"), "{other}");
        assert_eq!(open_or_renew(&path, "test").unwrap().capacity(), SLOTS);
    }
}
