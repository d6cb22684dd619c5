//! The smallest control loop: its state is the last cycle whose input it has read.
//!
//! An output then tells by itself which cycle it is of, and an adopted state which cycle it was taken
//! after, whatever the messages around them say.

use bumpless_standby::{Checkpoint, CheckpointError, Controller};

/// The state after this cycle; 0: the initial one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrueCycle(pub u64);

impl Checkpoint for TrueCycle {
    fn schema(&self) -> u64 {
        1
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0.to_le_bytes());
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let bytes = bytes.try_into().map_err(|_| CheckpointError::Length {
            found: bytes.len(),
            wanted: 8,
        })?;
        Ok(Self(u64::from_le_bytes(bytes)))
    }

    fn check(&self) -> Result<(), CheckpointError> {
        Ok(())
    }
}

impl Controller for TrueCycle {
    type Input = u64;
    type Output = u64;

    fn step(&mut self, input: &u64) {
        self.0 = *input;
    }

    fn output(&self) -> u64 {
        self.0
    }

    fn input_digest(input: &u64) -> u32 {
        *input as u32
    }
}
