//! An election that is observed.
//!
//! Contract: as [`SidecarBox`]. A claim that found another leader, and a call that was refused, count as
//! contended. The `value` of an observation is the caller's slot. Event: `leader_changed`, when a call
//! sees a leader in a term that this box has not seen, or a seat that was left.

use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use bumpless_election::{Leader, LeaderToken, Leadership, Result, SharedLeaderElection};
use bumpless_heartbeat::Handle;
use bumpless_substrate::clock::monotonic_ns;

use crate::event::{Event, EventKind};
use crate::sidecar_box::{Observe, SidecarBox, operations};

operations! {
    /// What is observed of an election.
    ElectionOp {
        /// A claim.
        Claim = 0, "try_claim_leadership";
        /// A leader's question whether it still is one.
        Ask = 1, "am_i_leader";
        /// A leader's beat.
        Beat = 2, "beat_as_leader";
        /// A stepping down.
        StepDown = 3, "step_down";
        /// A look at who leads.
        Look = 4, "current_leader";
        /// A wait for another leader.
        Wait = 5, "wait_for_change";
    }
}

/// The term last seen, and who led in it then; slot and generation.
type Seen = (u64, Option<(u32, u32)>);

impl Observe for SharedLeaderElection<'_> {
    const KIND: &'static str = "election";
    type Memory = Mutex<Seen>;

    fn op_name(number: u16) -> Option<&'static str> {
        ElectionOp::name_of(number)
    }
}

/// An election's calls.
impl<'t> SidecarBox<SharedLeaderElection<'t>> {
    /// As [`SharedLeaderElection::try_claim_leadership`].
    ///
    /// # Errors
    /// As there.
    pub fn try_claim_leadership(&self, handle: Handle) -> Result<Leadership> {
        let _inside = self.instruments.header().enter();
        let call = |inner: &SharedLeaderElection<'t>| inner.try_claim_leadership(handle);
        let is_anothers =
            |claimed: &Result<Leadership>| !matches!(claimed, Ok(Leadership::Mine(_)));
        let claimed = self.observed(ElectionOp::Claim, slot(handle), call, is_anothers);
        match &claimed {
            Ok(Leadership::Mine(token)) => self.see_own(handle, Some(token.term())),
            Ok(Leadership::Theirs(leader)) => self.see(Some(*leader)),
            Err(_) => {}
        }
        claimed
    }

    /// As [`SharedLeaderElection::am_i_leader`].
    ///
    /// # Errors
    /// As there.
    pub fn am_i_leader(&self, handle: Handle) -> Result<Option<LeaderToken>> {
        let call = |inner: &SharedLeaderElection<'t>| inner.am_i_leader(handle);
        let token = self.observed(ElectionOp::Ask, slot(handle), call, Result::is_err);
        self.see_answer(handle, &token);
        token
    }

    /// As [`SharedLeaderElection::beat_as_leader`].
    ///
    /// # Errors
    /// As there.
    pub fn beat_as_leader(&self, handle: Handle) -> Result<Option<LeaderToken>> {
        let call = |inner: &SharedLeaderElection<'t>| inner.beat_as_leader(handle);
        let token = self.observed(ElectionOp::Beat, slot(handle), call, Result::is_err);
        self.see_answer(handle, &token);
        token
    }

    /// As [`SharedLeaderElection::step_down`].
    ///
    /// # Errors
    /// As there.
    pub fn step_down(&self, handle: Handle) -> Result<bool> {
        let _inside = self.instruments.header().enter();
        let call = |inner: &SharedLeaderElection<'t>| inner.step_down(handle);
        let led = self.observed(ElectionOp::StepDown, slot(handle), call, Result::is_err);
        if matches!(led, Ok(true)) {
            self.see(self.inner.current_leader());
        }
        led
    }

    /// As [`SharedLeaderElection::current_leader`].
    #[must_use]
    pub fn current_leader(&self) -> Option<Leader> {
        let call = |inner: &SharedLeaderElection<'t>| inner.current_leader();
        let leader = self.observed(ElectionOp::Look, u32::MAX, call, |_| false);
        self.see(leader);
        leader
    }

    /// As [`SharedLeaderElection::election_term`]; not observed.
    #[must_use]
    pub fn election_term(&self) -> u64 {
        self.inner.election_term()
    }

    /// As [`SharedLeaderElection::wait_for_change`].
    ///
    /// # Errors
    /// As there.
    pub fn wait_for_change(
        &self,
        seen: Option<Leader>,
        timeout: Duration,
    ) -> Result<Option<Leader>> {
        let call = |inner: &SharedLeaderElection<'t>| inner.wait_for_change(seen, timeout);
        let leader = self.observed(ElectionOp::Wait, u32::MAX, call, Result::is_err);
        if let Ok(leader) = &leader {
            self.see(*leader);
        }
        leader
    }

    fn see_answer(&self, handle: Handle, answer: &Result<Option<LeaderToken>>) {
        match answer {
            Ok(Some(token)) => self.see_own(handle, Some(token.term())),
            // Who leads now is a look of its own, and only worth one if this process led.
            Ok(None) if self.led(handle) => self.see(self.inner.current_leader()),
            _ => {}
        }
    }

    fn led(&self, handle: Handle) -> bool {
        let seen = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        seen.1 == Some((slot(handle), handle.generation()))
    }

    fn see_own(&self, handle: Handle, term: Option<u64>) {
        let leader = term.map(|term| Leader {
            slot: slot(handle),
            generation: handle.generation(),
            pid: std::process::id(),
            term,
        });
        self.see(leader);
    }

    /// Tells who leads, if that is news.
    fn see(&self, leader: Option<Leader>) {
        if !self.instruments.has_sink() {
            return;
        }
        // A thread that panicked inside left a whole value.
        let mut seen = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let now = match leader {
            Some(leader) => (leader.term, Some((leader.slot, leader.generation))),
            None => (seen.0, None),
        };
        // A thread that looked earlier may come later.
        if now == *seen || now.0 < seen.0 {
            return;
        }
        *seen = now;
        let Leader {
            slot,
            generation,
            pid,
            term,
        } = leader.unwrap_or(Leader {
            slot: Event::NO_SLOT,
            generation: 0,
            pid: 0,
            term: now.0,
        });
        self.instruments.tell(Event {
            slot,
            generation,
            pid,
            value: term,
            ..Event::new(EventKind::LeaderChanged, monotonic_ns())
        });
    }
}

fn slot(handle: Handle) -> u32 {
    handle.slot() as u32
}
