//! Registering and unregistering: who may take which slot.
//!
//! Contract: a slot is taken only with its byte lock held, by one CAS of its claim, and only if it is
//! free, given back and empty, or its owner is proven gone and nothing of it waits for an
//! acknowledgement. Whoever dies in between leaves a slot that the next registrant can take.
//!
//! In the portable tier there are no byte locks, and the CAS alone decides: everybody else's fails. Who
//! dies while CLAIMING cannot be proven gone there, and keeps the slot.
//!
//! ```text
//!   local lock ─ byte lock ─ occupancy bit ─ claim CAS ─ arm ─ fill ─ lock held? ─ LIVE ─ doorbell
//!   local lock ─ own fence ─ disarm ─ RELEASED ─ occupancy bit off (if empty) ─ byte lock off
//! ```
//! Slots are tried in three rounds: those that the occupancy hint calls free; those given back; those
//! whose owner can be proven gone, which costs system calls and is only reached in a full table.

use bumpless_substrate::claim::{Claim, ClaimState, GENERATION_MAX};
use bumpless_substrate::futex::wake;
use bumpless_substrate::identity::{self, ProcessIdentity};
use bumpless_substrate::keeper::{ARMED_MAX, Keeper};
use bumpless_substrate::locks::{LockState, SlotLocks};
use bumpless_substrate::proof::{Evidence, Proof};
use bumpless_substrate::sync::Ordering;

use crate::cells::SlotCells;
use crate::error::HeartbeatError;
use crate::evidence::{Suspect, examine};
use crate::handle::Handle;
use crate::header::{DOORBELL_WAITED_ON, Places};
use crate::identity_line::{Profile, Registration};
use crate::occupants::{Obstacle, Occupant, Occupants};
use crate::slot::{Claimable, KEEPER_OFFSET, Slot};
use crate::table::{HeartbeatTable, Local, Result, tag};

/// How far a registrant goes to get a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Only slots that nobody owns.
    Vacant,
    /// Also slots whose owner is proven gone.
    Recycle,
}

impl HeartbeatTable {
    /// Takes a slot for this process, whose id `pid` must be; a worker with the watchdog's grace and no
    /// label. Cost: one lock and one unlock system call (later, by `unregister`) and two locked CAS; in
    /// a full table, a proof per slot.
    ///
    /// # Errors
    /// [`HeartbeatError::ZeroPid`], [`HeartbeatError::ForeignPid`], [`HeartbeatError::TableFull`],
    /// [`HeartbeatError::ReadOnly`], [`HeartbeatError::Superseded`].
    pub fn register(&self, pid: u32) -> Result<Handle> {
        self.register_as(pid, Profile::default())
    }

    /// As [`register`](Self::register), with role, grace and label chosen.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn register_as(&self, pid: u32, profile: Profile) -> Result<Handle> {
        self.writable()?;
        if pid == 0 {
            return Err(HeartbeatError::ZeroPid);
        }
        // Remembered: asking for the id alone would be a system call.
        let me = identity::current()?;
        if pid != me.pid {
            let wanted = me.pid;
            return Err(HeartbeatError::ForeignPid { found: pid, wanted });
        }
        if self.epoch().is_superseded() {
            return Err(self.replaced());
        }
        let mut local = self.local()?;
        if local.held.len() >= ARMED_MAX {
            return Err(HeartbeatError::TooManyRegistrations {
                path: self.region.path().to_owned(),
                found: local.held.len(),
                limit: ARMED_MAX,
            });
        }
        // Before the first claim: if it fails, that costs nothing but the tier.
        local
            .keeper
            .get_or_insert_with(|| Keeper::start(&self.region));
        let occupancy = self.occupancy();
        let mut occupants = Vec::new();
        let rounds = [Effort::Vacant, Effort::Recycle];
        for slot in occupancy.iter_clear() {
            match self.try_slot(slot, &me, profile, Effort::Vacant, &local)? {
                Ok(handle) => {
                    local.held.push(handle);
                    return Ok(handle);
                }
                // Nobody's, and yet not to be had: no later round comes here.
                Err(obstacle @ (Obstacle::Retired | Obstacle::Damaged)) => {
                    occupants.push(self.occupant(slot, obstacle));
                }
                Err(_) => {}
            }
        }
        let unusable = occupants.len();
        for effort in rounds {
            occupants.truncate(unusable);
            for slot in occupancy.iter() {
                match self.try_slot(slot, &me, profile, effort, &local)? {
                    Ok(handle) => {
                        local.held.push(handle);
                        return Ok(handle);
                    }
                    Err(obstacle) => occupants.push(self.occupant(slot, obstacle)),
                }
            }
        }
        Err(HeartbeatError::TableFull {
            path: self.region.path().to_owned(),
            occupants: Occupants::new(self.region.capacity(), occupants),
        })
    }

    /// Gives the slot back. Units in flight are handed back as a dead owner's would be; the slot is
    /// reused once they are acknowledged. Also how a fenced owner acknowledges that it was fenced.
    ///
    /// # Errors
    /// [`HeartbeatError::StaleHandle`], [`HeartbeatError::SlotOutOfRange`].
    pub fn unregister(&self, handle: Handle) -> Result<()> {
        let locks = self.writable()?;
        let mut local = self.local()?;
        let cells = self.still_registered(&local, handle)?;
        let left = cells
            .slot
            .unregister(handle.live, || {
                disarm(&local, handle.index(), self.region.capacity())
            })
            .map_err(|error| self.named(handle, None, error))?;
        local.held.retain(|other| *other != handle);
        // Without a lock the next owner may have set the bit already: then it stays.
        if left.is_empty() && SlotLocks::EXCLUDE {
            self.occupancy().clear(handle.index());
        }
        locks.unlock(handle.index())?;
        Ok(())
    }

    /// What is known about the owner that `claim` names, and from which source. Cost: 0.3 us for the
    /// byte lock, some microseconds more if that says nothing. A table that was opened to look only asks
    /// the pid alone.
    #[must_use]
    pub fn examine(&self, slot: usize, claim: Claim) -> Evidence {
        let (Some(cells), Ok(index)) = (self.cells(slot), u32::try_from(slot)) else {
            return Evidence::UNKNOWN;
        };
        let lock = self.lock_state(index).unwrap_or(LockState::Unknown);
        examine(&Suspect { cells, claim, lock })
    }

    /// The slots that this process has taken through this table, in rising order; none in a fork child.
    #[must_use]
    pub fn held_slots(&self) -> Vec<u32> {
        let Ok(local) = self.local() else {
            return Vec::new();
        };
        let mut slots: Vec<u32> = local.held.iter().map(|handle| handle.index()).collect();
        slots.sort_unstable();
        slots
    }

    /// Whether somebody holds the slot's byte lock. Held is no proof of life: a fork child inherits it.
    ///
    /// # Errors
    /// [`HeartbeatError::ReadOnly`], [`HeartbeatError::Region`].
    pub fn lock_state(&self, slot: u32) -> Result<LockState> {
        Ok(self.writable()?.probe(slot)?)
    }

    /// Records the death of `dead` in the slot's verdict line, once per generation. Does nothing in a
    /// table that was opened to look only.
    pub fn record_death(&self, cells: SlotCells<'_>, dead: Claim) {
        if self.is_read_only() {
            return;
        }
        let hint = &self.header().deaths_hint;
        // Relaxed, before and after: the scan that sees either looks at the line; one that died with
        // us in between is made good by the scan's regular round over all lines.
        hint.fetch_add(1, Ordering::Relaxed);
        if cells.verdict.record_death(dead) {
            hint.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One attempt at one slot: a handle, or what is in the way.
    fn try_slot(
        &self,
        slot: u32,
        me: &ProcessIdentity,
        profile: Profile,
        effort: Effort,
        local: &Local,
    ) -> Result<core::result::Result<Handle, Obstacle>> {
        let Some(cells) = self.cells(slot as usize) else {
            return Ok(Err(Obstacle::Damaged));
        };
        let seen = cells.slot.peek_claim();
        let vacant = matches!(seen.state(), Some(ClaimState::Free | ClaimState::Released));
        if seen.state().is_none() {
            return Ok(Err(Obstacle::Damaged));
        }
        if seen.generation() == GENERATION_MAX {
            return Ok(Err(Obstacle::Retired));
        }
        let own = local.held.iter().any(|handle| handle.index() == slot);
        if own || (!vacant && effort == Effort::Vacant) {
            return Ok(Err(Obstacle::Owned));
        }
        let locks = self.writable()?;
        if !locks.try_lock(slot)? {
            let obstacle = if seen.is_live() {
                Obstacle::Owned
            } else {
                Obstacle::Locked
            };
            return Ok(Err(obstacle));
        }
        let outcome = self.claim_locked(slot, cells, me, profile, effort, local);
        if !matches!(outcome, Ok(Ok(_))) {
            locks.unlock(slot)?;
        }
        outcome
    }

    /// The claim itself, with the slot's byte lock held.
    fn claim_locked(
        &self,
        slot: u32,
        cells: SlotCells<'_>,
        me: &ProcessIdentity,
        profile: Profile,
        effort: Effort,
        local: &Local,
    ) -> Result<core::result::Result<Handle, Obstacle>> {
        let seen = cells.slot.claimed_by();
        let claimable = match seen.state() {
            Some(ClaimState::Free | ClaimState::Released) => cells.slot.claimable(seen),
            Some(ClaimState::Claiming | ClaimState::Live) if effort == Effort::Recycle => {
                // Our own holding of the lock is what "free" means to everybody else.
                let taken = if SlotLocks::EXCLUDE {
                    LockState::Free
                } else {
                    LockState::Unknown
                };
                let suspect = Suspect {
                    cells,
                    claim: seen,
                    lock: taken,
                };
                if examine(&suspect).proof != Proof::Gone {
                    return Ok(Err(Obstacle::Owned));
                }
                self.record_death(cells, seen);
                cells.slot.recycle(seen)
            }
            Some(_) => return Ok(Err(Obstacle::Owned)),
            None => return Ok(Err(Obstacle::Damaged)),
        };
        match claimable {
            Claimable::Yes => {}
            Claimable::UnitsLeft(units) => return Ok(Err(Obstacle::Units(units))),
            Claimable::Damaged(_) => return Ok(Err(Obstacle::Damaged)),
        }
        self.occupancy().set(slot);
        let Ok(claiming) = cells.slot.claim(seen, me.pid) else {
            return Ok(Err(Obstacle::Locked));
        };
        let registration = Registration {
            profile,
            epoch: self.global_epoch(),
            start_ticks: me.start_ticks,
            pid_namespace: me.pid_namespace,
            time_namespace: me.time_namespace,
        };
        arm(local, cells, slot, self.region.capacity());
        cells.slot.fill(claiming, cells.identity, &registration);
        // A killed thread does not come back from this system call, so no slot becomes LIVE after the
        // kernel has walked the list of certificates.
        let lock = self.lock_state(slot);
        if !matches!(lock, Ok(LockState::Held | LockState::Unknown)) {
            disarm(local, slot, self.region.capacity());
            lock?;
            return Err(HeartbeatError::LockLost {
                slot: slot as usize,
            });
        }
        let live = cells
            .slot
            .publish(claiming)
            .map_err(|found| HeartbeatError::Damaged {
                slot: slot as usize,
                found: format!("{found:?}"),
            })?;
        self.ring();
        Ok(Ok(Handle::new(live, tag(self.region.creation_id()), slot)))
    }

    /// Tells who sleeps on the doorbell that somebody registered. A system call only if somebody does.
    fn ring(&self) {
        let doorbell = &self.header().doorbell;
        // Relaxed, both: whoever is woken looks at the claims; a sleeper that set its bit in between
        // finds the word changed, and does not sleep.
        let before = doorbell.fetch_add(2, Ordering::Relaxed);
        if before & DOORBELL_WAITED_ON != 0 {
            doorbell.fetch_and(!DOORBELL_WAITED_ON, Ordering::Relaxed);
            wake(doorbell, u32::MAX);
        }
    }

    fn occupant(&self, slot: u32, obstacle: Obstacle) -> Occupant {
        let cells = self.cells(slot as usize);
        let pid = cells.map_or(0, |cells| cells.slot.peek_claim().pid());
        let registered_epoch = self
            .identity(slot)
            .map_or(u64::MAX, |identity| identity.registration.epoch);
        Occupant {
            slot,
            pid,
            registered_epoch,
            obstacle,
        }
    }
}

/// Where the slot's keeper word lies in the file.
fn keeper_offset(slot: u32, capacity: u32) -> u64 {
    Places::of(capacity).slots + u64::from(slot) * size_of::<Slot>() as u64 + KEEPER_OFFSET
}

/// Arms the certificate of a slot that is being claimed, if there is a keeper and it has room.
fn arm(local: &Local, cells: SlotCells<'_>, slot: u32, capacity: u32) {
    let armed = match &local.keeper {
        Some(Ok(keeper)) => keeper.arm(keeper_offset(slot, capacity)).is_ok(),
        _ => false,
    };
    if !armed {
        cells.slot.keep_without_certificate();
    }
}

/// Takes back the certificate of a slot that is given back.
fn disarm(local: &Local, slot: u32, capacity: u32) {
    if let Some(Ok(keeper)) = &local.keeper {
        // Fails only for a slot beyond the table, or in a fork child, and both were refused before.
        let _ = keeper.disarm(keeper_offset(slot, capacity));
    }
}
