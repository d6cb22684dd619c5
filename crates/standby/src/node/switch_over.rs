//! Orderly changes of the role, and the operator's orders.
//!
//! ```text
//!   primary: order ──▶ TAKE_OVER in every heartbeat ──▶ the partner drives under a higher epoch: done
//!                 │                                └──▶ partner lost, or too many cycles: the role stays
//!                 └─ Leave: one heartbeat, one output, then out of service
//! ```
//!
//! The primary drives until it hears its successor, so no cycle is lost; for a cycle both may drive, the
//! same state, and the actuator takes the successor's output last. If the partner dies midway nothing has
//! changed.

use thiserror::Error;

use super::{Node, Now};
use crate::checkpoint::Controller;
use crate::event::{Alarm, Demotion, Event};
use crate::message::{Flags, Standing};

/// An operator's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Primary: hand the role to the qualified partner.
    SwitchOver,
    /// Primary: hand the role over and go out of service.
    Leave,
    /// Primary: hand the role over and take it back, to see that it works.
    TestSwitch,
    /// Standby: take the role with the next granted epoch, whatever else is known.
    Promote,
    /// Standby: out of service; it follows nothing and takes nothing over.
    EnterMaintenance,
    /// Back into service, as if just started.
    LeaveMaintenance,
    /// Primary: let no standby synchronise, or again.
    HoldSync(bool),
    /// Unlatch the alarms whose cause is gone, and let scheduled tests run again after a failed one.
    ClearAlarms,
}

/// Why an order was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CommandError {
    /// Only the primary can do it.
    #[error("{command:?} is for the primary, this node stands as {standing:?}")]
    NotPrimary {
        /// The order.
        command: Command,
        /// Where this node stands.
        standing: Standing,
    },
    /// The primary cannot do it.
    #[error("{command:?} is not for the primary: switch over first")]
    IsPrimary {
        /// The order.
        command: Command,
    },
    /// Nobody to hand the role to.
    #[error(
        "the partner stands as {standing:?}, silent for {silent_cycles} cycles; wanted Qualified"
    )]
    PartnerNotQualified {
        /// Where the partner stands.
        standing: Standing,
        /// Since when nothing was heard of it; unit: cycles.
        silent_cycles: u32,
    },
    /// One change at a time.
    #[error("a switch-over is under way")]
    Busy,
    /// There is nothing to leave.
    #[error("not in maintenance: this node stands as {standing:?}")]
    NotInMaintenance {
        /// Where this node stands.
        standing: Standing,
    },
    /// No settings for it.
    #[error("no switch test is configured: its dwell time is unknown")]
    NoSwitchTest,
}

/// Why the role is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Manual,
    Leave,
    Test,
    Return,
    Preempt,
}

/// A switch-over under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SwitchOver {
    pub kind: Kind,
    /// Its first cycle; `None`: the next one.
    pub since: Option<u64>,
}

/// A test whose first half is done: the role must come back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TestRun {
    cycles_left: u32,
}

impl<C: Controller> Node<C> {
    /// Gives an order; it takes effect with the next tick.
    ///
    /// # Errors
    /// It cannot be carried out now; nothing has changed.
    pub fn command(&mut self, command: Command) -> Result<(), CommandError> {
        let is_primary = self.standing == Standing::Primary;
        match command {
            Command::SwitchOver | Command::Leave | Command::TestSwitch | Command::HoldSync(_)
                if !is_primary =>
            {
                return Err(CommandError::NotPrimary {
                    command,
                    standing: self.standing,
                });
            }
            Command::Promote | Command::EnterMaintenance if self.is_owner() => {
                return Err(CommandError::IsPrimary { command });
            }
            Command::SwitchOver => self.begin(Kind::Manual)?,
            Command::Leave => self.begin(Kind::Leave)?,
            Command::TestSwitch if self.config.0.switch_test.is_none() => {
                return Err(CommandError::NoSwitchTest);
            }
            Command::TestSwitch => self.begin(Kind::Test)?,
            Command::HoldSync(holds) => self.holds_sync = holds,
            Command::Promote => self.forced = true,
            Command::EnterMaintenance => {
                self.standing = Standing::Maintenance;
                self.reason = None;
                self.followed = None;
                self.forced = false;
            }
            Command::LeaveMaintenance if self.standing != Standing::Maintenance => {
                return Err(CommandError::NotInMaintenance {
                    standing: self.standing,
                });
            }
            Command::LeaveMaintenance => {
                self.standing = Standing::Init;
                self.silent_cycles = 0;
            }
            Command::ClearAlarms => {
                self.last_test_failed = false;
                self.condition.0.clear(Alarm::SwitchTestFailed);
                self.condition.0.unlatch();
            }
        }
        Ok(())
    }

    fn begin(&mut self, kind: Kind) -> Result<(), CommandError> {
        if self.switch_over.is_some() {
            return Err(CommandError::Busy);
        }
        if !self.partner_is_qualified() {
            return Err(CommandError::PartnerNotQualified {
                standing: self.partner.standing,
                silent_cycles: self.partner.silent_cycles,
            });
        }
        self.switch_over = Some(SwitchOver { kind, since: None });
        Ok(())
    }

    /// The partner could take over now, as far as this primary knows.
    pub(super) fn partner_is_qualified(&self) -> bool {
        self.partner.silent_cycles < self.config.0.miss_limit
            && self.partner.standing == Standing::Qualified
            && self.partner.epoch == self.epoch
    }

    pub(super) fn run_switch_over(&mut self, now: &Now, events: &mut Vec<Event>) {
        if let Some(test) = &mut self.test {
            test.cycles_left -= 1;
            if test.cycles_left == 0 {
                self.end_test(false, events);
            }
        }
        if self.standing != Standing::Primary {
            if self.switch_over.is_some() {
                self.fail_switch_over(events);
            }
            return;
        }
        let Some(SwitchOver { kind, since }) = self.switch_over.clone() else {
            self.begin_what_is_due(now, events);
            return;
        };
        let Some(since) = since else {
            self.switch_over = Some(SwitchOver {
                kind,
                since: Some(now.cycle),
            });
            return;
        };
        if kind == Kind::Leave {
            self.demote(Demotion::Left, events);
        } else if !self.partner_is_qualified()
            || now.cycle.saturating_sub(since) >= self.config.0.switch_over_cycles.into()
        {
            self.fail_switch_over(events);
        }
    }

    fn fail_switch_over(&mut self, events: &mut Vec<Event>) {
        let was_test = self
            .switch_over
            .take()
            .is_some_and(|switch_over| switch_over.kind == Kind::Test);
        events.push(Event::SwitchOverFailed);
        if was_test {
            self.fail_test(events);
        }
    }

    fn begin_what_is_due(&mut self, now: &Now, events: &mut Vec<Event>) {
        let due = if self.is_return_due() {
            Some(Kind::Return)
        } else if self.is_test_due(now, events) {
            Some(Kind::Test)
        } else if self.partner.flags.has(Flags::WANTS_PRIMARY) && !self.is_flapping(now) {
            Some(Kind::Preempt)
        } else {
            None
        };
        if let Some(kind) = due
            && self.partner_is_qualified()
        {
            self.return_in_cycles = None;
            self.switch_over = Some(SwitchOver {
                kind,
                since: Some(now.cycle),
            });
        }
    }

    fn is_return_due(&mut self) -> bool {
        match &mut self.return_in_cycles {
            Some(0) => true,
            Some(cycles) => {
                *cycles -= 1;
                false
            }
            None => false,
        }
    }

    /// Schedules the first test of a term.
    pub(super) fn schedule_test(&mut self, now: &Now) {
        self.test_due_ns = self
            .config
            .0
            .switch_test
            .map(|test| now.ns.saturating_add(test.every_ns));
    }

    fn is_test_due(&mut self, now: &Now, events: &mut Vec<Event>) -> bool {
        if self.return_in_cycles.is_some() || self.test_due_ns.is_none_or(|due_ns| now.ns < due_ns)
        {
            return false;
        }
        self.schedule_test(now);
        if self.last_test_failed || !self.partner_is_qualified() {
            events.push(Event::SwitchTestSkipped {
                after_failure: self.last_test_failed,
            });
            return false;
        }
        true
    }

    /// The first half of a test is done.
    pub(super) fn await_return(&mut self) {
        let config = &self.config.0;
        self.test = config.switch_test.map(|test| TestRun {
            cycles_left: test
                .dwell_cycles
                .saturating_add(config.switch_over_cycles.saturating_mul(2)),
        });
    }

    /// The role came back, or did not in time.
    pub(super) fn end_test(&mut self, passed: bool, events: &mut Vec<Event>) {
        if self.test.take().is_none() {
            return;
        }
        if passed {
            events.push(Event::SwitchTestPassed);
        } else {
            self.fail_test(events);
        }
    }

    fn fail_test(&mut self, events: &mut Vec<Event>) {
        self.last_test_failed = true;
        events.push(Event::SwitchTestFailed);
        self.condition.0.set(Alarm::SwitchTestFailed, true, events);
    }

    /// As the preferred node: asks for the role, at a start at once, later after the delay.
    pub(super) fn wants_primary(&self, now: &Now) -> bool {
        let config = &self.config.0;
        if !config.preferred {
            return false;
        }
        match (self.standing, config.preempt, self.qualified_since_ns) {
            (Standing::Init, _, _) => true,
            (Standing::Qualified, Some(preempt), Some(since_ns)) => {
                now.ns.saturating_sub(since_ns) >= preempt.delay_ns && !self.is_flapping(now)
            }
            _ => false,
        }
    }
}
