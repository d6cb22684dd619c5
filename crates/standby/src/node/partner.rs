//! What this node knows of the other one, and over which path.

use std::cmp::Reverse;

use crate::config::{Config, Mode};
use crate::epoch::Epoch;
use crate::message::{Flags, Heartbeat, Standing};

/// The partner as its freshest heartbeat tells it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Partner {
    /// Which life; 0: never heard.
    pub incarnation: u64,
    pub epoch: Epoch,
    pub seq: u64,
    pub standing: Standing,
    pub flags: Flags,
    /// Which life of this node it has heard.
    pub echo: u64,
    pub held: (Epoch, u64),
    /// Own ticks since the last fresh heartbeat, saturating at the configured end.
    pub silent_cycles: u32,
    digest: u32,
}

/// How a heartbeat relates to what was heard before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    Fresh,
    /// The same cycle again, as the other path delivers it.
    Repeated,
    /// The same cycle of the same epoch with another content.
    Contradicts,
    Stale,
}

impl Partner {
    pub fn unknown(silent_cycles: u32) -> Self {
        Self {
            incarnation: 0,
            epoch: Epoch::NONE,
            seq: 0,
            standing: Standing::Init,
            flags: Flags::default(),
            echo: 0,
            held: (Epoch::NONE, 0),
            silent_cycles,
            digest: 0,
        }
    }

    pub fn is_known(&self) -> bool {
        self.incarnation != 0
    }

    /// (epoch, seq) decide; a partner that started anew may know less, but its cycles go on.
    pub fn freshness(&self, heartbeat: &Heartbeat) -> Freshness {
        if !self.is_known() {
            return Freshness::Fresh;
        }
        let ordering = (heartbeat.epoch, heartbeat.seq).cmp(&(self.epoch, self.seq));
        if ordering.is_eq() {
            return if content_digest(heartbeat) == self.digest {
                Freshness::Repeated
            } else {
                Freshness::Contradicts
            };
        }
        let is_new_life = heartbeat.incarnation != self.incarnation && heartbeat.seq > self.seq;
        if ordering.is_gt() || is_new_life {
            Freshness::Fresh
        } else {
            Freshness::Stale
        }
    }

    pub fn update(&mut self, heartbeat: &Heartbeat) {
        *self = Self {
            incarnation: heartbeat.incarnation,
            epoch: heartbeat.epoch,
            seq: heartbeat.seq,
            standing: heartbeat.standing,
            flags: heartbeat.flags,
            echo: heartbeat.echo,
            held: heartbeat.held,
            silent_cycles: 0,
            digest: content_digest(heartbeat),
        };
    }

    /// The better claim to start the plant: the later state, then the preferred node, then the lower id.
    ///
    /// Both must decide alike, in whatever phase they hear each other: so nothing counts that changes
    /// from cycle to cycle, as the last cycle of a hot state does.
    pub fn yields_to(&self, config: &Config, held: (Epoch, u64)) -> bool {
        let rank = |(epoch, after): (Epoch, u64)| match config.mode {
            Mode::Hot => (epoch, 0),
            Mode::Warm | Mode::Cold => (epoch, after),
        };
        let its_wish = self.flags.has(Flags::WANTS_PRIMARY);
        let own = (rank(held), config.preferred, Reverse(config.node));
        own > (rank(self.held), its_wish, Reverse(config.partner))
    }
}

/// Tells two heartbeats of one cycle apart; not what may differ from path to path.
fn content_digest(heartbeat: &Heartbeat) -> u32 {
    let state_digest = heartbeat.part.as_ref().map_or(0, |part| part.state_digest);
    let mut digest = state_digest ^ heartbeat.input_digest.rotate_left(7);
    digest ^= u32::from(heartbeat.flags.0) << 16 ^ heartbeat.standing as u32;
    digest ^= (heartbeat.held.1 as u32).rotate_left(13);
    digest ^ (heartbeat.incarnation as u32)
}

/// One way from the partner. Nothing that a node decides depends on it, only alarms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathHealth {
    /// Heartbeats that came over it.
    pub received: u64,
    /// Cycles of which nothing came over it, as far as later ones tell.
    pub lost: u64,
    /// Heartbeats that came further behind the newest over any path than the configured cycles.
    pub late: u64,
    /// Heartbeats of one cycle that came more than once over it.
    pub repeated: u64,
    /// Heartbeats that came after a later one on the same path.
    pub reordered: u64,
    /// Whether it delivers, and in time.
    pub is_degraded: bool,
    /// Own cycles since the last heartbeat over it.
    pub silent_cycles: u32,
    /// Own cycles since the partner last said that it hears this node over it.
    pub unheard_cycles: u32,
    last_seq: u64,
    /// Bit n: cycle `last_seq - n` came.
    window: u64,
    late_in_a_row: u32,
}

/// So many late ones in a row are a degraded path.
const LATE_IN_A_ROW: u32 = 3;

impl PathHealth {
    /// Notes a heartbeat of cycle `seq`, while the newest of all paths is `newest`; `is_heard`: it says
    /// that the partner hears this node over this path. Further than `late_cycles` behind is late.
    pub(crate) fn note(&mut self, seq: u64, newest: u64, late_cycles: u32, is_heard: bool) {
        self.silent_cycles = 0;
        if is_heard {
            self.unheard_cycles = 0;
        }
        if seq.saturating_add(late_cycles.into()) < newest {
            self.late += 1;
            self.late_in_a_row = self.late_in_a_row.saturating_add(1);
        } else {
            self.late_in_a_row = 0;
        }
        if self.received == 0 {
            (self.last_seq, self.window) = (seq, 1);
        } else if seq > self.last_seq {
            let gap = seq - self.last_seq;
            self.lost += gap - 1;
            self.window = if gap < 64 { self.window << gap } else { 0 } | 1;
            self.last_seq = seq;
        } else {
            let age = self.last_seq - seq;
            let is_new = age < 64 && self.window & (1 << age) == 0;
            if is_new {
                self.window |= 1 << age;
                self.reordered += 1;
                self.lost = self.lost.saturating_sub(1);
            } else {
                self.repeated += 1;
            }
        }
        self.received += 1;
    }

    /// One more own cycle; says whether the degradation changed.
    pub(crate) fn tick(&mut self, silent_max: u32) -> Option<bool> {
        self.silent_cycles = self.silent_cycles.saturating_add(1);
        self.unheard_cycles = self.unheard_cycles.saturating_add(1);
        let was = self.is_degraded;
        self.is_degraded = self.received > 0
            && (self.silent_cycles > silent_max
                || self.unheard_cycles > silent_max
                || self.is_late());
        (was != self.is_degraded).then_some(self.is_degraded)
    }

    pub(crate) fn is_late(&self) -> bool {
        self.late_in_a_row >= LATE_IN_A_ROW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_is_further_behind_the_newest_than_configured_and_three_in_a_row_are_a_late_path() {
        for late_cycles in [0, 2, 7] {
            let mut path = PathHealth::default();
            let tolerated = u64::from(late_cycles);
            for seq in 100..110 {
                path.note(seq, seq + tolerated, late_cycles, true);
            }
            assert_eq!((path.late, path.is_late()), (0, false));
            for seq in 110..113 {
                assert!(!path.is_late());
                path.note(seq, seq + tolerated + 1, late_cycles, true);
            }
            assert_eq!((path.late, path.is_late()), (3, true));
            path.note(113, 113, late_cycles, true);
            assert!(!path.is_late());
        }
    }
}
