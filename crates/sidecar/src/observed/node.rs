//! A standby node that is observed.
//!
//! Contract: as [`SidecarBox`], but for time: the node's core reads no clock, so neither does its box;
//! events have the time that the tick was given. A tag is the node's hold-off, in cycles, from the next
//! tick on (see [`FlapGuard`](crate::FlapGuard)). The `slot` of an event is the node's id. Events: all of
//! the tick's.

use std::sync::atomic::{AtomicU32, Ordering};

use bumpless_standby::authority::AuthorityError;
use bumpless_standby::event::Event as Happened;
use bumpless_standby::message::{Received, Refusal};
use bumpless_standby::{CheckpointError, Command, CommandError, Controller, Epoch, Node, Tick};

use crate::event::{Event, EventKind};
use crate::sidecar_box::{Observe, SidecarBox, operations};

operations! {
    /// What is observed of a node.
    NodeOp {
        /// A control cycle. Its `value` is the number of events.
        Tick = 0, "tick";
        /// A change of role: promoted or demoted.
        RoleChange = 1, "role_change";
        /// An operator's command.
        Command = 2, "command";
    }
}

impl<C: Controller> Observe for Node<C> {
    const KIND: &'static str = "node";
    /// The hold-off that was asked for, and is set by the next tick.
    type Memory = Asked;

    fn op_name(number: u16) -> Option<&'static str> {
        NodeOp::name_of(number)
    }
}

/// A hold-off that the next tick sets.
#[derive(Debug)]
pub struct Asked(AtomicU32);

/// No hold-off is asked for: no node waits so many cycles.
const NOTHING: u32 = u32::MAX;

impl Default for Asked {
    fn default() -> Self {
        Self(AtomicU32::new(NOTHING))
    }
}

/// A node's calls.
impl<C: Controller> SidecarBox<Node<C>> {
    /// As [`Node::tick`].
    pub fn tick(
        &mut self,
        now_ns: u64,
        cycle: u64,
        input: &C::Input,
        received: &[Received],
    ) -> Tick<C::Output> {
        // Relaxed, here and below: the box is borrowed by one thread.
        let asked = &self.memory.0;
        self.instruments
            .follow(|tag| asked.store(tag.min(NOTHING - 1), Ordering::Relaxed));
        match asked.swap(NOTHING, Ordering::Relaxed) {
            NOTHING => {}
            cycles => self.inner.set_hold_off(cycles),
        }
        let tick = self.inner.tick(now_ns, cycle, input, received);
        let count = tick.events.len() as u32;
        self.instruments.observe(NodeOp::Tick.into(), false, count);
        for happened in &tick.events {
            if matches!(
                happened,
                Happened::Promoted { .. } | Happened::Demoted { .. }
            ) {
                self.instruments
                    .observe(NodeOp::RoleChange.into(), false, 0);
            }
            self.tell(happened, now_ns);
        }
        tick
    }

    /// As [`Node::command`].
    ///
    /// # Errors
    /// As there.
    pub fn command(&mut self, command: Command) -> Result<(), CommandError> {
        let done = self.inner.command(command);
        self.instruments
            .observe(NodeOp::Command.into(), done.is_err(), 0);
        done
    }

    fn tell(&self, happened: &Happened, now_ns: u64) {
        if !self.instruments.has_sink() {
            return;
        }
        let event = meaning(happened, now_ns);
        self.instruments.tell(Event {
            slot: self.inner.config().node.0.into(),
            pid: std::process::id(),
            ..event
        });
    }
}

/// What happened, as an event of nobody.
fn meaning(happened: &Happened, now_ns: u64) -> Event {
    let plain = |kind| Event::new(kind, now_ns);
    let one = |kind, value| Event {
        value,
        ..plain(kind)
    };
    let two = |kind, value, detail| Event {
        detail,
        ..one(kind, value)
    };
    let of =
        |kind, epoch: &Epoch, code| plain(kind).with_epoch(epoch.counter(), epoch.owner().0, code);
    match happened {
        Happened::Promoted { epoch, cause } => of(EventKind::Promoted, epoch, *cause as u8),
        Happened::Demoted { epoch, cause } => of(EventKind::Demoted, epoch, *cause as u8),
        Happened::Suspended { epoch } => of(EventKind::Suspended, epoch, 0),
        Happened::Resumed { epoch } => of(EventKind::Resumed, epoch, 0),
        Happened::Renewed { epoch } => of(EventKind::Renewed, epoch, 0),
        Happened::Qualified { epoch } => of(EventKind::Qualified, epoch, 0),
        Happened::Disqualified { reason } => one(EventKind::Disqualified, *reason as u64),
        Happened::RedundancyLost => plain(EventKind::RedundancyLost),
        Happened::RedundancyRestored => plain(EventKind::RedundancyRestored),
        Happened::PartnerFound { incarnation } => one(EventKind::PartnerFound, *incarnation),
        Happened::PartnerLost => plain(EventKind::PartnerLost),
        Happened::PartnerRestarted { incarnation } => {
            one(EventKind::PartnerRestarted, *incarnation)
        }
        Happened::SwitchOver { epoch } => of(EventKind::SwitchOver, epoch, 0),
        Happened::SwitchOverFailed => plain(EventKind::SwitchOverFailed),
        Happened::SwitchTestPassed => plain(EventKind::SwitchTestPassed),
        Happened::SwitchTestFailed => plain(EventKind::SwitchTestFailed),
        Happened::SwitchTestSkipped { after_failure } => {
            one(EventKind::SwitchTestSkipped, u64::from(*after_failure))
        }
        Happened::OutputRefused { epoch, refusal, .. } => {
            let kind = match refusal {
                Refusal::Superseded => EventKind::StaleOutputRefused,
                _ => EventKind::OutputRefused,
            };
            of(kind, epoch, *refusal as u8)
        }
        Happened::CheckpointRefused { seq, error } => {
            two(EventKind::CheckpointRefused, *seq, checkpoint_code(error))
        }
        Happened::NoBallot { error } => one(EventKind::NoBallot, authority_code(error)),
        Happened::OwnPause { gap_ns } => one(EventKind::OwnPause, *gap_ns),
        Happened::CycleRefused { found, last } => two(EventKind::CycleRefused, *found, *last),
        Happened::PathDegraded { path } => one(EventKind::PathDegraded, u64::from(*path)),
        Happened::PathRestored { path } => one(EventKind::PathRestored, u64::from(*path)),
        Happened::AlarmRaised { alarm } => one(EventKind::AlarmRaised, *alarm as u64),
    }
}

fn checkpoint_code(error: &CheckpointError) -> u64 {
    match error {
        CheckpointError::Length { .. } => 1,
        CheckpointError::Malformed(_) => 2,
        CheckpointError::OutOfRange { .. } => 3,
    }
}

fn authority_code(error: &AuthorityError) -> u64 {
    match error {
        AuthorityError::Store(_) => 1,
        AuthorityError::Exhausted { .. } => 2,
        AuthorityError::Unreachable(_) => 3,
        AuthorityError::Refused { .. } => 4,
    }
}

#[cfg(test)]
mod tests {
    use bumpless_standby::NodeId;

    use super::*;

    #[test]
    fn only_an_output_of_an_epoch_of_the_past_is_told_as_stale() {
        let kind_of = |refusal| {
            let epoch = Epoch::new(7, NodeId(1));
            let event = meaning(
                &Happened::OutputRefused {
                    epoch,
                    seq: 3,
                    refusal,
                },
                5,
            );
            assert_eq!((event.value, event.detail >> 8), (7, refusal as u64));
            event.kind
        };
        assert_eq!(kind_of(Refusal::Superseded), EventKind::StaleOutputRefused);
        assert_eq!(kind_of(Refusal::Restarted), EventKind::OutputRefused);
    }
}
