//! What the pair controls: an integrator whose ideal is exact, and a PID loop in floating point.

use bumpless_standby::frame::Value;
use bumpless_standby::{Checkpoint, CheckpointError, Controller};

/// A controller together with the plant that it reads and drives.
pub trait Plant {
    type Loop: Controller<Input = Self::In, Output = Self::Out>;
    type In: Clone;
    type Out: Clone + std::fmt::Debug + Value;

    /// A controller as it is when a node starts.
    fn controller(&self) -> Self::Loop;

    /// What the sensors show in this cycle, while the actuator holds `held`.
    fn sample(&mut self, cycle: u64, held: Option<&Self::Out>) -> Self::In;

    /// How far two outputs are apart; unit: input steps.
    fn steps_between(&self, one: &Self::Out, other: &Self::Out) -> f64;
}

/// The most that the integrator adds per cycle: one input step.
pub const STEP: i64 = 10;
/// The integrator's band.
const VALUE_MAX: i64 = 1_000_000_000_000;

/// Sums its inputs. Behind the sum, its state has as many bytes as a test wants.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Integrator {
    pub value: i64,
    filler: Vec<u8>,
    churns: bool,
    schema: u64,
}

impl Checkpoint for Integrator {
    fn schema(&self) -> u64 {
        self.schema
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.value.to_le_bytes());
        bytes.extend_from_slice(&self.filler);
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let length = CheckpointError::Length {
            found: bytes.len(),
            wanted: 8 + self.filler.len(),
        };
        let (value, filler) = bytes.split_first_chunk::<8>().ok_or(length.clone())?;
        if filler.len() != self.filler.len() {
            return Err(length);
        }
        Ok(Self {
            value: i64::from_le_bytes(*value),
            filler: filler.to_vec(),
            ..*self
        })
    }

    fn check(&self) -> Result<(), CheckpointError> {
        if self.value.abs() > VALUE_MAX {
            return Err(CheckpointError::OutOfRange {
                what: "value",
                found: self.value.to_string(),
                wanted: format!("at most {VALUE_MAX} from 0"),
            });
        }
        Ok(())
    }
}

impl Controller for Integrator {
    type Input = i64;
    type Output = i64;

    fn step(&mut self, input: &i64) {
        self.value = self.value.saturating_add(*input);
        if self.churns {
            let bytes = self.value.to_le_bytes();
            for (index, byte) in self.filler.iter_mut().enumerate() {
                *byte = bytes[index % 8] ^ (index / 8) as u8;
            }
        }
    }

    fn output(&self) -> i64 {
        self.value
    }

    fn input_digest(input: &i64) -> u32 {
        (*input ^ (*input >> 32)) as u32
    }
}

/// The plant of an integrator: every cycle shows a step, or a little less, so that no two neighbours are equal.
#[derive(Debug, Clone)]
pub struct Ramp {
    filler_len: usize,
    churns: bool,
    /// Names the encoding of the controllers that are made from now on.
    pub schema: u64,
}

impl Ramp {
    /// States of 64 bytes, of which a cycle changes few.
    pub fn new() -> Self {
        Self::of_len(64, false)
    }

    /// States of `len` bytes; with `churns`, each cycle changes all of them.
    pub fn of_len(len: usize, churns: bool) -> Self {
        Self {
            filler_len: len - 8,
            churns,
            schema: 1,
        }
    }
}

impl Plant for Ramp {
    type Loop = Integrator;
    type In = i64;
    type Out = i64;

    fn controller(&self) -> Integrator {
        Integrator {
            value: 0,
            filler: vec![0; self.filler_len],
            churns: self.churns,
            schema: self.schema,
        }
    }

    fn sample(&mut self, cycle: u64, _: Option<&i64>) -> i64 {
        STEP - (cycle % 3) as i64
    }

    fn steps_between(&self, one: &i64, other: &i64) -> f64 {
        (one - other).abs() as f64 / STEP as f64
    }
}

/// Measured value and setpoint.
pub type Reading = [f64; 2];

/// A PID controller with a clamped output.
#[derive(Debug, Clone, PartialEq)]
pub struct Pid {
    integral: f64,
    last_error: f64,
    output: f64,
}

const GAINS: [f64; 3] = [2.0, 0.08, 0.5];
const OUTPUT_MAX: f64 = 100.0;

impl Checkpoint for Pid {
    fn schema(&self) -> u64 {
        0x1d
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        for value in [self.integral, self.last_error, self.output] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let bytes: &[u8; 24] = bytes.try_into().map_err(|_| CheckpointError::Length {
            found: bytes.len(),
            wanted: 24,
        })?;
        let (chunks, _) = bytes.as_chunks::<8>();
        Ok(Self {
            integral: f64::from_le_bytes(chunks[0]),
            last_error: f64::from_le_bytes(chunks[1]),
            output: f64::from_le_bytes(chunks[2]),
        })
    }

    fn check(&self) -> Result<(), CheckpointError> {
        let finite = [
            ("integral", self.integral),
            ("last_error", self.last_error),
            ("output", self.output),
        ];
        match finite.into_iter().find(|(_, value)| !value.is_finite()) {
            Some((what, found)) => Err(CheckpointError::OutOfRange {
                what,
                found: found.to_string(),
                wanted: "finite".to_owned(),
            }),
            None => Ok(()),
        }
    }
}

impl Controller for Pid {
    type Input = Reading;
    type Output = f64;

    fn step(&mut self, [measured, setpoint]: &Reading) {
        let error = setpoint - measured;
        self.integral += GAINS[1] * error;
        let slope = error - self.last_error;
        self.last_error = error;
        let sum = GAINS[0] * error + self.integral + GAINS[2] * slope;
        // Not `clamp`, and the state not checked: what is no number stays none, as in a loop that was
        // not written with care.
        self.output = if sum.is_nan() {
            sum
        } else {
            sum.clamp(-OUTPUT_MAX, OUTPUT_MAX)
        };
    }

    fn output(&self) -> f64 {
        self.output
    }

    fn input_digest([measured, setpoint]: &Reading) -> u32 {
        let bits = measured.to_bits() ^ setpoint.to_bits().rotate_left(21);
        (bits ^ (bits >> 32)) as u32
    }
}

/// A tank of the first order behind the PID loop; its setpoint changes every 40 cycles.
#[derive(Debug, Clone, Default)]
pub struct Tank {
    level: f64,
}

impl Plant for Tank {
    type Loop = Pid;
    type In = Reading;
    type Out = f64;

    fn controller(&self) -> Pid {
        Pid {
            integral: 0.0,
            last_error: 0.0,
            output: 0.0,
        }
    }

    fn sample(&mut self, cycle: u64, held: Option<&f64>) -> Reading {
        let inflow = held.copied().unwrap_or(0.0);
        self.level += 0.1 * (inflow - self.level);
        let setpoint = if (cycle / 40).is_multiple_of(2) {
            20.0
        } else {
            35.0
        };
        [self.level, setpoint]
    }

    /// A step is 1 % of the output's range.
    fn steps_between(&self, one: &f64, other: &f64) -> f64 {
        (one - other).abs() / (OUTPUT_MAX * 0.01)
    }
}
