//! Why an end of a way could not be made. Afterwards nothing fails: it is counted.

use std::io;
use std::net::SocketAddr;

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
}

impl LinkError {
    pub(super) fn socket(
        what: &'static str,
        address: SocketAddr,
    ) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::Socket { what, address, why }
    }
}
