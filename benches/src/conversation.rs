//! A standby pair that is settled, one side at a time, timed.
//!
//! Contract: each side alone is given its half of a conversation again, as often from the beginning as needed,
//! from the same state; a tick by itself, without the other and without links and disks.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use bumpless_standby::Node;
use bumpless_standby::message::{Heartbeat, Received};
use bumpless_standby::node::State;
use bumpless_standby::rehearsal::{self, INPUT, Integrators, PERIOD_NS, SETTLED};

use crate::machine::clock_cost_ns;

/// Cycles that can be given to one side again.
pub const CYCLES: usize = 4_096;
/// Ticks that are timed together: what is heard in them stays in the processor's caches, as what a node heard
/// from a socket a moment ago does.
const BLOCK: usize = 256;

/// One of the two, and what it hears from now on.
#[derive(Debug)]
pub struct Side(rehearsal::Side);

/// A conversation: the primary's side and the standby's.
///
/// # Errors
/// The two did not settle.
pub fn converse() -> Result<[Side; 2]> {
    Ok(rehearsal::converse(CYCLES)?.map(Side))
}

impl Side {
    /// So many ticks, as often from the beginning as needed; the nanoseconds that they took.
    ///
    /// # Errors
    /// The side does not stand where it stood.
    pub fn ticks(&self, times: u64) -> Result<f64> {
        let (mut ns, mut left) = (0.0, times as usize);
        while left > 0 {
            let some = left.min(BLOCK);
            let mut node = self.0.node.clone();
            let started = Instant::now();
            self.replay(&mut node, some);
            ns += started.elapsed().as_nanos() as f64 - clock_cost_ns();
            ensure!(
                node.state() == self.0.node.state(),
                "{:?} after {some} ticks",
                node.state()
            );
            left -= some;
        }
        Ok(ns)
    }

    /// The first ticks, without a look at the clock: at most [`CYCLES`].
    pub fn first_ticks(&self, times: usize) {
        self.replay(&mut self.0.node.clone(), times);
    }

    fn replay(&self, node: &mut Node<Integrators>, times: usize) {
        self.0.replay(times, |now_ns, cycle, heard| {
            black_box(node.tick(now_ns, cycle, &INPUT, black_box(heard)));
        });
    }

    /// The standby hears nothing any more. The nanoseconds of the tick in which it takes over, which is to be
    /// the one in the last cycle of its miss limit and no other.
    ///
    /// # Errors
    /// It takes over in another one, or not at all.
    pub fn take_over(&self) -> Result<f64> {
        let mut node = self.0.node.clone();
        let silent_cycles = u64::from(node.config().miss_limit);
        let promoting = SETTLED + silent_cycles;
        // What was said in the last cycle before the silence arrives in this one.
        black_box(node.tick(SETTLED * PERIOD_NS, SETTLED, &INPUT, &self.0.hears[0]));
        for cycle in SETTLED + 1..promoting {
            black_box(node.tick(cycle * PERIOD_NS, cycle, &INPUT, &[]));
            ensure!(
                !drives(&node),
                "took over {} cycles early",
                promoting - cycle
            );
        }
        let started = Instant::now();
        black_box(node.tick(promoting * PERIOD_NS, promoting, &INPUT, &[]));
        let ns = started.elapsed().as_nanos() as f64 - clock_cost_ns();
        ensure!(
            drives(&node),
            "{:?} after {silent_cycles} silent cycles",
            node.state()
        );
        Ok(ns)
    }

    /// The first heartbeat that this side hears.
    #[must_use]
    pub fn heartbeat(&self) -> Option<&Heartbeat> {
        self.0.hears.iter().flatten().find_map(|heard| match heard {
            Received::Heartbeat { heartbeat, .. } => Some(heartbeat),
            _ => None,
        })
    }
}

fn drives(node: &Node<Integrators>) -> bool {
    matches!(node.state(), State::Primary | State::Solo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standby_takes_over_in_the_last_cycle_of_its_miss_limit_and_the_primary_never_does() {
        let [primary, standby] = converse().unwrap();
        standby.take_over().unwrap();
        assert!(primary.take_over().is_err(), "it drives already");
        standby.ticks(2 * BLOCK as u64 + 1).unwrap();
    }
}
