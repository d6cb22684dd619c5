//! An actuator that is observed.
//!
//! Contract: as [`SidecarBox`]. A request that was refused counts as contended. The `value` of an
//! observation is the node that asked. Event: `stale_output_refused`, for an output of an epoch of the
//! past, with the caller's time.

use bumpless_standby::Actuator;
use bumpless_standby::message::{Action, Refusal, Reply, Request, Verdict};
use bumpless_standby::persist::Store;

use crate::event::{Event, EventKind};
use crate::sidecar_box::{Observe, SidecarBox, operations};

operations! {
    /// What is observed of an actuator.
    ActuatorOp {
        /// An output.
        Drive = 0, "drive";
        /// A question whether it answers.
        Probe = 1, "probe";
        /// A node's highest epoch, for an actuator without memory.
        Confirm = 2, "confirm";
        /// A request for an epoch.
        Reserve = 3, "reserve";
    }
}

impl<V> Observe for Actuator<V> {
    const KIND: &'static str = "actuator";
    type Memory = ();

    fn op_name(number: u16) -> Option<&'static str> {
        ActuatorOp::name_of(number)
    }
}

/// An actuator's calls.
impl<V: Clone> SidecarBox<Actuator<V>> {
    /// As [`Actuator::receive`]. Never timed: it reads no clock.
    pub fn receive(
        &mut self,
        now_ns: u64,
        request: &Request<V>,
        store: &mut impl Store,
    ) -> Option<Reply> {
        let reply = self.inner.receive(now_ns, request, store);
        let op = match request.action {
            Action::Drive(_) => ActuatorOp::Drive,
            Action::Probe => ActuatorOp::Probe,
            Action::Confirm => ActuatorOp::Confirm,
            Action::Reserve => ActuatorOp::Reserve,
        };
        let verdict = reply.as_ref().map(|reply| reply.verdict);
        let is_refused = !matches!(verdict, Some(Verdict::Ack | Verdict::Granted { .. }));
        self.instruments
            .observe(op.into(), is_refused, request.node.0.into());
        if op == ActuatorOp::Drive
            && let Some(Verdict::Nack(refusal @ Refusal::Superseded)) = verdict
        {
            let (counter, owner) = (request.epoch.counter(), request.epoch.owner().0);
            let event = Event {
                slot: request.node.0.into(),
                ..Event::new(EventKind::StaleOutputRefused, now_ns)
            };
            self.instruments
                .tell(event.with_epoch(counter, owner, refusal as u8));
        }
        reply
    }
}
