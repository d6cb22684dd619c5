//! What a plant is driven with, as bytes.

/// An output that travels to the actuator.
///
/// Any value of the type may come out of [`decode`](Self::decode), for floats also an infinite one or
/// NaN: what the plant can bear is for the controller's check and the actuator's hardware to say.
pub trait Value: Sized {
    /// Appends it, in a fixed byte order.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// What was encoded; `None` for bytes that are no value, also for too few or too many.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

impl Value for i64 {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_le_bytes)
    }
}

impl Value for f64 {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::from_le_bytes)
    }
}

impl<const N: usize> Value for [f64; N] {
    fn encode(&self, bytes: &mut Vec<u8>) {
        for value in self {
            value.encode(bytes);
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (values, rest) = bytes.as_chunks::<8>();
        let values: &[[u8; 8]; N] = values.try_into().ok()?;
        rest.is_empty().then(|| values.map(f64::from_le_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_other_lengths_do_not() {
        let mut bytes = vec![];
        [1.5, f64::NEG_INFINITY].encode(&mut bytes);
        assert_eq!(<[f64; 2]>::decode(&bytes), Some([1.5, f64::NEG_INFINITY]));
        assert_eq!(<[f64; 1]>::decode(&bytes), None);
        assert_eq!(<[f64; 2]>::decode(&bytes[..15]), None);
        assert_eq!(<[f64; 2]>::decode(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(<[f64; 0]>::decode(&[]), Some([]));
        assert_eq!(i64::decode(&bytes), None);
        assert_eq!(i64::decode(&(-2_i64).to_le_bytes()), Some(-2));
        assert_eq!(f64::decode(&bytes[..8]), Some(1.5));
        assert_eq!(f64::decode(&bytes[..9]), None);
    }
}
