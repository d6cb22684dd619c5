//! Who drives: promotion, renewal, lease, demotion.
//!
//! A node becomes primary only under an epoch of its own that was granted before, is above every known
//! one, and is never used again. It stops driving when the actuator has not answered for the lease, which
//! ends before the partner's timeout.

use super::hear::Heard;
use super::switch_over::{Kind, SwitchOver};
use super::{Node, Now};
use crate::checkpoint::Controller;
use crate::event::{Alarm, Demotion, Event, Promotion};
use crate::message::{Flags, Standing};

impl<C: Controller> Node<C> {
    pub(super) fn has_ballot(&self) -> bool {
        self.ballot
            .is_some_and(|ballot| ballot > self.level.max(self.epoch))
    }

    pub(super) fn hold_office(&mut self, now: &Now, heard: &Heard<'_>, events: &mut Vec<Event>) {
        if !self.is_owner()
            && let Some(cause) = self.cause_to_promote(now, heard)
        {
            let is_test = heard.take_over.is_some_and(|flags| flags.has(Flags::TEST));
            self.promote(now, cause, events);
            if is_test && cause == Promotion::SwitchOver {
                self.return_in_cycles = self.config.0.switch_test.map(|test| test.dwell_cycles);
            }
            return;
        }
        if self.is_owner() {
            self.renew(now, events);
            self.keep_lease(now, heard, events);
        }
        self.run_switch_over(now, events);
    }

    fn cause_to_promote(&self, now: &Now, heard: &Heard<'_>) -> Option<Promotion> {
        if !self.has_ballot() || self.standing == Standing::Maintenance {
            return None;
        }
        if self.forced {
            return Some(Promotion::Forced);
        }
        match self.standing {
            Standing::Qualified if heard.take_over.is_some() => Some(Promotion::SwitchOver),
            Standing::Qualified if self.primary_is_silent(now) => Some(Promotion::Takeover),
            Standing::Init => self.cause_to_start(now),
            _ => None,
        }
    }

    /// Silent for the limit by count, and by the clock: ticks in a burst are no time.
    fn primary_is_silent(&self, now: &Now) -> bool {
        let config = &self.config.0;
        let mut limit = config.miss_limit.saturating_add(self.hold_off_cycles);
        if self.is_flapping(now)
            && let Some(budget) = config.flap_budget
        {
            limit = limit.saturating_add(budget.hold_off_cycles);
        }
        let silent_ns = now.ns.saturating_sub(self.heard_at_ns);
        let limit_ns = config.period_ns.saturating_mul(limit.into());
        self.silent_cycles >= limit && silent_ns.saturating_add(config.period_ns / 2) >= limit_ns
    }

    /// A start without a primary: with the partner's consent, or the authority's.
    fn cause_to_start(&self, now: &Now) -> Option<Promotion> {
        let config = &self.config.0;
        if self.silent_cycles < config.miss_limit {
            return None;
        }
        if self.partner.silent_cycles < config.miss_limit {
            // What it says was said after it had heard this life of this node: it knows of no primary.
            let consents = self.partner.echo == self.incarnation
                && self.partner.epoch <= self.level
                && match self.partner.standing {
                    Standing::Disqualified | Standing::Maintenance => true,
                    Standing::Init => self.partner.yields_to(config, self.shadow.held()),
                    _ => false,
                };
            return consents.then_some(Promotion::ColdStartWithPartner);
        }
        let (idle_ns, asked_in) = self.idle?;
        let is_recent = now.cycle.saturating_sub(asked_in) < config.miss_limit.into();
        // Whoever could go on from the last state goes first.
        let timeouts = if self.has_state() { 1 } else { 2 };
        let is_idle = idle_ns >= config.timeout_ns().saturating_mul(timeouts);
        (is_recent && is_idle).then_some(Promotion::ColdStartByAuthority)
    }

    fn promote(&mut self, now: &Now, cause: Promotion, events: &mut Vec<Event>) {
        let Some(epoch) = self.ballot.take() else {
            return;
        };
        self.epoch = epoch;
        self.level = epoch;
        self.standing = Standing::Primary;
        self.reason = None;
        self.followed = None;
        self.forced = false;
        self.idle = None;
        self.acked_seq = now.cycle;
        self.switch_over = None;
        self.return_in_cycles = None;
        self.qualified_since_ns = None;
        self.programs_differ = false;
        self.schemas_differ = false;
        self.checkpoint_is_bad = false;
        self.input_mismatches = 0;
        self.shadow.own(epoch);
        self.schedule_test(now);
        if let Some(budget) = self.config.0.flap_budget {
            if self.promotions_ns.len() == budget.promotions as usize {
                self.promotions_ns.remove(0);
            }
            self.promotions_ns.push(now.ns);
            let is_flapping = self.is_flapping(now);
            self.condition.0.set(Alarm::Flapping, is_flapping, events);
        }
        for alarm in [
            Alarm::ProgramMismatch,
            Alarm::SchemaMismatch,
            Alarm::BadCheckpoint,
            Alarm::InputMismatch,
            Alarm::StateMismatch,
        ] {
            self.condition.0.clear(alarm);
        }
        events.push(Event::Promoted { epoch, cause });
        self.end_test(cause == Promotion::SwitchOver, events);
    }

    /// The level rose, but nobody else drives: the role is kept under a higher epoch.
    fn renew(&mut self, now: &Now, events: &mut Vec<Event>) {
        if self.level <= self.epoch || !self.has_ballot() {
            return;
        }
        if let Some(epoch) = self.ballot.take() {
            self.epoch = epoch;
            self.level = epoch;
            self.standing = Standing::Primary;
            self.acked_seq = now.cycle;
            self.shadow.own(epoch);
            events.push(Event::Renewed { epoch });
        }
    }

    fn keep_lease(&mut self, now: &Now, heard: &Heard<'_>, events: &mut Vec<Event>) {
        let config = &self.config.0;
        let lease = u64::from(config.lease_cycles);
        let is_late = now.gap_ns() > config.period_ns.saturating_mul(lease);
        let has_answer = now.cycle.saturating_sub(self.acked_seq) <= lease && !is_late;
        if self.standing == Standing::Primary && !has_answer {
            self.standing = Standing::Suspended;
            events.push(Event::Suspended { epoch: self.epoch });
        } else if self.standing == Standing::Suspended
            && has_answer
            && heard.own_level
            && self.level == self.epoch
        {
            self.standing = Standing::Primary;
            events.push(Event::Resumed { epoch: self.epoch });
        }
        let is_suspended = self.standing == Standing::Suspended;
        self.condition
            .0
            .set(Alarm::ActuatorUnreachable, is_suspended, events);
    }

    pub(super) fn demote(&mut self, cause: Demotion, events: &mut Vec<Event>) {
        events.push(Event::Demoted {
            epoch: self.epoch,
            cause,
        });
        // The successor may be heard before the last output: that ends the leaving, not the order.
        let leaves = self.switch_over.as_ref().map(|order| order.kind) == Some(Kind::Leave);
        self.standing = match cause {
            Demotion::Left => Standing::Maintenance,
            Demotion::Superseded | Demotion::Refused if leaves => Standing::Maintenance,
            Demotion::Superseded | Demotion::Refused => Standing::Init,
        };
        self.followed = None;
        self.silent_cycles = 0;
        self.return_in_cycles = None;
        self.test_due_ns = None;
        self.holds_sync = false;
        self.condition.0.clear(Alarm::ActuatorUnreachable);
        if let Some(SwitchOver { kind, .. }) = self.switch_over.take() {
            events.push(Event::SwitchOver { epoch: self.level });
            if kind == Kind::Test {
                self.await_return();
            }
        }
    }
}
