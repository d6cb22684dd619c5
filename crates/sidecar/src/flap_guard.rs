//! A hold-off for a standby whose roles change too often.
//!
//! Contract: a value; time is an argument. Each change of role is worth one point, which decays by half in
//! every half-life. From so many points on the guard asks for a hold-off, which grows with the points, up
//! to a limit, and falls with them; below half as many it asks for none. So one takeover, or one a day,
//! never costs anything, and a pair that has calmed down is as quick as before.
//!
//! The rule is that of route-flap damping (C. Villamizar, R. Chandra, R. Govindan: *BGP Route Flap Damping*,
//! RFC 2439), with the hold-off in the place of suppression: a standby that never took over would be none.
//!
//! ```text
//!   points  ▲     ╱╲ ╱╲          a change of role: one up; half as many after each half-life
//!   raise ──┼────╱──╲──╲─────
//!           │ ╱╲╱        ╲
//!   release ┼╱────────────╲──    hold-off = step · (points - release), between raise and release
//!           └───────────────▶ t
//! ```

use crate::observed::node::NodeOp;
use crate::policy::Policy;
use crate::stats::InstanceStats;

/// When it raises, and how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlapLimits {
    /// From so many points on it raises the hold-off. It ends at half as many.
    pub raise_points: f64,
    /// In this time points decay by half; unit: ns.
    pub half_life_ns: u64,
    /// For each point above the end, so many cycles more.
    pub step_cycles: u32,
    /// At most so many cycles.
    pub hold_off_cycles_max: u32,
}

impl Default for FlapLimits {
    /// From the fourth change within a minute or so: 2 cycles for each point, at most 20.
    fn default() -> Self {
        Self {
            raise_points: 3.5,
            half_life_ns: 60_000_000_000,
            step_cycles: 2,
            hold_off_cycles_max: 20,
        }
    }
}

/// Counts changes of role, and says how long to hold off.
///
/// As a [`Policy`] of a [`SidecarBox`](crate::SidecarBox) around a node it does so by itself:
///
/// ```
/// use bumpless_sidecar::{FlapGuard, FlapLimits};
///
/// let second_ns = 1_000_000_000;
/// let mut guard = FlapGuard::new(FlapLimits::default());
/// for change in 0..6 {
///     guard.note_change(change * second_ns);
/// }
/// assert!(guard.hold_off_cycles(6 * second_ns) >= 6);
/// assert_eq!(guard.hold_off_cycles(600 * second_ns), 0); // calm for ten minutes
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FlapGuard {
    limits: FlapLimits,
    points: f64,
    as_of_ns: u64,
    is_raised: bool,
    /// Changes that the statistics had counted at the last look.
    seen: u64,
}

impl FlapGuard {
    /// Has seen nothing yet.
    #[must_use]
    pub fn new(limits: FlapLimits) -> Self {
        Self {
            limits,
            points: 0.0,
            as_of_ns: 0,
            is_raised: false,
            seen: 0,
        }
    }

    /// A role changed at `now_ns`, on the caller's monotonic clock.
    pub fn note_change(&mut self, now_ns: u64) {
        self.decay(now_ns);
        self.points += 1.0;
        self.is_raised |= self.points >= self.limits.raise_points;
    }

    /// The hold-off that is right now; unit: cycles.
    pub fn hold_off_cycles(&mut self, now_ns: u64) -> u32 {
        self.decay(now_ns);
        let release_points = self.limits.raise_points / 2.0;
        self.is_raised &= self.points > release_points;
        if !self.is_raised {
            return 0;
        }
        let cycles = (self.points - release_points) * f64::from(self.limits.step_cycles);
        (cycles.ceil() as u32).min(self.limits.hold_off_cycles_max)
    }

    fn decay(&mut self, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.as_of_ns);
        self.as_of_ns = self.as_of_ns.max(now_ns);
        let half_lives = passed_ns as f64 / self.limits.half_life_ns.max(1) as f64;
        self.points *= (-half_lives).exp2();
    }
}

/// The tag is the hold-off.
impl Policy for FlapGuard {
    fn decide(&mut self, stats: &InstanceStats, tag: u32) -> Option<u32> {
        let changes = stats.op(NodeOp::RoleChange).count;
        // Changes between two scans count as at the second: scans are milliseconds apart.
        for _ in self.seen..changes {
            self.note_change(stats.scanned_ns);
        }
        self.seen = changes;
        let cycles = self.hold_off_cycles(stats.scanned_ns);
        (cycles != tag).then_some(cycles)
    }
}
