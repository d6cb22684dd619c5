//! What arrived: whom it is from, whether it is fresh, and which level it tells.
//!
//! Only a fresh heartbeat of a primary at or above the known level counts as the primary's life; a
//! fragment never does. A level that somebody tells is believed up to the jump bound, the actuator's
//! always: it is the one that refuses.

use super::partner::Freshness;
use super::{Node, Now};
use crate::checkpoint::Controller;
use crate::epoch::Epoch;
use crate::event::{Alarm, Demotion, Event};
use crate::message::{
    Flags, Fragment, Grant, Heartbeat, Part, Received, Refusal, Reply, Standing, Verdict,
};
use crate::transfer::{Complete, PartError};

/// So far ahead of both nodes, a cycle number is not believed; unit: cycles.
const CYCLE_LEAD_MAX: u64 = 1024;

/// What of all that the rest of the tick needs.
#[derive(Debug, Default)]
pub struct Heard<'m> {
    /// The followed primary lives.
    pub primary: bool,
    /// A state that came complete, not yet judged.
    pub complete: Option<Complete<'m>>,
    /// Two different states of one cycle: neither is adopted.
    pub is_disputed: bool,
    /// The primary asks for this.
    pub take_over: Option<Flags>,
    /// The input digest that the primary told for its cycle.
    pub input: Option<(u64, u32)>,
    /// The actuator answered, and knows no epoch above the own one.
    pub own_level: bool,
}

impl<C: Controller> Node<C> {
    pub(super) fn hear<'m>(
        &mut self,
        now: &Now,
        received: &'m [Received],
        events: &mut Vec<Event>,
    ) -> Heard<'m> {
        let mut heard = Heard::default();
        for message in received {
            match message {
                Received::Heartbeat { path, heartbeat } => {
                    self.hear_heartbeat(now, *path, heartbeat, &mut heard, events);
                }
                Received::Fragment { fragment, .. } => {
                    self.hear_fragment(now, fragment, &mut heard, events)
                }
                Received::Reply(reply) => self.hear_reply(now, reply, &mut heard, events),
                Received::Grant(Ok(grant)) => self.hear_grant(*grant),
                Received::Grant(Err(error)) => {
                    self.condition.0.set(Alarm::NoBallot, true, events);
                    events.push(Event::NoBallot {
                        error: error.clone(),
                    });
                }
            }
        }
        self.condition
            .0
            .tick_paths(self.config.0.path_silent_max, events);
        heard
    }

    fn hear_heartbeat<'m>(
        &mut self,
        now: &Now,
        path: u8,
        heartbeat: &'m Heartbeat,
        heard: &mut Heard<'m>,
        events: &mut Vec<Event>,
    ) {
        let config = &self.config.0;
        if heartbeat.cluster == config.cluster && heartbeat.node == config.node {
            self.condition.0.counts.looped_back += 1;
            self.condition.0.set(Alarm::Loopback, true, events);
            return;
        }
        if heartbeat.cluster != config.cluster
            || heartbeat.node != config.partner
            || path >= config.paths
        {
            self.condition.0.counts.foreign += 1;
            return;
        }
        let owns = matches!(heartbeat.standing, Standing::Primary | Standing::Suspended);
        if owns && heartbeat.epoch.owner() != heartbeat.node {
            self.condition.0.counts.implausible += 1;
            return;
        }
        if self.jumps(heartbeat.epoch) {
            self.condition.0.counts.implausible += 1;
            self.condition.0.set(Alarm::EpochJump, true, events);
            return;
        }
        if self.partner.is_known() && self.is_far_ahead(now, heartbeat.seq) {
            self.condition.0.counts.implausible += 1;
            return;
        }
        let newest = self.partner.seq.max(heartbeat.seq);
        self.condition
            .0
            .note_heartbeat(path, heartbeat, newest, config.late_cycles);
        match self.partner.freshness(heartbeat) {
            Freshness::Fresh => {}
            Freshness::Repeated => return,
            Freshness::Contradicts => {
                self.condition.0.set(Alarm::Disagree, true, events);
                heard.is_disputed = true;
                return;
            }
            Freshness::Stale => {
                self.condition.0.counts.stale += 1;
                return;
            }
        }
        if !self.partner.is_known() || self.partner.silent_cycles >= config.miss_limit {
            events.push(Event::PartnerFound {
                incarnation: heartbeat.incarnation,
            });
        } else if heartbeat.incarnation != self.partner.incarnation {
            events.push(Event::PartnerRestarted {
                incarnation: heartbeat.incarnation,
            });
        }
        self.partner.update(heartbeat);
        if heartbeat.standing == Standing::Primary {
            self.hear_primary(now, heartbeat, heard, events);
        } else if heartbeat.epoch > self.level {
            self.level = heartbeat.epoch;
        }
    }

    fn hear_primary<'m>(
        &mut self,
        now: &Now,
        heartbeat: &'m Heartbeat,
        heard: &mut Heard<'m>,
        events: &mut Vec<Event>,
    ) {
        if self.is_owner() {
            if heartbeat.epoch < self.epoch {
                return;
            }
            self.level = self.level.max(heartbeat.epoch);
            self.demote(Demotion::Superseded, events);
        }
        if heartbeat.epoch < self.level {
            // The level is above it: this primary is superseded, or will renew its epoch.
            return;
        }
        self.level = heartbeat.epoch;
        if self.standing == Standing::Maintenance {
            return;
        }
        if self.followed != Some(heartbeat.epoch) {
            self.follow_primary(heartbeat.epoch);
        }
        self.silent_cycles = 0;
        self.heard_at_ns = now.ns;
        heard.primary = true;
        heard.input = Some((heartbeat.seq, heartbeat.input_digest));
        if heartbeat.flags.has(Flags::TAKE_OVER) {
            heard.take_over = Some(heartbeat.flags);
        }
        if let Some(part) = &heartbeat.part {
            self.hear_part(
                heartbeat.epoch,
                heartbeat.seq,
                heartbeat.schema,
                part,
                heard,
                events,
            );
        }
        let other_program = heartbeat.program != self.config.0.program;
        let other_schema = heartbeat.schema != self.shadow.controller().schema();
        let condition = &mut self.condition.0;
        condition.set(Alarm::ProgramMismatch, other_program, events);
        condition.set(Alarm::SchemaMismatch, other_schema, events);
        self.programs_differ = other_program;
        self.schemas_differ = other_schema;
    }

    fn hear_fragment<'m>(
        &mut self,
        now: &Now,
        fragment: &'m Fragment,
        heard: &mut Heard<'m>,
        events: &mut Vec<Event>,
    ) {
        let config = &self.config.0;
        if fragment.cluster != config.cluster || fragment.node != config.partner {
            self.condition.0.counts.foreign += 1;
            return;
        }
        if self.is_owner() || self.followed != Some(fragment.epoch) || fragment.epoch < self.level {
            self.condition.0.counts.stale += 1;
            return;
        }
        if self.is_far_ahead(now, fragment.seq) {
            self.condition.0.counts.implausible += 1;
            return;
        }
        let Fragment {
            epoch,
            seq,
            schema,
            part,
            ..
        } = fragment;
        self.hear_part(*epoch, *seq, *schema, part, heard, events);
    }

    fn hear_part<'m>(
        &mut self,
        epoch: Epoch,
        seq: u64,
        schema: u64,
        part: &'m Part,
        heard: &mut Heard<'m>,
        events: &mut Vec<Event>,
    ) {
        if schema != self.shadow.controller().schema() || (epoch, seq) <= self.shadow.adopted() {
            return;
        }
        match self.receiver.accept(epoch, seq, part) {
            Ok(Some(complete)) => heard.complete = Some(complete),
            Ok(None) => {}
            Err(PartError::Disagrees { .. }) => {
                self.condition.0.set(Alarm::Disagree, true, events);
                heard.is_disputed = true;
            }
            Err(_) => self.condition.0.counts.bad_parts += 1,
        }
    }

    fn hear_reply(&mut self, now: &Now, reply: &Reply, heard: &mut Heard, events: &mut Vec<Event>) {
        let config = &self.config.0;
        if reply.cluster != config.cluster
            || reply.node != config.node
            || reply.incarnation != self.incarnation
            || reply.seq > now.cycle
            || reply.level.counter() > Epoch::COUNTER_MAX
        {
            self.condition.0.counts.foreign += 1;
            return;
        }
        self.unanswered_cycles = 0;
        self.actuator = reply.actuator;
        if let Verdict::Nack(refusal) = reply.verdict {
            self.actuator_is_unclaimed = refusal == Refusal::Unclaimed;
            if self.is_owner() && reply.epoch == self.epoch {
                self.condition.0.counts.refused += 1;
                events.push(Event::OutputRefused {
                    epoch: reply.epoch,
                    seq: reply.seq,
                    refusal,
                });
            }
        } else {
            self.actuator_is_unclaimed = false;
        }
        if self.actuator_is_unclaimed {
            return;
        }
        if let Verdict::Granted { idle_ns, .. } = reply.verdict {
            // As old as the question: the answer may have been under way for long.
            self.idle = Some((idle_ns, reply.seq));
        }
        let is_above_own = reply.level > self.epoch;
        self.level = self.level.max(reply.level);
        if !self.is_owner() {
            return;
        }
        if is_above_own {
            if !self.partner_cannot_drive(reply.level) {
                self.demote(Demotion::Refused, events);
            }
        } else if reply.verdict == Verdict::Ack {
            // Also below the own epoch, to a probe: its first output was not accepted yet, nothing above
            // it was.
            self.acked_seq = self.acked_seq.max(reply.seq);
            heard.own_level = true;
        }
    }

    fn hear_grant(&mut self, grant: Grant) {
        if grant.epoch.owner() != self.config.0.node {
            self.condition.0.counts.foreign += 1;
            return;
        }
        self.ballot = self.ballot.max(Some(grant.epoch));
        self.condition.0.clear(Alarm::NoBallot);
    }

    /// Whether a level above the own epoch leaves nobody else to drive: it is of an earlier life of this
    /// node, or the partner has just said where it stands, and from there it cannot have promoted.
    fn partner_cannot_drive(&self, level: Epoch) -> bool {
        if level.owner() == self.config.0.node {
            return true;
        }
        self.partner.silent_cycles == 0
            && match self.partner.standing {
                Standing::Primary | Standing::Qualified => false,
                Standing::Suspended => self.partner.epoch >= level,
                Standing::Init
                | Standing::Syncing
                | Standing::Disqualified
                | Standing::Maintenance => true,
            }
    }

    /// Believed, it would make everything that follows look old.
    fn is_far_ahead(&self, now: &Now, seq: u64) -> bool {
        let latest = self.partner.seq.max(now.cycle);
        seq > latest.saturating_add(CYCLE_LEAD_MAX)
    }

    fn jumps(&self, epoch: Epoch) -> bool {
        let known = self.level.max(self.epoch);
        if known == Epoch::NONE {
            // Nothing is known yet to measure from.
            return epoch.counter() > Epoch::COUNTER_MAX;
        }
        epoch.jumps_over(known, self.config.0.epoch_jump_max)
    }
}
