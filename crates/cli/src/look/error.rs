//! Why something cannot be looked at, and what to do about it.

use std::path::PathBuf;

use bumpless_heartbeat::HeartbeatError;
use bumpless_standby::tag::TagError;
use bumpless_substrate::region::RegionError;

/// What was tried, on which path, what was found, what to do.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// A file that is no region, or cannot be opened.
    #[error("{}", region_with_advice(.0))]
    Region(#[from] RegionError),
    /// A table.
    #[error("{}", with_advice(.0))]
    Table(#[from] HeartbeatError),
    /// A tag.
    #[error("{}", tag_with_advice(.0))]
    Tag(#[from] TagError),
    /// A tag that nobody has written yet, or whose words make no sense.
    #[error(
        "{path}: no cycle of a node in it that can be read: its node has not begun, or it is damaged"
    )]
    EmptyTag {
        /// The tag.
        path: PathBuf,
    },
    /// A folder.
    #[error("cannot read the folder {path}: {error}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// A region of another kind than can be shown.
    #[error("{path}: found a region of kind {found}, wanted a table or a tag")]
    Kind {
        /// The region.
        path: PathBuf,
        /// What it is.
        found: String,
    },
}

/// What was found, and what to do about it.
pub fn with_advice(error: &HeartbeatError) -> String {
    match error {
        HeartbeatError::Region(error) => region_with_advice(error),
        error => error.to_string(),
    }
}

fn tag_with_advice(error: &TagError) -> String {
    match error {
        TagError::Region(error) => region_with_advice(error),
        error => error.to_string(),
    }
}

fn region_with_advice(error: &RegionError) -> String {
    format!("{error}{}", advice(error))
}

fn advice(error: &RegionError) -> &'static str {
    match error {
        RegionError::NotFound { .. } => "; `bumpless list` shows what there is",
        RegionError::StaleBoot { .. } => {
            "; it is from before the machine's last start: the next process that creates it goes on with \
             it, `bumpless rm` deletes it"
        }
        RegionError::Version { .. } | RegionError::RecordSize { .. } => {
            "; it is of another version of bumpless: use that one's tool, or delete it with `bumpless rm` \
             when nobody uses it any more"
        }
        RegionError::InUse { .. } => "; end the processes that use it first",
        RegionError::LockFileMissing { .. } => {
            "; nothing tells who has it open: when nobody does, delete it by hand"
        }
        RegionError::Magic { .. } | RegionError::Length { .. } => "; this is no region of bumpless",
        _ => "",
    }
}
