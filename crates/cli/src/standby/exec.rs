//! A controller in any language: a program that answers one line for every line.
//!
//! ```text
//!   node ──▶ program   CYCLE MEASURED STATE        STATE is `-` in the beginning
//!   node ◀── program   OUTPUT STATE                STATE: one word, at most 4,096 bytes
//! ```
//!
//! The program keeps nothing between lines: all that the next cycle needs is in STATE. So a takeover, and
//! the catching up of a late checkpoint, are lines like any other. A program that does not answer in time
//! makes its node silent, and the partner takes over; one that ends, or answers with something else, ends
//! the node before anything of that cycle is sent. It does not outlive its node.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use bumpless_standby::checkpoint::{Checkpoint, CheckpointError, Controller};
use bumpless_substrate::guard::spawn_guarded;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::controller::Reading;
use super::error::StandbyError;
use crate::signals::{INTERRUPTED, Signals};

/// The longest state; unit: bytes.
const STATE_LEN_MAX: usize = 4096;
/// While a program does not answer, the node looks this often whether it shall end.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The user's program, and the state after its last answer.
#[derive(Debug, Clone)]
pub struct Exec {
    program: Rc<RefCell<Program>>,
    state: String,
    output: f64,
}

#[derive(Debug)]
struct Program {
    name: String,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    signals: Signals,
}

impl Exec {
    /// Starts the program. A node that is asked to end while the program does not answer ends at once.
    pub fn start(words: &[String], signals: Signals) -> Result<Self, StandbyError> {
        let [name, arguments @ ..] = words else {
            return Err(StandbyError::NoProgram);
        };
        let mut command = Command::new(name);
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = spawn_guarded(&mut command, None)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(StandbyError::NoProgram);
        };
        Ok(Self {
            program: Rc::new(RefCell::new(Program {
                name: name.clone(),
                stdin,
                stdout: BufReader::new(stdout),
                signals,
            })),
            state: "-".to_owned(),
            output: 0.0,
        })
    }
}

impl Program {
    fn ask(&mut self, reading: &Reading, state: &str) -> Result<(f64, String), StandbyError> {
        self.expect_silence()?;
        let name = self.name.clone();
        let failed = |doing, error| StandbyError::Program {
            doing,
            name: name.clone(),
            error,
        };
        let question = format!("{} {} {state}\n", reading.cycle, reading.measured);
        self.stdin
            .write_all(question.as_bytes())
            .map_err(|error| failed("ask", error))?;
        let mut answer = Vec::new();
        while answer.last() != Some(&b'\n') && answer.len() < STATE_LEN_MAX + 64 {
            let part = self.hear().map_err(|error| failed("hear", error))?;
            if part.is_empty() {
                break;
            }
            answer.extend_from_slice(&part);
        }
        let answer = String::from_utf8_lossy(&answer);
        parse(&answer).ok_or_else(|| StandbyError::Answer {
            name: name.clone(),
            found: answer.chars().take(60).collect(),
        })
    }

    /// Two answers for one question would make every later one that of an earlier cycle.
    fn expect_silence(&mut self) -> Result<(), StandbyError> {
        let now = Timespec::default();
        let output = PollFd::new(self.stdout.get_ref(), PollFlags::IN);
        if self.stdout.buffer().is_empty() && poll(&mut [output], Some(&now)) != Ok(1) {
            return Ok(());
        }
        let error = match self.stdout.fill_buf() {
            // It has ended: the question will say so.
            Ok([]) => return Ok(()),
            Ok(come) => StandbyError::Unasked {
                name: self.name.clone(),
                found: String::from_utf8_lossy(come).chars().take(60).collect(),
            },
            Err(error) => StandbyError::Program {
                doing: "hear",
                name: self.name.clone(),
                error,
            },
        };
        Err(error)
    }

    /// What came, up to and with the line's end; nothing when the program closed its output.
    fn hear(&mut self) -> std::io::Result<Vec<u8>> {
        while self.stdout.buffer().is_empty() {
            let output = PollFd::new(self.stdout.get_ref(), PollFlags::IN);
            match poll(&mut [output], Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => break,
                Err(errno) => return Err(errno.into()),
            }
            if self.signals.asked() {
                std::process::exit(i32::from(INTERRUPTED));
            }
        }
        let come = self.stdout.fill_buf()?;
        let line = come.split_inclusive(|byte| *byte == b'\n').next();
        let part = line.unwrap_or_default().to_vec();
        self.stdout.consume(part.len());
        Ok(part)
    }
}

/// `OUTPUT STATE`, a finite number and one word.
fn parse(answer: &str) -> Option<(f64, String)> {
    let (output, state) = answer.strip_suffix('\n')?.split_once(' ')?;
    let output: f64 = output.parse().ok()?;
    (output.is_finite() && is_state(state)).then(|| (output, state.to_owned()))
}

fn is_state(state: &str) -> bool {
    !state.is_empty() && state.len() <= STATE_LEN_MAX && !state.contains(char::is_whitespace)
}

impl Checkpoint for Exec {
    fn schema(&self) -> u64 {
        0x6578_6563_0000_0001
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.output.to_le_bytes());
        bytes.extend_from_slice(self.state.as_bytes());
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let malformed = |why: &str| CheckpointError::Malformed(why.to_owned());
        let (output, state) = bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| malformed("shorter than an output"))?;
        let state = std::str::from_utf8(state).map_err(|_| malformed("state is no UTF-8"))?;
        if !is_state(state) {
            return Err(malformed("state is not one word of at most 4,096 bytes"));
        }
        Ok(Self {
            program: Rc::clone(&self.program),
            state: state.to_owned(),
            output: f64::from_le_bytes(*output),
        })
    }

    fn check(&self) -> Result<(), CheckpointError> {
        if self.output.is_finite() {
            return Ok(());
        }
        Err(CheckpointError::OutOfRange {
            what: "the output",
            found: self.output.to_string(),
            wanted: "finite".to_owned(),
        })
    }
}

impl Controller for Exec {
    type Input = Reading;
    type Output = f64;

    fn step(&mut self, input: &Reading) {
        match self.program.borrow_mut().ask(input, &self.state) {
            Ok((output, state)) => (self.output, self.state) = (output, state),
            Err(error) => {
                // Before this cycle's heartbeat and output: a node without its controller is a dead one.
                tell!("bumpless standby node: {error}");
                std::process::exit(1);
            }
        }
    }

    fn output(&self) -> f64 {
        self.output
    }

    fn input_digest(input: &Reading) -> u32 {
        input.digest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_finite_number_and_one_word() {
        assert_eq!(parse("1.5 a:b\n"), Some((1.5, "a:b".to_owned())));
        for wrong in [
            "1.5\n",
            "1.5 \n",
            "1.5 a b\n",
            "inf a\n",
            "x a\n",
            "1.5 a",
            "",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }

    fn start(words: &[String]) -> Exec {
        Exec::start(words, Signals::never()).expect("sh starts")
    }

    #[test]
    fn a_program_that_says_more_than_it_is_asked_is_found_out_and_not_believed() {
        let script = "while read c m s; do printf '1 a\\n2 b\\n'; done";
        let exec = start(&["sh", "-c", script].map(str::to_owned));
        let reading = Reading {
            cycle: 1,
            measured: 0.0,
        };
        let mut program = exec.program.borrow_mut();
        let first = program.ask(&reading, "-").expect("an answer");
        assert_eq!(first, (1.0, "a".to_owned()));
        let error = program.ask(&reading, "a").expect_err("one line too many");
        assert!(matches!(error, StandbyError::Unasked { .. }), "{error}");
    }

    #[test]
    fn a_program_that_keeps_its_state_in_the_line_can_be_continued_by_another_one() {
        let script = "while read c m s; do [ $s = - ] && s=0; s=$((s + 2)); echo $s.5 $s; done";
        let words = ["sh", "-c", script].map(str::to_owned);
        let mut one = start(&words);
        let reading = Reading {
            cycle: 1,
            measured: 0.0,
        };
        one.step(&reading);
        one.step(&reading);
        let mut bytes = vec![];
        one.encode(&mut bytes);
        let mut other = start(&words);
        other = other.decode(&bytes).expect("a state");
        other.step(&reading);
        assert_eq!((other.output(), other.state.as_str()), (6.5, "6"));
    }
}
