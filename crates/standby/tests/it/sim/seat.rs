//! One node's place in the world: its process, clock, disk and sensors.

use bumpless_standby::authority::Authority;
use bumpless_standby::message::Received;
use bumpless_standby::{Config, Node, Tick};

use super::PERIOD_NS;
use super::disk::{Disk, Office};
use super::loops::Plant;

/// A clock that has its own zero and its own rate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock {
    /// Shows this at the world's zero, plus a day, so that it may also be negative; unit: ns.
    pub offset_ns: i64,
    /// Runs faster by so many parts in a million.
    pub fast_ppm: i64,
}

const DAY_NS: u64 = 86_400_000_000_000;

impl Clock {
    /// What it shows at this true time.
    pub fn reads(&self, true_ns: u64) -> u64 {
        let parts = i128::from(true_ns) * i128::from(self.fast_ppm) / 1_000_000;
        (true_ns + DAY_NS)
            .wrapping_add_signed(self.offset_ns)
            .wrapping_add_signed(parts as i64)
    }

    /// What one period of this clock is in true time.
    pub fn period_ns(&self) -> u64 {
        (u128::from(PERIOD_NS) * 1_000_000 / (1_000_000 + i128::from(self.fast_ppm)) as u128) as u64
    }
}

/// One node's place.
pub struct Seat<P: Plant> {
    pub config: Config,
    /// `None`: crashed.
    pub node: Option<Node<P::Loop>>,
    pub office: Office,
    pub disk: Disk,
    pub clock: Clock,
    pub inbox: Vec<Received>,
    /// Stopped, with what arrives queued.
    pub is_paused: bool,
    /// When it ticks next, in true time.
    pub next_tick_ns: u64,
    /// Its last cycle.
    pub last_cycle: u64,
    /// Its inputs are those of so many cycles ago.
    pub input_age_cycles: u64,
    /// What its sensors make of the input.
    pub sensor: Option<fn(P::In) -> P::In>,
    /// In each cycle, its clock is read with this added: a suspended machine's clock may have gone on.
    pub last_tick_ns: u64,
}

impl<P: Plant> Seat<P> {
    /// Whether the node runs: neither crashed nor stopped.
    pub fn is_running(&self) -> bool {
        self.node.is_some() && !self.is_paused
    }

    /// One cycle; `None` if there is nobody, or the cycle is no new one.
    pub fn tick(&mut self, true_ns: u64, cycle: u64, input: P::In) -> Option<Tick<P::Out>> {
        if self.is_paused || cycle <= self.last_cycle {
            return None;
        }
        let node = self.node.as_mut()?;
        if let Some(answer) = self.office.poll() {
            self.inbox.push(Received::Grant(answer));
        }
        let input = match self.sensor {
            Some(sensor) => sensor(input),
            None => input,
        };
        let tick = node.tick(self.clock.reads(true_ns), cycle, &input, &self.inbox);
        self.inbox.clear();
        self.last_cycle = cycle;
        self.last_tick_ns = true_ns;
        if let Some(above) = tick.ballot_wanted {
            self.office.want(node.config().node, above);
        }
        Some(tick)
    }
}
