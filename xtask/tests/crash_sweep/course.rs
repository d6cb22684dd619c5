//! The way through a window: how many instructions it has, and how to get to each of them quickly.
//!
//! Contract: crash point `k` lies before instruction `k` of the window; point 0 is its opening, the last
//! one its close. Victims run without address randomisation, so the way of one is the way of the next,
//! but for what depends on time and chance: then the point is where `k` leads this time.
//!
//! Stepping to a point from the opening each time would cost the square of the length, and a victim that
//! is slow all the way is not the one that is to be tested (a scan that takes long fences nobody). So
//! the way is cut into stages. A stage begins at an instruction that the way has not come to before:
//! there the victim is brought at full speed, by a debug register, and stepped from there.
//!
//! ```text
//!   open ─ step ... ─┐                                       stage 0: from the opening
//!   open ═ full speed ═▶ address 1 ─ step ... ─┐             stage 1
//!   open ═ full speed ════════════════════════▶ address 2 ─ step ... ─ close
//! ```

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::operations::Operation;
use crate::point::{Bystander, at_the_window};
use crate::stage::Stage;
use crate::tracer::{Instruction, Step, Victim};

/// When an address will not do, the next one is looked for so much later.
const STAGE_RETRY_STEPS: usize = 24;
/// A stage that does not find one by then is given up. Without optimization a small loop takes many more.
const STAGE_STEPS_MAX: usize = if cfg!(debug_assertions) {
    1_000_000
} else {
    20_000
};

/// Up to so many instructions, every one is a crash point.
const SHORT: usize = 4_000;
/// In a longer window every one is that lies so near to an event,
const NEAR: usize = 16;
/// and of the others each of so many.
const APART: usize = 16;

/// How often the way to a stage is tried.
const TRIES: usize = 3;

/// What measuring a window shows.
#[derive(Debug)]
pub struct Course {
    stage_steps: usize,
    /// Each begins at a step and, but for the first, at an address.
    stages: Vec<(usize, Option<u64>)>,
    /// How many instructions the window has.
    pub instructions: usize,
    /// How many of them are system calls.
    pub system_calls: usize,
    /// Those after which the world looks different: system calls, and changes of shared memory.
    events: Vec<usize>,
}

impl Course {
    /// Finds the way through an operation's window. After `stage_steps` the next stage begins, as soon
    /// as there is an address for it: short stages are for those who try many points.
    pub fn measure(operation: &Operation, stage_steps: usize, folder: &Path) -> Result<Self> {
        let mut course = Self {
            stage_steps,
            stages: vec![(0, None)],
            instructions: 0,
            system_calls: 0,
            events: Vec::new(),
        };
        let mut seen = HashSet::new();
        loop {
            let (first, _) = *course.stages.last().context("a stage")?;
            let stage = Stage::new(folder.join("measure"));
            let (victim, _bystander) = course.bring(operation, &stage, first)?;
            let Some(next) = course.walk(&victim, &stage, first, &mut seen, |address| {
                Self::is_on_the_way(operation, address, folder)
            })?
            else {
                victim.finish()?;
                return Ok(course);
            };
            victim.kill()?;
            course.stages.push(next);
        }
    }

    /// Steps from the start of the last stage to that of the next; to the close if there is none.
    fn walk(
        &mut self,
        victim: &Victim,
        stage: &Stage,
        first: usize,
        seen: &mut HashSet<u64>,
        is_on_the_way: impl Fn(u64) -> Result<bool>,
    ) -> Result<Option<(usize, Option<u64>)>> {
        let mut next_stage = self.stage_steps;
        let mut shared = stage.shared_bytes();
        for step in 0..STAGE_STEPS_MAX {
            let Instruction {
                address,
                is_system_call,
                ..
            } = victim.next()?;
            let is_new = seen.insert(address);
            if is_new && step >= next_stage {
                if is_on_the_way(address)? {
                    // The next stage sees it again, as its first.
                    seen.remove(&address);
                    return Ok(Some((first + step, Some(address))));
                }
                next_stage = step + STAGE_RETRY_STEPS;
            }
            if victim.step()? == Step::Closed {
                return Ok(None);
            }
            let now = stage.shared_bytes();
            if is_system_call || now != shared {
                self.events.push(first + step);
                shared = now;
            }
            self.system_calls += usize::from(is_system_call);
            self.instructions = first + step + 1;
        }
        bail!("no new address in {STAGE_STEPS_MAX} steps");
    }

    /// Whether victims come to an address also at full speed, and not only while they are slow.
    fn is_on_the_way(operation: &Operation, address: u64, folder: &Path) -> Result<bool> {
        for _ in 0..TRIES {
            let (victim, _bystander) =
                at_the_window(operation, Stage::new(folder.join("try")).cleared()?)?;
            let is_there = victim.run_to(address)?;
            victim.kill()?;
            if !is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Brings a victim from the opening of its window to a crash point, or to the close.
    pub fn bring(
        &self,
        operation: &Operation,
        stage: &Stage,
        k: usize,
    ) -> Result<(Victim, Option<Bystander>)> {
        let stages = self.stages.iter().rev().filter(|(first, _)| *first <= k);
        for (first, address) in stages.flat_map(|stage| [stage; TRIES]) {
            let (victim, bystander) = at_the_window(operation, stage.cleared()?)?;
            let is_there = match address {
                Some(address) => victim.run_to(*address)?,
                None => true,
            };
            if !is_there {
                // It took another way, as happens where it depends on time.
                victim.kill()?;
                continue;
            }
            for _ in *first..k {
                if victim.step()? == Step::Closed {
                    break;
                }
            }
            return Ok((victim, bystander));
        }
        bail!("no way to point {k}")
    }

    /// The crash points of [`Extent::Staged`](crate::plan::Extent::Staged).
    pub fn points(&self) -> Vec<usize> {
        let all = 0..=self.instructions;
        if self.instructions <= SHORT {
            return all.collect();
        }
        let near = |k: &usize| {
            let after = self.events.partition_point(|event| event + NEAR < *k);
            self.events
                .get(after)
                .is_some_and(|event| *event <= k + NEAR)
        };
        all.filter(|k| k.is_multiple_of(APART) || near(k)).collect()
    }
}
