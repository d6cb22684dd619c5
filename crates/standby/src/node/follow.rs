//! The standby's side: what it adopts, and whether it could take over.
//!
//! Qualified means: it follows the primary of the highest known epoch, holds a complete and sound state
//! of that epoch, its own next epoch is granted, and the primary has heard this life of it. The last
//! condition keeps a delayed heartbeat of long ago from qualifying a node that just started.

use super::hear::Heard;
use super::shadow::Compared;
use super::{Node, Now};
use crate::checkpoint::Controller;
use crate::config::Mode;
use crate::epoch::Epoch;
use crate::event::{Alarm, Event, Reason};
use crate::message::{Flags, Standing};

/// Inputs that differ for so many cycles in a row are not one late sample.
const INPUT_MISMATCHES_MAX: u32 = 2;

impl<C: Controller> Node<C> {
    /// Another epoch drives: all that was known of the last one's state is void.
    pub(super) fn follow_primary(&mut self, epoch: Epoch) {
        self.followed = Some(epoch);
        self.adopted_ago_cycles = 0;
        self.input_mismatches = 0;
        self.checkpoint_is_bad = false;
        if self.standing == Standing::Init {
            self.standing = Standing::Syncing;
        }
    }

    pub(super) fn follow(&mut self, now: &Now, heard: &Heard<'_>, events: &mut Vec<Event>) {
        if self.is_owner() || self.standing == Standing::Maintenance {
            return;
        }
        self.compare_input(heard, events);
        self.adopt(now, heard, events);
        self.forget_the_silent();
        let standing = self.standing_now(heard);
        self.stand(standing, now, events);
    }

    fn compare_input(&mut self, heard: &Heard<'_>, events: &mut Vec<Event>) {
        let Some((cycle, digest)) = heard.input else {
            return;
        };
        match self.shadow.compare_input(cycle, digest) {
            Compared::Equal => self.input_mismatches = 0,
            Compared::Different => {
                self.input_mismatches = INPUT_MISMATCHES_MAX.min(self.input_mismatches + 1);
            }
            Compared::Unknown => return,
        }
        let differ = self.input_mismatches == INPUT_MISMATCHES_MAX;
        self.condition.0.set(Alarm::InputMismatch, differ, events);
    }

    fn adopt(&mut self, now: &Now, heard: &Heard<'_>, events: &mut Vec<Event>) {
        let Some(complete) = &heard.complete else {
            return;
        };
        let is_held =
            self.partner.flags.has(Flags::HOLD_SYNC) && self.standing != Standing::Qualified;
        let mode = self.config.0.mode;
        if heard.is_disputed
            || is_held
            || mode == Mode::Cold
            || self.followed != Some(complete.epoch)
            || (complete.epoch, complete.seq) <= self.shadow.adopted()
        {
            return;
        }
        let same_epoch = self.shadow.adopted().0 == complete.epoch;
        let compared = self.shadow.compare_state(complete.seq, complete.digest);
        let adopted = if compared == Compared::Equal {
            self.shadow.confirm(complete)
        } else {
            self.shadow.adopt(complete, now.cycle, mode == Mode::Hot)
        };
        match adopted {
            Ok(()) => {
                self.adopted_ago_cycles = 0;
                self.checkpoint_is_bad = false;
            }
            Err(error) => {
                self.checkpoint_is_bad = true;
                events.push(Event::CheckpointRefused {
                    seq: complete.seq,
                    error,
                });
            }
        }
        let condition = &mut self.condition.0;
        condition.set(Alarm::BadCheckpoint, self.checkpoint_is_bad, events);
        match compared {
            Compared::Equal => condition.counts.states_equal += 1,
            Compared::Different if same_epoch => condition.counts.states_different += 1,
            _ => return,
        }
        let differ = compared == Compared::Different;
        condition.set(Alarm::StateMismatch, differ, events);
    }

    /// A primary that fell silent and cannot be replaced is no primary any more.
    fn forget_the_silent(&mut self) {
        if self.followed.is_some()
            && self.standing != Standing::Qualified
            && self.silent_cycles >= self.config.0.miss_limit
        {
            self.followed = None;
            self.silent_cycles = 0;
        }
    }

    fn standing_now(&self, heard: &Heard<'_>) -> Standing {
        if self.disqualification().is_some() {
            return Standing::Disqualified;
        }
        if self.followed.is_none() {
            return Standing::Init;
        }
        if self.unreadiness().is_some() {
            return Standing::Syncing;
        }
        // A state of before this life cannot be brought up to date: the inputs since were not seen.
        let is_exact = self.config.0.mode != Mode::Hot || self.shadow.is_exact();
        let may_begin = heard.primary
            && is_exact
            && self.partner.echo == self.incarnation
            && !self.partner.flags.has(Flags::HOLD_SYNC);
        if self.standing == Standing::Qualified || may_begin {
            Standing::Qualified
        } else {
            Standing::Syncing
        }
    }

    /// Why this node must not take over, whatever else happens.
    fn disqualification(&self) -> Option<Reason> {
        let config = &self.config.0;
        if self.schemas_differ {
            Some(Reason::SchemaMismatch)
        } else if self.programs_differ {
            Some(Reason::ProgramMismatch)
        } else if self.checkpoint_is_bad {
            Some(Reason::BadCheckpoint)
        } else if config.input_mismatch_disqualifies
            && self.input_mismatches == INPUT_MISMATCHES_MAX
        {
            Some(Reason::InputMismatch)
        } else if config.probe_cycles > 0 && self.unanswered_cycles > config.unanswered_max() {
            Some(Reason::ActuatorUnreachable)
        } else {
            None
        }
    }

    /// What is still missing.
    fn unreadiness(&self) -> Option<Reason> {
        let config = &self.config.0;
        if self.followed != Some(self.level) {
            Some(Reason::EpochEnded)
        } else if !self.has_ballot() {
            Some(Reason::NoBallot)
        } else if config.mode == Mode::Cold {
            None
        } else if self.shadow.adopted().0 != self.level
            || self.adopted_ago_cycles >= config.stale_cycles()
        {
            Some(Reason::StaleCheckpoint)
        } else {
            None
        }
    }

    fn stand(&mut self, standing: Standing, now: &Now, events: &mut Vec<Event>) {
        let before = (self.standing, self.reason);
        self.reason = self.disqualification();
        self.standing = standing;
        if self.config.0.probe_cycles > 0 {
            let unreachable = self.reason == Some(Reason::ActuatorUnreachable);
            self.condition
                .0
                .set(Alarm::ActuatorUnreachable, unreachable, events);
        }
        if before.0 == Standing::Disqualified && standing == Standing::Init {
            // The partner was told that it may start alone: it is listened to for a whole timeout first.
            self.silent_cycles = 0;
        }
        let is_qualified = standing == Standing::Qualified;
        if is_qualified && before.0 != Standing::Qualified {
            self.qualified_since_ns = Some(now.ns);
            events.push(Event::Qualified { epoch: self.level });
        }
        if !is_qualified {
            self.qualified_since_ns = None;
        }
        let is_news = before.0 == Standing::Qualified || before.1 != self.reason;
        if !is_qualified
            && is_news
            && let Some(reason) = self.reason.or_else(|| self.unreadiness())
        {
            events.push(Event::Disqualified { reason });
        }
    }
}
