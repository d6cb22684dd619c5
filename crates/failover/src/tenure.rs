//! Holding the lease: how a watchdog becomes the primary one, stays it, and steps down.
//!
//! Contract: a watchdog is registered in the table that it watches, so its own death is seen like
//! anybody's. A standby takes over at once when the holder is gone, and after four of the holder's
//! planned intervals without a tick when it hangs. A holder that comes back finds another lease in the
//! word and is a standby.

use std::sync::PoisonError;

use bumpless_heartbeat::{Certificate, HeartbeatError, Label, Profile, SlotRole};
use bumpless_substrate::proof::Proof;
use bumpless_substrate::sync::Ordering;

use crate::lease::{Holder, Lease};
use crate::watchdog::{FailoverWatchdog, Memory, ROUND_SCANS};

/// A hung holder is replaced after so many of its planned intervals without a tick.
const HUNG_INTERVALS: u64 = 4;

impl FailoverWatchdog<'_> {
    /// The lease, if this watchdog holds it or can take it: nobody holds it, or the holder is gone, or
    /// it has not ticked for four of its intervals.
    pub(crate) fn hold_lease(&self, memory: &mut Memory, now_ns: u64) -> Option<Lease> {
        if self.table.is_read_only() || self.table.is_forked() {
            return None;
        }
        self.keep_registered(memory);
        let word = &self.table.header().lease;
        let found = Lease::load(word);
        if memory.lease == Some(found) {
            return Some(found);
        }
        memory.lease = None;
        let is_free = match found.holder() {
            Holder::Nobody => true,
            Holder::Unregistered => false,
            Holder::Slot { slot, generation } => self.is_gone(slot, generation),
        };
        // Relaxed: a number on its own.
        let interval_ns = self.table.header().period_ns.load(Ordering::Relaxed);
        let epoch = self.table.global_epoch();
        if !is_free && !memory.stillness.has_hung(found, epoch, now_ns, interval_ns) {
            return None;
        }
        let holder = match memory.handle {
            Some(handle) => Holder::Slot {
                slot: handle.slot() as u32,
                generation: handle.generation(),
            },
            None => Holder::Unregistered,
        };
        memory.lease = found.take(word, holder);
        memory.lease
    }

    /// Whether the watchdog that held the lease in this slot is there no more.
    fn is_gone(&self, slot: u32, generation: u32) -> bool {
        let Some(cells) = self.table.cells(slot as usize) else {
            return true;
        };
        let claim = cells.slot.claimed_by();
        claim.generation() != generation
            || !claim.is_live()
            || cells.slot.certificate() == Certificate::Died
            || self.table.examine(slot as usize, claim).proof == Proof::Gone
    }

    /// Sees to it that the watchdog is registered, so that its own death is seen. In a full table it
    /// does without, and tries again now and then.
    fn keep_registered(&self, memory: &mut Memory) {
        self.beat(memory);
        if memory.handle.is_none() && memory.scans >= memory.registers_at_scan {
            memory.registers_at_scan = memory.scans + ROUND_SCANS;
            let label = Label::new("watchdog").unwrap_or_default();
            let profile = Profile {
                role: SlotRole::Watchdog,
                label,
                ..Profile::default()
            };
            memory.handle = self.table.register_as(std::process::id(), profile).ok();
        }
    }

    /// The watchdog's own beat. One that was fenced gives its slot and the lease up.
    pub(crate) fn beat(&self, memory: &mut Memory) {
        let Some(handle) = memory.handle else { return };
        if matches!(
            self.table.beat(handle),
            Err(HeartbeatError::Fenced { .. } | HeartbeatError::StaleHandle { .. })
        ) {
            // A slot that is not ours any more needs nothing from us.
            let _ = self.table.unregister(handle);
            memory.handle = None;
            memory.lease = None;
            memory.registers_at_scan = 0;
        }
    }

    /// Says when the next tick is planned, for standbys, and by what grace it judges, for observers.
    pub(crate) fn plan(&self, memory: &mut Memory, now_ns: u64, interval_ns: u64) {
        let observed_ns = memory
            .ticked_ns
            .map_or(0, |ticked_ns| now_ns.saturating_sub(ticked_ns));
        memory.ticked_ns = Some(now_ns);
        let planned_ns = if interval_ns == 0 {
            observed_ns
        } else {
            interval_ns
        };
        let header = self.table.header();
        // Relaxed, both: numbers on their own.
        header.period_ns.store(planned_ns, Ordering::Relaxed);
        header
            .grace_epochs
            .store(self.grace_epochs.max(1), Ordering::Relaxed);
    }
}

impl Drop for FailoverWatchdog<'_> {
    /// Gives the lease and the slot back, so that a standby need not find out.
    fn drop(&mut self) {
        let memory = self
            .memory
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        // In a fork child both are the parent's.
        if self.table.is_forked() {
            return;
        }
        if let Some(handle) = memory.handle {
            // A slot that is not ours any more needs nothing from us.
            let _ = self.table.unregister(handle);
        }
        if let Some(lease) = memory.lease {
            lease.give_back(&self.table.header().lease);
        }
    }
}

/// Watching a holder that may hang: since when the epoch has not moved.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stillness {
    lease: Option<Lease>,
    epoch: u64,
    since_ns: u64,
    looks: u64,
}

impl Stillness {
    /// Takes in what a standby sees now; whether the holder has hung. `interval_ns` is what the holder
    /// plans; if it says nothing (0), the standby's own looks are counted instead.
    fn has_hung(&mut self, lease: Lease, epoch: u64, now_ns: u64, interval_ns: u64) -> bool {
        if self.looks == 0 || self.lease != Some(lease) || self.epoch != epoch {
            *self = Self {
                lease: Some(lease),
                epoch,
                since_ns: now_ns,
                looks: 1,
            };
            return false;
        }
        self.looks += 1;
        if interval_ns == 0 {
            self.looks > HUNG_INTERVALS
        } else {
            now_ns.saturating_sub(self.since_ns) >= HUNG_INTERVALS.saturating_mul(interval_ns)
        }
    }
}

#[cfg(test)]
mod tests {
    use bumpless_substrate::layout::Shared;
    use bumpless_substrate::sync::AtomicU64;

    use super::*;

    #[test]
    fn a_holder_hangs_after_four_of_its_intervals_and_any_tick_starts_anew() {
        let word = AtomicU64::zeroed();
        let lease = Lease::load(&word);
        let mut still = Stillness::default();
        let mut look = |epoch, now_ns| still.has_hung(lease, epoch, now_ns, 10);
        assert!(!look(5, 100));
        assert!(!look(5, 139));
        assert!(!look(6, 140));
        assert!(!look(6, 179));
        assert!(look(6, 180));
    }
}
