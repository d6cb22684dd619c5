//! What a cycle says: to the partner, to the actuator, to the authority.

use super::switch_over::Kind;
use super::{Node, Now, Tick};
use crate::checkpoint::Controller;
use crate::config::Mode;
use crate::epoch::Epoch;
use crate::event::Event;
use crate::message::{Action, Flags, Fragment, Heartbeat, Part, Request, Standing};
use crate::unhashed::Unhashed;

impl<C: Controller> Node<C> {
    pub(super) fn emit(
        &mut self,
        now: &Now,
        input_digest: u32,
        events: Vec<Event>,
    ) -> Tick<C::Output> {
        let epoch = if self.is_owner() {
            self.epoch
        } else {
            self.level
        };
        let schema = self.shadow.controller().schema();
        let (part, fragments) = self.checkpoint(now, epoch, schema);
        let config = &self.config.0;
        let heartbeat = Heartbeat {
            cluster: config.cluster,
            node: config.node,
            incarnation: self.incarnation,
            epoch,
            seq: now.cycle,
            standing: self.standing,
            flags: self.flags(now),
            program: config.program,
            schema,
            input_digest,
            echo: self.partner.incarnation,
            held: self.shadow.held(),
            heard_paths: Unhashed(self.condition.0.heard_paths()),
            part,
        };
        let request = self.action(now).map(|action| Request {
            cluster: config.cluster,
            node: config.node,
            incarnation: self.incarnation,
            epoch,
            seq: now.cycle,
            actuator: self.actuator,
            action,
        });
        Tick {
            heartbeat: Some(heartbeat),
            fragments,
            request,
            ballot_wanted: self.ballot_wanted(),
            events,
        }
    }

    /// The state for the partner: in the heartbeat if it fits, else in fragments.
    fn checkpoint(
        &mut self,
        now: &Now,
        epoch: Epoch,
        schema: u64,
    ) -> (Option<Part>, Vec<Fragment>) {
        if self.standing != Standing::Primary || self.config.0.mode == Mode::Cold {
            return (None, Vec::new());
        }
        if self.partner.flags.has(Flags::NEEDS_FULL) && self.partner.silent_cycles == 0 {
            self.sender.request_full();
        }
        let Some(state) = self.shadow.encoded(now.cycle) else {
            return (None, Vec::new());
        };
        let mut parts = self.sender.parts(epoch, now.cycle, state);
        self.condition.0.note_checkpoint(state.len(), &parts);
        if parts.len() <= 1 {
            return (parts.pop(), Vec::new());
        }
        let fragments = parts.into_iter().map(|part| Fragment {
            cluster: self.config.0.cluster,
            node: self.config.0.node,
            incarnation: self.incarnation,
            epoch,
            seq: now.cycle,
            schema,
            part,
        });
        (None, fragments.collect())
    }

    fn flags(&self, now: &Now) -> Flags {
        let kind = self
            .switch_over
            .as_ref()
            .map(|switch_over| switch_over.kind);
        Flags::default()
            .with_if(Flags::TAKE_OVER, kind.is_some())
            .with_if(Flags::LEAVING, kind == Some(Kind::Leave))
            .with_if(Flags::TEST, kind == Some(Kind::Test))
            .with_if(Flags::WANTS_PRIMARY, self.wants_primary(now))
            .with_if(
                Flags::NEEDS_FULL,
                !self.is_owner() && self.receiver.needs_full(),
            )
            .with_if(Flags::HOLD_SYNC, self.holds_sync)
    }

    fn action(&self, now: &Now) -> Option<Action<C::Output>> {
        if self.standing == Standing::Maintenance {
            return None;
        }
        if self.actuator_is_unclaimed {
            return Some(Action::Confirm);
        }
        match self.standing {
            Standing::Primary => Some(Action::Drive(self.shadow.controller().output())),
            Standing::Suspended => Some(Action::Probe),
            _ => {
                let every = u64::from(self.config.0.probe_cycles);
                (every > 0 && now.cycle.is_multiple_of(every)).then_some(Action::Probe)
            }
        }
    }

    fn ballot_wanted(&self) -> Option<Epoch> {
        let above = self.level.max(self.epoch);
        let has_one = self.ballot.is_some_and(|ballot| ballot > above);
        // Alone and without a primary: the authority may know more than before.
        let asks_again = self.standing == Standing::Init
            && self.idle.is_some()
            && self.partner.silent_cycles >= self.config.0.miss_limit;
        (!has_one || asks_again).then_some(above)
    }
}
