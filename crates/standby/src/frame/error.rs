//! Why bytes are no frame.

use thiserror::Error;

/// What was found, and what was wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum FrameError {
    /// Shorter than any frame.
    #[error("datagram of {found} bytes, wanted at least {wanted}")]
    TooShort {
        /// Bytes that came.
        found: usize,
        /// Bytes of the shortest frame.
        wanted: usize,
    },
    /// Something else than a frame.
    #[error("mark {found:02x?}, wanted that of a standby frame")]
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// A frame of another version of this protocol.
    #[error("frame of version {found}, wanted {wanted}")]
    Version {
        /// As the frame says.
        found: u16,
        /// As this program speaks.
        wanted: u16,
    },
    /// Cut off, or with bytes behind its end.
    #[error("payload of {found} bytes, wanted {wanted} as the header says")]
    Length {
        /// Bytes that came between header and CRC.
        found: usize,
        /// As the header says.
        wanted: u32,
    },
    /// Damaged.
    #[error("frame has CRC-32C {found:#010x}, wanted {wanted:#010x}")]
    Checksum {
        /// Of the bytes that came.
        found: u32,
        /// As the frame says.
        wanted: u32,
    },
    /// A kind, code or flag that this version does not know.
    #[error("{what} {found:#x} is not known")]
    Unknown {
        /// Which field.
        what: &'static str,
        /// Its value; for flags, the unknown bits.
        found: u32,
    },
    /// A field that means nothing in this frame, and has a value.
    #[error("{what} is {found:#x}, wanted 0 in this frame")]
    NotZero {
        /// Which field.
        what: &'static str,
        /// Its value.
        found: u64,
    },
    /// A payload shorter than the fields of its kind.
    #[error("payload of {found} bytes, wanted at least {wanted} for its kind")]
    Payload {
        /// Bytes that are left.
        found: usize,
        /// Bytes of the fields.
        wanted: usize,
    },
    /// Bytes behind the last field.
    #[error("{found} bytes behind the last field, wanted none")]
    Trailing {
        /// How many.
        found: usize,
    },
    /// An output that the value's own decoder refuses.
    #[error("an output of {found} bytes is no value of its type")]
    Value {
        /// Its length.
        found: usize,
    },
}
