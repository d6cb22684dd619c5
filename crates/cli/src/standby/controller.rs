//! The built-in controllers: an integrator, whose every output is known in advance, and a PID loop around
//! a plant that is told by samples.

use bumpless_standby::checkpoint::{Checkpoint, CheckpointError, Controller};

/// What one cycle of a built-in controller reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The control cycle.
    pub cycle: u64,
    /// The plant's last sample of an earlier cycle; 0 before the first.
    pub measured: f64,
}

impl Reading {
    /// Tells two readings apart.
    pub fn digest(&self) -> u32 {
        let bits = self.cycle ^ self.measured.to_bits().rotate_left(17);
        bits as u32 ^ (bits >> 32) as u32
    }
}

/// Adds one in every cycle: the output of cycle `n + k` is that of cycle `n` plus `k`.
#[derive(Debug, Clone, PartialEq)]
pub struct Integrator {
    sum: f64,
}

impl Integrator {
    /// At zero.
    pub const fn new() -> Self {
        Self { sum: 0.0 }
    }
}

impl Checkpoint for Integrator {
    fn schema(&self) -> u64 {
        0x696e_7465_6772_0001
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.sum.to_le_bytes());
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let [sum] = numbers(bytes)?;
        Ok(Self { sum })
    }

    fn check(&self) -> Result<(), CheckpointError> {
        check_finite("the integral", self.sum)
    }
}

impl Controller for Integrator {
    type Input = Reading;
    type Output = f64;

    fn step(&mut self, _: &Reading) {
        self.sum += 1.0;
    }

    fn output(&self) -> f64 {
        self.sum
    }

    fn input_digest(input: &Reading) -> u32 {
        // The cycle alone: what was measured changes nothing here.
        input.cycle as u32
    }
}

/// Proportional, integral and derivative gain; unit of time: one cycle.
const GAINS: [f64; 3] = [0.6, 0.05, 0.1];
/// What the plant shall come to.
pub const SETPOINT: f64 = 100.0;
/// The integral is held inside this band, so that it does not wind up while nothing is driven.
const INTEGRAL_MAX: f64 = 10_000.0;

/// A PID loop in its textbook form, with a clamped integral.
#[derive(Debug, Clone, PartialEq)]
pub struct Pid {
    integral: f64,
    last_error: f64,
    output: f64,
}

impl Pid {
    /// At rest.
    pub const fn new() -> Self {
        Self {
            integral: 0.0,
            last_error: 0.0,
            output: 0.0,
        }
    }
}

impl Checkpoint for Pid {
    fn schema(&self) -> u64 {
        0x0070_6964_0000_0001
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        for number in [self.integral, self.last_error, self.output] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let [integral, last_error, output] = numbers(bytes)?;
        Ok(Self {
            integral,
            last_error,
            output,
        })
    }

    fn check(&self) -> Result<(), CheckpointError> {
        check_finite("the last error", self.last_error)?;
        check_finite("the output", self.output)?;
        if self.integral.abs() > INTEGRAL_MAX || self.integral.is_nan() {
            return Err(CheckpointError::OutOfRange {
                what: "the integral",
                found: self.integral.to_string(),
                wanted: format!("at most {INTEGRAL_MAX} either way"),
            });
        }
        Ok(())
    }
}

impl Controller for Pid {
    type Input = Reading;
    type Output = f64;

    fn step(&mut self, input: &Reading) {
        let [proportional, integral, derivative] = GAINS;
        let error = SETPOINT - input.measured;
        self.integral = (self.integral + error).clamp(-INTEGRAL_MAX, INTEGRAL_MAX);
        self.output = proportional * error
            + integral * self.integral
            + derivative * (error - self.last_error);
        self.last_error = error;
    }

    fn output(&self) -> f64 {
        self.output
    }

    fn input_digest(input: &Reading) -> u32 {
        input.digest()
    }
}

/// A state of so many numbers.
fn numbers<const N: usize>(bytes: &[u8]) -> Result<[f64; N], CheckpointError> {
    let length = || CheckpointError::Length {
        found: bytes.len(),
        wanted: N * 8,
    };
    let (chunks, []) = bytes.as_chunks::<8>() else {
        return Err(length());
    };
    let chunks: &[[u8; 8]; N] = chunks.try_into().map_err(|_| length())?;
    Ok(chunks.map(f64::from_le_bytes))
}

fn check_finite(what: &'static str, number: f64) -> Result<(), CheckpointError> {
    if number.is_finite() {
        return Ok(());
    }
    Err(CheckpointError::OutOfRange {
        what,
        found: number.to_string(),
        wanted: "finite".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_loop_brings_a_first_order_plant_to_its_setpoint() {
        let (mut pid, mut measured) = (Pid::new(), 0.0);
        for cycle in 0..2_000 {
            pid.step(&Reading { cycle, measured });
            measured += 0.1 * (pid.output() - measured);
        }
        assert!((measured - SETPOINT).abs() < 0.1, "{measured}");
    }

    #[test]
    fn a_state_comes_back_and_one_that_cannot_be_is_refused() {
        let mut pid = Pid::new();
        pid.step(&Reading {
            cycle: 1,
            measured: 40.0,
        });
        let mut bytes = vec![];
        pid.encode(&mut bytes);
        assert_eq!(Pid::new().decode(&bytes), Ok(pid.clone()));
        assert!(Pid::new().decode(&bytes[1..]).is_err());
        pid.integral = f64::NAN;
        assert!(pid.check().is_err());
        pid.integral = 2.0 * INTEGRAL_MAX;
        assert!(pid.check().is_err());
    }
}
