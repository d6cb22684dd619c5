//! The crate's one error: what was tried, on which file, the value found and the limit.

use std::path::PathBuf;

use bumpless_substrate::region::RegionError;

/// Why something of this crate did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SidecarError {
    /// The ring's file could not be created or mapped, or is no such ring.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// No ring has this capacity.
    #[error("{path}: capacity {found}: a ring has a power of two of records, at most {limit}")]
    Capacity {
        /// The ring's path.
        path: PathBuf,
        /// The capacity asked for, or found in the file.
        found: u32,
        /// The most records.
        limit: u32,
    },
    /// The ring of this path treats its oldest records in the other way, or in none that is known.
    #[error("{path}: mode {found}, wanted {wanted} (0 lossless, 1 flight recorder)")]
    Mode {
        /// The ring's path.
        path: PathBuf,
        /// What the file says.
        found: u64,
        /// What was asked for; for one that takes either, the highest.
        wanted: u64,
    },
    /// The sidecar's thread could not be started.
    #[error("start the sidecar's thread: {source}")]
    Thread {
        /// Why.
        source: std::io::Error,
    },
    /// A fork child has a copy of its parent's sidecar, and no thread.
    #[error("this sidecar was inherited by a fork: start one in this process")]
    Inert,
    /// A probability lies between 0 and 1.
    #[error("probability of a false death {found}: above 0 and below 1")]
    Probability {
        /// As given.
        found: f64,
    },
    /// Bounds of a grace that leave none.
    #[error("grace of {min} to {max} epochs: at least 1, and no less than that")]
    GraceBounds {
        /// The shortest one; unit: epochs.
        min: u16,
        /// The longest one; unit: epochs.
        max: u16,
    },
}
