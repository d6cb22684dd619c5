//! A barrier and its members that are observed.
//!
//! Contract: as [`SidecarBox`]; a member shares the instruments of its barrier. A wait that ended without
//! a release counts as contended. The `value` of an observation is the member's slot. Event:
//! `barrier_released`, told by each member that was released.

use core::time::Duration;
use std::sync::Arc;

use bumpless_barrier::{BarrierError, EpochBarrier, Member, Released};
use bumpless_heartbeat::Handle;
use bumpless_substrate::clock::monotonic_ns;

use super::told::label;
use crate::event::{Event, EventKind};
use crate::sidecar_box::{Observe, SidecarBox, operations, timed};

operations! {
    /// What is observed of a barrier.
    BarrierOp {
        /// A process that became a member.
        Join = 0, "join";
        /// A wait for all or for a quorum. All waits are timed.
        Wait = 1, "wait";
    }
}

impl Observe for EpochBarrier<'_> {
    const KIND: &'static str = "barrier";
    type Memory = ();

    fn op_name(number: u16) -> Option<&'static str> {
        BarrierOp::name_of(number)
    }
}

impl Observe for Member<'_> {
    const KIND: &'static str = "barrier";
    type Memory = ();

    fn op_name(number: u16) -> Option<&'static str> {
        BarrierOp::name_of(number)
    }
}

/// A barrier's calls.
impl<'t> SidecarBox<EpochBarrier<'t>> {
    /// As [`EpochBarrier::join`], for an observed member.
    ///
    /// # Errors
    /// As there.
    pub fn join(&self, handle: Handle) -> Result<SidecarBox<Member<'_>>, BarrierError> {
        let _inside = self.instruments.header().enter();
        let joined = timed(
            &self.instruments,
            BarrierOp::Join.into(),
            handle.slot() as u32,
            || self.inner.join(handle),
            Result::is_err,
        );
        let instruments = Arc::clone(&self.instruments);
        joined.map(|member| SidecarBox::with_instruments(member, instruments))
    }

    /// As [`EpochBarrier::epoch`]; not observed.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.inner.epoch()
    }
}

type Waited = Result<Released, BarrierError>;

/// A member's calls.
impl<'b> SidecarBox<Member<'b>> {
    /// As [`Member::wait`].
    ///
    /// # Errors
    /// As there.
    pub fn wait(&mut self) -> Waited {
        self.waited(Member::wait)
    }

    /// As [`Member::wait_timeout`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Waited {
        self.waited(|member| member.wait_timeout(timeout))
    }

    /// As [`Member::wait_quorum`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_quorum(&mut self, quorum: usize) -> Waited {
        self.waited(|member| member.wait_quorum(quorum))
    }

    /// As [`Member::wait_quorum_timeout`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_quorum_timeout(&mut self, quorum: usize, timeout: Duration) -> Waited {
        self.waited(|member| member.wait_quorum_timeout(quorum, timeout))
    }

    fn waited(&mut self, wait: impl FnOnce(&mut Member<'b>) -> Waited) -> Waited {
        let handle = self.inner.handle();
        let slot = handle.slot() as u32;
        let (instruments, member) = (&*self.instruments, &mut self.inner);
        let call = || wait(member);
        let waited = timed(
            instruments,
            BarrierOp::Wait.into(),
            slot,
            call,
            Result::is_err,
        );
        if let (Ok(released), true) = (&waited, instruments.has_sink()) {
            let table = self.inner.table();
            instruments.tell(Event {
                slot,
                generation: handle.generation(),
                pid: std::process::id(),
                value: released.epoch,
                detail: released.absent.len() as u64,
                label: label(table, (slot, handle.generation())),
                table_id: table.creation_id(),
                ..Event::new(EventKind::BarrierReleased, monotonic_ns())
            });
        }
        waited
    }
}
