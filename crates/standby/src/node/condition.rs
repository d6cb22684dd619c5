//! What people are told: alarms, counts, path health. Nothing that a node decides depends on it.
//!
//! ```text
//!   cause appears ──▶ active, latched, AlarmRaised ── cause gone ──▶ latched
//!                                                                    │ the pair is redundant again,
//!                                                                    ▼ or an operator clears it
//!                                                                   off
//! ```

use super::Node;
use super::partner::PathHealth;
use crate::checkpoint::Controller;
use crate::event::{Alarm, AlarmSet, Event};
use crate::message::{Heartbeat, Part, PartKind, Standing};

/// What was counted since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages of another cluster, another node, or another life of this one.
    pub foreign: u64,
    /// Own messages that came back.
    pub looped_back: u64,
    /// Heartbeats that claim what cannot be.
    pub implausible: u64,
    /// Heartbeats and fragments of the past.
    pub stale: u64,
    /// Parts that fit to nothing.
    pub bad_parts: u64,
    /// Outputs of this node that the actuator refused.
    pub refused: u64,
    /// Cycles in which the primary's state and the own one were equal.
    pub states_equal: u64,
    /// Cycles in which they were not.
    pub states_different: u64,
}

#[derive(Debug, Clone)]
pub struct Condition {
    pub counts: Counts,
    pub active: AlarmSet,
    pub latched: AlarmSet,
    pub paths: [PathHealth; 2],
    path_count: usize,
    was_redundant: bool,
    partner_was_lost: bool,
    pub full_len: u32,
    pub delta_len: u32,
    pub full_len_max: u32,
}

impl Condition {
    pub fn new(paths: u8) -> Self {
        Self {
            counts: Counts::default(),
            active: AlarmSet::default(),
            latched: AlarmSet::default(),
            paths: [PathHealth::default(); 2],
            path_count: usize::from(paths),
            was_redundant: false,
            partner_was_lost: true,
            full_len: 0,
            delta_len: 0,
            full_len_max: 0,
        }
    }

    pub fn paths(&self) -> &[PathHealth] {
        self.paths.get(..self.path_count).unwrap_or_default()
    }

    pub fn set(&mut self, alarm: Alarm, is_on: bool, events: &mut Vec<Event>) {
        self.active.set(alarm, is_on);
        if is_on && !self.latched.has(alarm) {
            self.latched.set(alarm, true);
            events.push(Event::AlarmRaised { alarm });
        }
    }

    /// Its cause is gone.
    pub fn clear(&mut self, alarm: Alarm) {
        self.active.set(alarm, false);
    }

    pub fn unlatch(&mut self) {
        self.latched.keep(self.active);
    }

    /// `newest` is the latest cycle heard over any path.
    pub fn note_heartbeat(
        &mut self,
        path: u8,
        heartbeat: &Heartbeat,
        newest: u64,
        late_cycles: u32,
    ) {
        let is_heard = heartbeat.heard_paths.0 & (1 << path) != 0;
        if let Some(health) = self.paths.get_mut(usize::from(path)) {
            health.note(heartbeat.seq, newest, late_cycles, is_heard);
        }
    }

    pub fn tick_paths(&mut self, silent_max: u32, events: &mut Vec<Event>) {
        for (path, alarm) in (0u8..).zip([Alarm::Path0Degraded, Alarm::Path1Degraded]) {
            let Some(health) = self.paths.get_mut(usize::from(path)) else {
                return;
            };
            match health.tick(silent_max) {
                Some(true) => events.push(Event::PathDegraded { path }),
                Some(false) => events.push(Event::PathRestored { path }),
                None => continue,
            }
            let (is_degraded, is_late) = (health.is_degraded, health.is_late());
            self.set(alarm, is_degraded, events);
            self.set(Alarm::PathLate, is_late, events);
        }
    }

    /// The paths over which the partner was heard in this cycle, a bit each. The partner counts how long a
    /// bit is missing: two such counts, one after the other, would name a dead path only after both.
    pub fn heard_paths(&self) -> u8 {
        (0u8..)
            .zip(&self.paths)
            .filter(|(_, path)| path.received > 0 && path.silent_cycles <= 1)
            .fold(0, |bits, (index, _)| bits | (1 << index))
    }

    pub fn note_checkpoint(&mut self, state_len: usize, parts: &[Part]) {
        let len = u32::try_from(state_len).unwrap_or(u32::MAX);
        match parts.first() {
            Some(part) if part.kind != PartKind::Full => self.delta_len = part.total_len,
            _ => {
                self.full_len = len;
                self.full_len_max = self.full_len_max.max(len);
            }
        }
    }
}

impl<C: Controller> Node<C> {
    /// The end of a tick: is the pair redundant, and what does that raise or end?
    pub(super) fn assess(&mut self, events: &mut Vec<Event>) {
        let is_redundant = self.is_redundant();
        let is_lost = self.partner.silent_cycles >= self.config.0.miss_limit;
        // Conditions of a moment: the alarm stays latched, its cause has passed.
        let unclaimed = self.actuator_is_unclaimed;
        let drives = self.is_owner();
        let condition = &mut self.condition.0;
        for alarm in [Alarm::Loopback, Alarm::Disagree, Alarm::EpochJump] {
            condition.clear(alarm);
        }
        condition.set(Alarm::ActuatorUnclaimed, unclaimed, events);
        if is_lost && !condition.partner_was_lost {
            events.push(Event::PartnerLost);
        }
        condition.partner_was_lost = is_lost;
        if is_redundant {
            condition.clear(Alarm::RedundancyLost);
            if !condition.was_redundant {
                events.push(Event::RedundancyRestored);
                condition.unlatch();
            }
        } else {
            if condition.was_redundant {
                events.push(Event::RedundancyLost);
            }
            if condition.was_redundant || drives {
                condition.set(Alarm::RedundancyLost, true, events);
            }
        }
        condition.was_redundant = is_redundant;
    }

    /// A failure of either node would be survived.
    pub(super) fn is_redundant(&self) -> bool {
        match self.standing {
            Standing::Primary => self.partner_is_qualified(),
            Standing::Qualified => self.silent_cycles < self.config.0.miss_limit,
            _ => false,
        }
    }
}
