//! Control loops to run in a standby pair, which do nothing that costs.
//!
//! Contract: [`Integrators`] is a whole controller with a state of 64 bytes; [`Values`] is a state of any
//! length, for what is done with states alone. Both judge a foreign state as a careful controller does: every
//! value must be finite.

use bumpless_standby::{Checkpoint, CheckpointError, Controller};

/// Eight sums, and the last that was put out is the first of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Integrators([f64; 8]);

impl Checkpoint for Integrators {
    fn schema(&self) -> u64 {
        8
    }

    #[inline]
    fn encode(&self, bytes: &mut Vec<u8>) {
        // In one piece: eight calls that look for room would be what is measured.
        let mut encoded = [0; 64];
        for (place, value) in encoded.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *place = value.to_le_bytes();
        }
        bytes.extend_from_slice(&encoded);
    }

    #[inline]
    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (values, rest) = bytes.as_chunks::<8>();
        match <&[[u8; 8]; 8]>::try_from(values) {
            Ok(values) if rest.is_empty() => Ok(Self(values.map(f64::from_le_bytes))),
            _ => Err(CheckpointError::Length {
                found: bytes.len(),
                wanted: 64,
            }),
        }
    }

    #[inline]
    fn check(&self) -> Result<(), CheckpointError> {
        all_finite(&self.0)
    }
}

impl Controller for Integrators {
    type Input = f64;
    type Output = f64;

    #[inline]
    fn step(&mut self, input: &f64) {
        for sum in &mut self.0 {
            *sum += input;
        }
    }

    #[inline]
    fn output(&self) -> f64 {
        self.0[0]
    }

    #[inline]
    fn input_digest(input: &f64) -> u32 {
        let bits = input.to_bits();
        (bits ^ (bits >> 32)) as u32
    }
}

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
        all_finite(&self.0)
    }
}

fn all_finite(values: &[f64]) -> Result<(), CheckpointError> {
    match values.iter().find(|value| !value.is_finite()) {
        None => Ok(()),
        Some(value) => Err(CheckpointError::OutOfRange {
            what: "a sum",
            found: value.to_string(),
            wanted: "finite".to_owned(),
        }),
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
        assert!(Integrators::default().decode(&bytes).is_err());
    }
}
