//! Why an end of a way could not be made. Afterwards nothing fails: it is counted.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

#[cfg(not(bumpless_loom))]
use bumpless_substrate::region::RegionError;
use thiserror::Error;

/// What was tried, where, and what was found.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A link has one path, or two.
    #[error("link over {found} paths, wanted 1 to {limit}")]
    Paths {
        /// As given.
        found: usize,
        /// At most.
        limit: usize,
    },
    /// A socket could not be made, bound or connected.
    #[error("cannot {what} {address}: {why}")]
    Socket {
        /// What was tried.
        what: &'static str,
        /// With this address.
        address: SocketAddr,
        /// The system's error.
        why: io::Error,
    },
    /// A mailbox's file could not be created or mapped, or is none.
    #[cfg(not(bumpless_loom))]
    #[error(transparent)]
    Region(#[from] RegionError),
    /// A mailbox for frames of a length that no frame has.
    #[error("mailbox for frames of {found} bytes, wanted {shortest} to {longest}")]
    FrameLen {
        /// As given.
        found: usize,
        /// At least.
        shortest: usize,
        /// At most.
        longest: usize,
    },
    /// Another process, or another link of this one, has this end of the mailbox.
    #[cfg(not(bumpless_loom))]
    #[error("{path}: end {end:?} is held by somebody else")]
    EndHeld {
        /// The mailbox.
        path: PathBuf,
        /// The end that was wanted.
        end: super::End,
    },
    /// A key that is too short to keep anybody out, or too long to be one.
    #[error("key of {found} bytes, wanted {shortest} to {longest}")]
    KeyLen {
        /// Bytes that were given; one more than `longest` stands for any number above it.
        found: usize,
        /// At least.
        shortest: usize,
        /// At most.
        longest: usize,
    },
    /// A key's file cannot be read, or is none.
    #[error("cannot read a key from {path}: {why}")]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The system's error, or what was found.
        why: String,
    },
    /// Others than its owner may read the key or change it.
    #[error("key file {path} has mode {found:04o}, wanted {wanted:04o}")]
    KeyMode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        found: u32,
        /// At most these.
        wanted: u32,
    },
}

impl LinkError {
    pub(super) fn socket(
        what: &'static str,
        address: SocketAddr,
    ) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::Socket { what, address, why }
    }
}
