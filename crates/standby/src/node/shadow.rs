//! The node's own run of the loop, and how a foreign state is brought up to date in it.
//!
//! Contract: the controller is in the state after cycle `after`. A checkpoint of an earlier cycle is
//! adopted and the own inputs of the cycles since are run again, so its latency costs nothing; one of
//! the present or a later cycle is adopted and waited for, so no input counts twice. One that is further
//! ahead than the history is long comes from a node that counts otherwise: waited for, it would stand
//! still for as long, so the run goes on from it at once and is not exact.

use std::collections::VecDeque;

use crate::checkpoint::{CheckpointError, Controller};
use crate::epoch::Epoch;
use crate::transfer::Complete;
use crate::unhashed::Unhashed;

/// The controller with its recent inputs. `I` is `C::Input`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shadow<C, I> {
    controller: C,
    /// The last state that was adopted: of which epoch, after which cycle. `NONE`: the initial state.
    adopted: (Epoch, u64),
    /// After which cycle the state is now.
    after: u64,
    /// The last cycles, oldest first.
    history: VecDeque<Past<I>>,
    history_cycles: usize,
    /// Every input since the last adopted state was run: the state can be compared with the primary's.
    is_exact: bool,
    /// The state as bytes, if `is_encoded`: else what an earlier one was.
    encoded: Unhashed<Vec<u8>>,
    is_encoded: Unhashed<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Past<I> {
    cycle: u64,
    input: I,
    input_digest: u32,
    /// CRC-32C of the encoded state after the cycle, if the loop ran.
    state_digest: Option<u32>,
}

/// Whether a cycle's state will be compared with the primary's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    ForComparison,
    NotNeeded,
}

/// What comparing two nodes' cycle gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    Equal,
    Different,
    /// The cycle is not in the history, or was not run.
    Unknown,
}

impl<C: Controller<Input = I>, I: Clone> Shadow<C, I> {
    pub fn new(controller: C, history_cycles: u32) -> Self {
        let history_cycles = history_cycles as usize;
        Self {
            controller,
            adopted: (Epoch::NONE, 0),
            after: 0,
            history: VecDeque::with_capacity(history_cycles),
            history_cycles,
            is_exact: false,
            encoded: Unhashed(Vec::new()),
            is_encoded: Unhashed(false),
        }
    }

    pub fn controller(&self) -> &C {
        &self.controller
    }

    pub fn adopted(&self) -> (Epoch, u64) {
        self.adopted
    }

    /// Of which epoch, after which cycle the state is.
    pub fn held(&self) -> (Epoch, u64) {
        (self.adopted.0, self.after)
    }

    /// Every input since the last adopted state was run.
    pub fn is_exact(&self) -> bool {
        self.is_exact
    }

    /// Notes the input of this cycle, before anything of it is run.
    pub fn read(&mut self, cycle: u64, input: &I) -> u32 {
        let input_digest = C::input_digest(input);
        if self.history.len() == self.history_cycles {
            self.history.pop_front();
        }
        self.history.push_back(Past {
            cycle,
            input: input.clone(),
            input_digest,
            state_digest: None,
        });
        input_digest
    }

    /// Runs this cycle, unless the state is already after it.
    pub fn step(&mut self, cycle: u64, digest: Digest) {
        if self.after >= cycle {
            return;
        }
        if let Some(past) = self.history.back_mut() {
            self.is_exact &= self.after.checked_add(1) == Some(cycle);
            run(&mut self.controller, past, &mut self.encoded.0, digest);
            self.is_encoded.0 = true;
            self.after = cycle;
        }
    }

    /// From now on the state is this node's own to continue.
    pub fn own(&mut self, epoch: Epoch) {
        self.adopted = (epoch, self.after);
    }

    /// The encoded state after this cycle; `None` while it is one after a later cycle, adopted from a
    /// primary that was ahead.
    pub fn encoded(&mut self, cycle: u64) -> Option<&[u8]> {
        if self.after != cycle {
            return None;
        }
        if !self.is_encoded.0 {
            self.encoded.0.clear();
            self.controller.encode(&mut self.encoded.0);
            self.is_encoded.0 = true;
        }
        Some(&self.encoded.0)
    }

    pub fn compare_input(&self, cycle: u64, digest: u32) -> Compared {
        match self.past(cycle) {
            Some(past) if past.input_digest == digest => Compared::Equal,
            Some(_) => Compared::Different,
            None => Compared::Unknown,
        }
    }

    pub fn compare_state(&self, cycle: u64, digest: u32) -> Compared {
        if !self.is_exact {
            return Compared::Unknown;
        }
        match self.past(cycle).and_then(|past| past.state_digest) {
            Some(own) if own == digest => Compared::Equal,
            Some(_) => Compared::Different,
            None => Compared::Unknown,
        }
    }

    /// The state of this cycle is the own one already: there is nothing to copy, but both may have gone
    /// wrong on the same input.
    pub fn confirm(&mut self, complete: &Complete<'_>) -> Result<(), CheckpointError> {
        self.controller.check()?;
        self.adopted = (complete.epoch, complete.seq);
        Ok(())
    }

    /// Adopts a state and, with `replays`, runs the inputs of the cycles since, up to but without `cycle`.
    pub fn adopt(
        &mut self,
        complete: &Complete<'_>,
        cycle: u64,
        replays: bool,
    ) -> Result<(), CheckpointError> {
        let adopted = self.controller.decode(&complete.bytes)?;
        adopted.check()?;
        self.controller = adopted;
        self.is_encoded.0 = false;
        self.adopted = (complete.epoch, complete.seq);
        self.after = complete.seq;
        let wait_max = u64::try_from(self.history_cycles).unwrap_or(u64::MAX);
        self.is_exact = complete.seq <= cycle.saturating_add(wait_max);
        if !self.is_exact {
            self.after = cycle.saturating_sub(1);
            return Ok(());
        }
        if !replays {
            return Ok(());
        }
        for past in &mut self.history {
            if past.cycle <= complete.seq || past.cycle >= cycle {
                continue;
            }
            self.is_exact &= self.after.checked_add(1) == Some(past.cycle);
            run(
                &mut self.controller,
                past,
                &mut self.encoded.0,
                Digest::ForComparison,
            );
            self.is_encoded.0 = true;
            self.after = past.cycle;
        }
        Ok(())
    }

    fn past(&self, cycle: u64) -> Option<&Past<I>> {
        self.history.iter().rev().find(|past| past.cycle == cycle)
    }
}

fn run<C: Controller>(
    controller: &mut C,
    past: &mut Past<C::Input>,
    encoded: &mut Vec<u8>,
    digest: Digest,
) {
    controller.step(&past.input);
    encoded.clear();
    controller.encode(encoded);
    past.state_digest = (digest == Digest::ForComparison).then(|| crc32c::crc32c(encoded));
}
