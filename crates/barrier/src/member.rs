//! A member: waits, and sleeps while it does.
//!
//! Contract: a member that waits sleeps in the kernel on the bell and on the death certificates of the
//! other members: the release wakes it, and so does a death, after which it looks again. It wakes by
//! itself twice in a watchdog's interval, to beat for its owner, who would otherwise be taken for silent
//! because of others, and to see what rings no bell: a fence, a slot given back, a death without
//! certificate. Whoever releases and is killed before it has rung is such a death, and the others go on.
//!
//! ```text
//!   beat ─ arrive ─ look ──────────────────────────────▶ released ─ beat
//!                    │ ▲ not yet                            ▲
//!        ask for the │ │ bell                               │
//!                    ▼ │                                    │
//!                   sleep ─ beat ─ time over: withdraw ─────┴──▶ TimedOut
//!                             └─ refused: withdraw ─────────────▶ Fenced, StaleHandle, ...
//! ```

use core::time::Duration;

use bumpless_heartbeat::{Certificate, Handle, HeartbeatTable};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::futex::{LOOK_INTERVAL, WAIT_ANY_MAX, Woken, wait_any, wake};
use bumpless_substrate::proof::Proof;
use bumpless_substrate::sync::{AtomicU32, Ordering};

use crate::barrier::EpochBarrier;
use crate::error::BarrierError;
use crate::floor::{Absent, FloorError, Look, Roll, Seat, Wanted};
use crate::presence::{Presence, presence};
use crate::word::{Arrival, Epoch};

/// How long a waiter sleeps at most while no watchdog says how often it looks.
const LOOK_INTERVAL_UNKNOWN: Duration = Duration::from_millis(5);

/// The longest sleep, whatever the watchdog's interval is.
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// How a wait ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// The epoch that was released.
    pub epoch: u64,
    /// The members that were waited for in it and were not there, as far as can be seen now: the dead, in
    /// the epoch that they missed and at most one more; and where a quorum released, those who have
    /// arrived neither in it nor in a later one.
    pub absent: Vec<Absent>,
}

/// A membership, held by one thread at a time; given back when it is dropped.
#[derive(Debug)]
pub struct Member<'b> {
    barrier: &'b EpochBarrier<'b>,
    handle: Handle,
    first: Epoch,
}

impl<'b> Member<'b> {
    pub(crate) fn new(barrier: &'b EpochBarrier<'b>, handle: Handle, first: Epoch) -> Self {
        Self {
            barrier,
            handle,
            first,
        }
    }

    /// The epoch from which on the member is waited for: that of its first [`wait`](Self::wait).
    #[must_use]
    pub fn first_epoch(&self) -> u64 {
        self.first.number()
    }

    /// The registration that is the member.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// The table in which it is registered.
    #[must_use]
    pub fn table(&self) -> &'b HeartbeatTable {
        self.barrier.table
    }

    /// Waits until every live member has arrived. What each wrote before it arrived is visible then.
    ///
    /// An epoch is released by whichever waiter has what it waits for first, for all who wait in it; where
    /// some of them wait for a quorum, look at [`Released::absent`].
    ///
    /// Cost: two locked instructions and a load per registered process, once for who comes last, three
    /// times for who sleeps; a futex call for who sleeps, one for who wakes all others, none if nobody
    /// sleeps.
    ///
    /// # Errors
    /// [`BarrierError::Table`]: fenced, given back, superseded: the arrival does not count.
    /// [`BarrierError::NotMember`] when the words are damaged.
    pub fn wait(&mut self) -> Result<Released, BarrierError> {
        self.wait_for(Wanted::All, None)
    }

    /// As [`wait`](Self::wait), for at most `timeout`. After that the arrival is taken back: it does not
    /// release the others, and the member is waited for as if it had not come.
    ///
    /// # Errors
    /// [`BarrierError::TimedOut`], and as [`wait`](Self::wait).
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Released, BarrierError> {
        self.wait_for(Wanted::All, Some(timeout))
    }

    /// Waits until `quorum` live members have arrived, this one among them. If there are fewer, it waits
    /// for some to join: these may arrive at once, also in the epoch during which they join.
    ///
    /// # Errors
    /// [`BarrierError::Quorum`], and as [`wait`](Self::wait).
    pub fn wait_quorum(&mut self, quorum: usize) -> Result<Released, BarrierError> {
        let wanted = self.quorum(quorum)?;
        self.wait_for(wanted, None)
    }

    /// As [`wait_quorum`](Self::wait_quorum), for at most `timeout`.
    ///
    /// # Errors
    /// [`BarrierError::Quorum`], and as [`wait_timeout`](Self::wait_timeout).
    pub fn wait_quorum_timeout(
        &mut self,
        quorum: usize,
        timeout: Duration,
    ) -> Result<Released, BarrierError> {
        let wanted = self.quorum(quorum)?;
        self.wait_for(wanted, Some(timeout))
    }

    /// Ends the membership, as dropping it does: nobody waits for this member any more.
    pub fn leave(self) {}

    fn quorum(&self, found: usize) -> Result<Wanted, BarrierError> {
        let limit = self.barrier.table.capacity();
        match u32::try_from(found) {
            Ok(quorum) if (1..=limit).contains(&found) => Ok(Wanted::Quorum(quorum)),
            _ => Err(BarrierError::Quorum {
                path: self.barrier.path.clone(),
                found,
                limit,
            }),
        }
    }

    fn wait_for(
        &mut self,
        wanted: Wanted,
        timeout: Option<Duration>,
    ) -> Result<Released, BarrierError> {
        let EpochBarrier { table, .. } = *self.barrier;
        table.beat(self.handle)?;
        let deadline_ns = timeout.map(|timeout| {
            let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
            monotonic_ns().saturating_add(timeout_ns)
        });
        let floor = self.barrier.floor();
        let (slot, generation) = (self.handle.slot() as u32, self.handle.generation());
        let seat = floor
            .arrive(slot, generation, wanted)
            .map_err(|error| self.barrier.named(self.handle, error))?;
        let mut roll = TableRoll {
            table,
            is_thorough: false,
        };
        let mut words = None;
        loop {
            match floor.look(&roll, &seat, wanted) {
                Look::Past => {
                    table.beat(self.handle)?;
                    return Ok(self.released(&seat));
                }
                Look::Complete(stand) => {
                    if floor.release(stand) {
                        wake(floor.gate().bell(), u32::MAX);
                    }
                    continue;
                }
                Look::Damaged => {
                    let _ = floor.withdraw(&seat);
                    let found = Arrival::arrived(generation, seat.target());
                    return Err(self
                        .barrier
                        .named(self.handle, FloorError::NotMember { found }));
                }
                Look::NotYet => {}
            }
            let Some(asleep_on) = words.take() else {
                // Then the look again: what happens behind it, these words tell.
                words = Some(self.words_to_sleep_on());
                continue;
            };
            let left = deadline_ns.map(|deadline_ns| {
                Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()))
            });
            let refused = table.beat(self.handle).err().map(BarrierError::from);
            if refused.is_some() || left == Some(Duration::ZERO) {
                let is_withdrawn = floor.withdraw(&seat);
                return match refused {
                    Some(refused) => Err(refused),
                    None if is_withdrawn => Err(self.timed_out(&seat, timeout)),
                    None => Ok(self.released(&seat)),
                };
            }
            let woken = self.sleep(&asleep_on, left);
            roll.is_thorough = !matches!(woken, Woken::Woken | Woken::Changed);
        }
    }

    /// The bell, asked to ring, and the certificates of the members with what they say now.
    fn words_to_sleep_on(&self) -> Vec<(&'b AtomicU32, u32)> {
        let EpochBarrier { table, .. } = *self.barrier;
        let floor = self.barrier.floor();
        let gate = floor.gate();
        let mut words = vec![(gate.bell(), gate.announce())];
        // The kernel wakes one sleeper of a word. A thread that slept on its own process's would take
        // that wake into death with it.
        let own = table.held_slots();
        for (slot, generation) in floor.members(&TableRoll::of(table)) {
            let Some(cells) = table.cells(slot as usize) else {
                continue;
            };
            // Before the look at the owner: if it is another's certificate by now, that owner's death wakes
            // us for nothing, and no more than that.
            let keeper = cells.slot.keeper_word();
            // Relaxed: the kernel compares the value again before it sleeps.
            let expected = keeper.load(Ordering::Relaxed);
            if Certificate::of(expected) == Certificate::Armed
                && presence(cells.slot, generation) == Presence::Live
                && own.binary_search(&slot).is_err()
            {
                words.push((keeper, expected));
            }
        }
        words
    }

    fn sleep(&self, words: &[(&AtomicU32, u32)], left: Option<Duration>) -> Woken {
        let mut longest = look_interval(self.barrier.table);
        if words.len() > WAIT_ANY_MAX {
            longest = longest.min(LOOK_INTERVAL);
        }
        let woken = wait_any(words, left.map_or(longest, |left| left.min(longest)));
        if matches!(woken, Woken::Woken | Woken::Changed) {
            wake_the_others(words);
        }
        woken
    }

    fn released(&self, seat: &Seat) -> Released {
        Released {
            epoch: seat.target().number(),
            absent: self.absent(seat),
        }
    }

    fn absent(&self, seat: &Seat) -> Vec<Absent> {
        let roll = TableRoll::of(self.barrier.table);
        self.barrier.floor().absent(&roll, seat.target())
    }

    fn timed_out(&self, seat: &Seat, timeout: Option<Duration>) -> BarrierError {
        let own = self.handle.slot() as u32;
        let mut absent = self.absent(seat);
        absent.retain(|absent| absent.slot != own);
        BarrierError::TimedOut {
            path: self.barrier.path.clone(),
            epoch: seat.target().number(),
            waited: timeout.unwrap_or_default(),
            absent,
        }
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let EpochBarrier { table, .. } = *self.barrier;
        // A fork child's copy is its parent's membership.
        if table.is_forked() {
            return;
        }
        let floor = self.barrier.floor();
        if floor.leave(self.handle.slot() as u32, self.handle.generation()) {
            wake(floor.gate().bell(), u32::MAX);
        }
    }
}

/// What the table says.
#[derive(Debug)]
struct TableRoll<'t> {
    table: &'t HeartbeatTable,
    /// Whether to ask for a proof of death where there is no certificate.
    is_thorough: bool,
}

impl<'t> TableRoll<'t> {
    fn of(table: &'t HeartbeatTable) -> Self {
        Self {
            table,
            is_thorough: false,
        }
    }
}

impl Roll for TableRoll<'_> {
    fn slots(&self) -> impl Iterator<Item = u32> {
        self.table.occupancy().iter()
    }

    fn presence(&self, slot: u32, generation: u32) -> Presence {
        let Some(cells) = self.table.cells(slot as usize) else {
            return Presence::Left;
        };
        let found = presence(cells.slot, generation);
        if found != Presence::Live
            || !self.is_thorough
            || cells.slot.certificate() == Certificate::Armed
        {
            return found;
        }
        let claim = cells.slot.claimed_by();
        let is_gone = self.table.examine(slot as usize, claim).proof == Proof::Gone;
        if is_gone && claim.generation() == generation {
            Presence::Died
        } else {
            found
        }
    }
}

/// Half of the interval in which the table's watchdog looks.
fn look_interval(table: &HeartbeatTable) -> Duration {
    // Relaxed: a number on its own.
    match table.header().period_ns.load(Ordering::Relaxed) {
        0 => LOOK_INTERVAL_UNKNOWN,
        period_ns => Duration::from_nanos(period_ns / 2).clamp(LOOK_INTERVAL, LOOK_INTERVAL_MAX),
    }
}

/// The kernel wakes one sleeper of a word that it marks: each wakes the others.
fn wake_the_others(words: &[(&AtomicU32, u32)]) {
    // The first is the bell, whose ringer wakes all.
    for (word, _) in words.iter().skip(1) {
        // Relaxed: a filter; a wake too many is harmless.
        if Certificate::of(word.load(Ordering::Relaxed)) == Certificate::Died {
            wake(word, u32::MAX);
        }
    }
}
