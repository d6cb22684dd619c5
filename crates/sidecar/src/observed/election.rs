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

use super::told::label;
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
            Ok(Leadership::Mine(token)) => self.see_own(handle, token.term()),
            Ok(Leadership::Theirs(leader)) => self.see(leader.term, Some(*leader)),
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
            self.see_now();
        }
        led
    }

    /// As [`SharedLeaderElection::current_leader`].
    #[must_use]
    pub fn current_leader(&self) -> Option<Leader> {
        let call = |inner: &SharedLeaderElection<'t>| inner.current_leader();
        let leader = self.observed(ElectionOp::Look, u32::MAX, call, |_| false);
        self.see_answered(leader);
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
            self.see_answered(*leader);
        }
        leader
    }

    fn see_answer(&self, handle: Handle, answer: &Result<Option<LeaderToken>>) {
        match answer {
            Ok(Some(token)) => self.see_own(handle, token.term()),
            // Who leads now is a look of its own, and only worth one if this process led.
            Ok(None) if self.led(handle) => self.see_now(),
            _ => {}
        }
    }

    fn led(&self, handle: Handle) -> bool {
        if !self.instruments.tells_news() {
            return false;
        }
        let seen = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        seen.1 == Some((slot(handle), handle.generation()))
    }

    fn see_own(&self, handle: Handle, term: u64) {
        let leader = Leader {
            slot: slot(handle),
            generation: handle.generation(),
            pid: std::process::id(),
            term,
        };
        self.see(term, Some(leader));
    }

    /// That nobody leads says not since which term: that is looked for again.
    fn see_answered(&self, leader: Option<Leader>) {
        match leader {
            Some(leader) => self.see(leader.term, Some(leader)),
            None => self.see_now(),
        }
    }

    fn see_now(&self) {
        if !self.instruments.tells_news() {
            return;
        }
        // The term first: when nobody leads behind it, whoever led in that term does no more.
        let term = self.inner.election_term();
        let leader = self.inner.current_leader();
        self.see(leader.map_or(term, |leader| leader.term), leader);
    }

    /// Tells who leads, if that is news: the leader of a term, or that there is none since this term.
    fn see(&self, term: u64, leader: Option<Leader>) {
        if !self.instruments.tells_news() {
            return;
        }
        // A thread that panicked inside left a whole value.
        let mut seen = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_news(*seen, (term, leader.map(|it| (it.slot, it.generation)))) {
            return;
        }
        *seen = (term, leader.map(|it| (it.slot, it.generation)));
        let Leader {
            slot,
            generation,
            pid,
            term,
        } = leader.unwrap_or(Leader {
            slot: Event::NO_SLOT,
            generation: 0,
            pid: 0,
            term,
        });
        self.instruments.tell(Event {
            slot,
            generation,
            pid,
            value: term,
            label: label(self.inner.table(), (slot, generation)),
            table_id: self.inner.table().creation_id(),
            ..Event::new(EventKind::LeaderChanged, monotonic_ns())
        });
    }
}

/// A thread that looked earlier may come later. A seat that was left is not taken again in its term.
fn is_news(seen: Seen, now: Seen) -> bool {
    match (seen.1, now.1) {
        _ if now.0 < seen.0 => false,
        // An election that nobody has led in yet, or that nobody leads still.
        (None, None) => false,
        (None, Some(_)) => now.0 > seen.0,
        (Some(_), None) => true,
        (Some(_), Some(_)) => now != seen,
    }
}

fn slot(handle: Handle) -> u32 {
    handle.slot() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_comes_late_is_no_news() {
        let led = |term| (term, Some((3, 7)));
        let left = |term| (term, None);
        let cases = [
            (left(0), led(1), true),
            (left(0), left(0), false),
            (led(1), led(1), false),
            (led(1), left(1), true),
            (left(1), led(1), false),
            (left(1), left(1), false),
            (left(1), led(2), true),
            (led(2), left(1), false),
            (led(2), led(1), false),
            (led(2), left(3), true),
        ];
        for (seen, now, wanted) in cases {
            assert_eq!(is_news(seen, now), wanted, "{now:?} behind {seen:?}");
        }
    }
}
