//! What a controller must be able to do, so that another node can continue it.
//!
//! Contract: [`Checkpoint::decode`] and [`Checkpoint::check`] judge a foreign state before anything of
//! it is used; a state that one of them refuses is never adopted. Two controllers that start from the
//! same state and get the same inputs end in the same state (they run the same program; whether they do
//! is checked by its hash and, every cycle, by the digests of inputs and states).

use thiserror::Error;

/// A controller's whole state, as bytes.
///
/// The bytes are those of a wire format: of fixed byte order, free of padding and addresses.
pub trait Checkpoint: Clone {
    /// Names the encoding. A state of another schema is never adopted.
    fn schema(&self) -> u64;

    /// Appends the state.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// The state in these bytes; `self` gives what is configured, not transferred.
    ///
    /// # Errors
    /// The bytes are no state.
    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError>;

    /// Whether the state is one that a healthy controller can be in: finite, inside its bands.
    ///
    /// # Errors
    /// It is not, and why.
    fn check(&self) -> Result<(), CheckpointError>;
}

/// A control loop of a fixed rate.
pub trait Controller: Checkpoint {
    /// What one cycle reads from the plant.
    type Input: Clone;
    /// What one cycle writes to the plant.
    type Output: Clone;

    /// One cycle.
    fn step(&mut self, input: &Self::Input);

    /// What the last cycle writes.
    fn output(&self) -> Self::Output;

    /// Tells two inputs apart: both nodes must have read the same in the same cycle.
    fn input_digest(input: &Self::Input) -> u32;
}

/// Why a state cannot be adopted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// The bytes are of another length than the state.
    #[error("a checkpoint of {found} bytes, wanted {wanted}")]
    Length {
        /// Bytes that came.
        found: usize,
        /// Bytes of the state.
        wanted: usize,
    },
    /// The bytes cannot be read.
    #[error("a checkpoint that cannot be read: {0}")]
    Malformed(String),
    /// A value that a healthy controller cannot have.
    #[error("{what} is {found}, wanted {wanted}")]
    OutOfRange {
        /// Which value.
        what: &'static str,
        /// Its value.
        found: String,
        /// Its band.
        wanted: String,
    },
}
