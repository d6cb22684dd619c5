//! Several control loops of one node, in one checkpoint.
//!
//! A node with many loops sends one state a cycle, not many. Contract: all or nothing. Loops are adopted
//! together, from the same cycle, or none of them is.
//!
//! ```text
//!   at 0        4          8
//!      ┌────────┬──────────┬─────────────────┬──────────┬────┐
//!      │ loops  │ length n │ state of loop 0 │ length n │ .. │     u32, little-endian
//!      └────────┴──────────┴─────────────────┴──────────┴────┘
//! ```

use crate::checkpoint::{Checkpoint, CheckpointError, Controller};

/// Control loops that run together. How many there are is configured, not transferred.
///
/// They run in order, each with the input at its own place; a loop without an input is not run in that
/// cycle, and an input without a loop is not used. Both nodes see the same, as the digest of the inputs
/// tells how many there were.
///
/// ```
/// use bumpless_standby::loops::Loops;
/// use bumpless_standby::{Checkpoint, CheckpointError, Controller};
///
/// #[derive(Debug, Clone, PartialEq)]
/// struct Sum(i64);
///
/// impl Checkpoint for Sum {
///     fn schema(&self) -> u64 {
///         1
///     }
///     fn encode(&self, bytes: &mut Vec<u8>) {
///         bytes.extend_from_slice(&self.0.to_le_bytes());
///     }
///     fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
///         let (found, wanted) = (bytes.len(), 8);
///         let sum = bytes.try_into().map_err(|_| CheckpointError::Length { found, wanted })?;
///         Ok(Self(i64::from_le_bytes(sum)))
///     }
///     fn check(&self) -> Result<(), CheckpointError> {
///         Ok(())
///     }
/// }
///
/// impl Controller for Sum {
///     type Input = i64;
///     type Output = i64;
///     fn step(&mut self, input: &i64) {
///         self.0 = self.0.saturating_add(*input);
///     }
///     fn output(&self) -> i64 {
///         self.0
///     }
///     fn input_digest(input: &i64) -> u32 {
///         crc32c::crc32c(&input.to_le_bytes())
///     }
/// }
///
/// let mut loops = Loops::new(vec![Sum(0), Sum(100)]);
/// loops.step(&vec![1, 2]);
/// assert_eq!(loops.output(), [1, 102]);
/// let mut bytes = Vec::new();
/// loops.encode(&mut bytes);
/// let standby = Loops::new(vec![Sum(0), Sum(0)]);
/// assert_eq!(standby.decode(&bytes), Ok(loops));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Loops<C> {
    loops: Vec<C>,
}

impl<C> Loops<C> {
    /// These loops, in this order.
    #[must_use]
    pub fn new(loops: Vec<C>) -> Self {
        Self { loops }
    }

    /// The loops.
    #[must_use]
    pub fn loops(&self) -> &[C] {
        &self.loops
    }
}

impl<C: Checkpoint> Checkpoint for Loops<C> {
    /// Of the schemas of all loops, in order.
    fn schema(&self) -> u64 {
        // FNV-1a: the value has to be the same in every build, not hard to forge.
        self.loops.iter().fold(0xcbf2_9ce4_8422_2325, |hash, one| {
            one.schema()
                .to_le_bytes()
                .iter()
                .fold(hash, |hash: u64, byte| {
                    (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
                })
        })
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&len_u32(self.loops.len()).to_le_bytes());
        for one in &self.loops {
            let start = bytes.len();
            bytes.extend_from_slice(&[0; 4]);
            one.encode(bytes);
            let len = len_u32(bytes.len() - start - 4);
            bytes[start..start + 4].copy_from_slice(&len.to_le_bytes());
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (count, mut rest) = split_len(bytes)?;
        if count != self.loops.len() {
            let (found, wanted) = (count, self.loops.len());
            let why = format!("it has {found} loops, wanted {wanted}");
            return Err(CheckpointError::Malformed(why));
        }
        let mut loops = Vec::with_capacity(self.loops.len());
        for (index, one) in self.loops.iter().enumerate() {
            let (len, behind) = split_len(rest)?;
            let Some((state, behind)) = behind.split_at_checked(len) else {
                let why = format!("loop {index} has {len} bytes, {} are left", behind.len());
                return Err(CheckpointError::Malformed(why));
            };
            loops.push(one.decode(state)?);
            rest = behind;
        }
        if !rest.is_empty() {
            let why = format!("{} bytes behind the last loop", rest.len());
            return Err(CheckpointError::Malformed(why));
        }
        Ok(Self { loops })
    }

    fn check(&self) -> Result<(), CheckpointError> {
        self.loops.iter().try_for_each(Checkpoint::check)
    }
}

impl<C: Controller> Controller for Loops<C> {
    type Input = Vec<C::Input>;
    type Output = Vec<C::Output>;

    fn step(&mut self, inputs: &Self::Input) {
        for (one, input) in self.loops.iter_mut().zip(inputs) {
            one.step(input);
        }
    }

    fn output(&self) -> Self::Output {
        self.loops.iter().map(Controller::output).collect()
    }

    fn input_digest(inputs: &Self::Input) -> u32 {
        let count = crc32c::crc32c(&len_u32(inputs.len()).to_le_bytes());
        inputs.iter().fold(count, |digest, input| {
            crc32c::crc32c_append(digest, &C::input_digest(input).to_le_bytes())
        })
    }
}

/// What is longer than a state can be gets a length that no receiver takes.
fn len_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn split_len(bytes: &[u8]) -> Result<(usize, &[u8]), CheckpointError> {
    let Some((len, rest)) = bytes.split_first_chunk::<4>() else {
        let (found, wanted) = (bytes.len(), 4);
        return Err(CheckpointError::Length { found, wanted });
    };
    Ok((u32::from_le_bytes(*len) as usize, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loop whose state is a few bytes, the first one its limit.
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Few(Vec<u8>);

    impl Checkpoint for Few {
        fn schema(&self) -> u64 {
            self.0.len() as u64
        }

        fn encode(&self, bytes: &mut Vec<u8>) {
            bytes.extend_from_slice(&self.0);
        }

        fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
            let (found, wanted) = (bytes.len(), self.0.len());
            if found != wanted {
                return Err(CheckpointError::Length { found, wanted });
            }
            Ok(Self(bytes.to_vec()))
        }

        fn check(&self) -> Result<(), CheckpointError> {
            if self.0.contains(&99) {
                return Err(CheckpointError::Malformed("99".to_owned()));
            }
            Ok(())
        }
    }

    impl Controller for Few {
        type Input = u8;
        type Output = u8;

        fn step(&mut self, input: &u8) {
            self.0[0] = self.0[0].saturating_add(*input);
        }

        fn output(&self) -> u8 {
            self.0[0]
        }

        fn input_digest(input: &u8) -> u32 {
            (*input).into()
        }
    }

    fn loops() -> Loops<Few> {
        Loops::new(vec![Few(vec![1]), Few(vec![2, 3]), Few(vec![4, 5, 6])])
    }

    fn blank() -> Loops<Few> {
        Loops::new(vec![Few(vec![0; 1]), Few(vec![0; 2]), Few(vec![0; 3])])
    }

    fn encoded() -> Vec<u8> {
        let mut bytes = vec![];
        loops().encode(&mut bytes);
        bytes
    }

    #[test]
    fn all_loops_come_back_from_one_checkpoint() {
        let bytes = encoded();
        let wanted = [
            3, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0, 0, 2, 3, 3, 0, 0, 0, 4, 5, 6,
        ];
        assert_eq!(bytes, wanted);
        assert_eq!(blank().decode(&bytes), Ok(loops()));
    }

    #[test]
    fn another_count_of_loops_is_refused() {
        let fewer = Loops::new(blank().loops[..2].to_vec());
        let error = fewer.decode(&encoded()).unwrap_err();
        let wanted = "a checkpoint that cannot be read: it has 3 loops, wanted 2";
        assert_eq!(error.to_string(), wanted);
        assert!(blank().decode(&[]).is_err());
    }

    #[test]
    fn a_cut_checkpoint_one_with_more_behind_it_and_lengths_that_lie_are_refused() {
        let bytes = encoded();
        for len in 0..bytes.len() {
            assert!(blank().decode(&bytes[..len]).is_err(), "{len} bytes");
        }
        assert!(blank().decode(&[&bytes[..], &[0]].concat()).is_err());
        for at in [4, 9, 15] {
            for lie in [0, 4, 255] {
                let mut lying = bytes.clone();
                lying[at] = lie;
                assert!(blank().decode(&lying).is_err(), "{lie} at {at}");
                lying[at + 3] = lie | 1;
                assert!(blank().decode(&lying).is_err(), "{lie} at {at}, huge");
            }
        }
    }

    #[test]
    fn one_loop_that_fails_its_check_fails_all() {
        let mut loops = loops();
        assert_eq!(loops.check(), Ok(()));
        loops.loops[2].0[1] = 99;
        assert!(loops.check().is_err());
    }

    #[test]
    fn each_loop_gets_its_own_input_and_gives_its_own_output() {
        let mut loops = loops();
        loops.step(&vec![10, 20, 30]);
        assert_eq!(loops.output(), [11, 22, 34]);
        loops.step(&vec![1]);
        assert_eq!(loops.output(), [12, 22, 34]);
    }

    #[test]
    fn schema_and_input_digest_tell_order_and_count() {
        let mut turned = loops();
        turned.loops.reverse();
        assert_ne!(turned.schema(), loops().schema());
        assert_eq!(blank().schema(), loops().schema());
        let digest = |inputs: &[u8]| Loops::<Few>::input_digest(&inputs.to_vec());
        assert_ne!(digest(&[1, 2]), digest(&[2, 1]));
        assert_ne!(digest(&[1]), digest(&[1, 0]));
        assert_ne!(digest(&[]), digest(&[0]));
    }
}
