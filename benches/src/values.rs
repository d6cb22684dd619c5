//! A state of any length, for what is done with states alone.
//!
//! Contract: it judges a foreign state as a careful controller does: every value must be finite.

use bumpless_standby::{Checkpoint, CheckpointError};

/// A state of so many values.
#[derive(Debug, Clone, PartialEq)]
pub struct Values(pub Vec<f64>);

impl Checkpoint for Values {
    fn schema(&self) -> u64 {
        self.0.len() as u64
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.resize(start + self.0.len() * 8, 0);
        let places = bytes[start..].as_chunks_mut::<8>().0;
        for (place, value) in places.iter_mut().zip(&self.0) {
            *place = value.to_le_bytes();
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (values, rest) = bytes.as_chunks::<8>();
        if values.len() != self.0.len() || !rest.is_empty() {
            return Err(CheckpointError::Length {
                found: bytes.len(),
                wanted: self.0.len() * 8,
            });
        }
        let values = values.iter().map(|value| f64::from_le_bytes(*value));
        Ok(Self(values.collect()))
    }

    fn check(&self) -> Result<(), CheckpointError> {
        match self.0.iter().find(|value| !value.is_finite()) {
            None => Ok(()),
            Some(value) => Err(CheckpointError::OutOfRange {
                what: "a value",
                found: value.to_string(),
                wanted: "finite".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_from_its_bytes_and_another_length_or_an_infinity_is_refused() {
        let state = Values(vec![1.5, -2.0]);
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        assert_eq!(state.decode(&bytes), Ok(state.clone()));
        assert!(state.decode(&bytes[..15]).is_err());
        assert!(Values(vec![f64::INFINITY]).check().is_err());
    }
}
