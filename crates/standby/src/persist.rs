//! A few bytes that survive: the counter of a node, the level of an actuator.
//!
//! Contract of [`Store::save`]: when it returns, the new bytes survive a power cut; when it fails, or is
//! killed in the middle, the old ones or the new ones are there, whole.

use thiserror::Error;

/// Durable bytes, replaced as a whole.
pub trait Store {
    /// The bytes of the last save; `None`: never saved.
    ///
    /// # Errors
    /// They cannot be read.
    fn load(&mut self) -> Result<Option<Vec<u8>>, StoreError>;

    /// Replaces them.
    ///
    /// # Errors
    /// They are not durable.
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError>;
}

/// What could not be loaded or saved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Error)]
#[error("cannot {what}: {why}")]
pub struct StoreError {
    /// What was tried, on which path.
    pub what: String,
    /// The system's error, or what was found.
    pub why: String,
}

impl StoreError {
    pub(crate) fn malformed(found: &[u8], wanted_len: usize) -> Self {
        Self {
            what: "read what was saved".to_owned(),
            why: format!("{} bytes found, {wanted_len} wanted", found.len()),
        }
    }
}
