//! What a judgement asks of the world, as words of the model.

use core::cell::Cell;
use std::sync::Arc;

use bumpless_failover::OnSilence;
use bumpless_failover::judge::{Finding, Mode, Scan, Seen, Witness, judge};
use bumpless_failover::lease::{Holder, Lease};
use bumpless_heartbeat::Certificate;
use bumpless_substrate::claim::{Claim, ClaimState};
use bumpless_substrate::layout::Shared;
use bumpless_substrate::proof::{Evidence, Proof, ProofSource};
use bumpless_substrate::sync::{AtomicU64, Ordering};

use crate::cells::{Cells, first_epoch};

/// A slot, and what can be known about its owner.
#[derive(Debug)]
pub struct World {
    pub cells: Arc<Cells>,
    /// The byte lock: 1 = held. The kernel's own lock makes each of its calls see the last one: here
    /// they are read-modify-writes.
    lock: AtomicU64,
    /// The highest generation whose owner is gone by pid; 0 = nobody is.
    pub gone: AtomicU64,
    /// The epoch up to which the owner's beats are done.
    pub beaten: AtomicU64,
    /// The lease word.
    pub lease: AtomicU64,
}

/// One watchdog.
#[derive(Debug)]
pub struct Watchdog {
    world: Arc<World>,
    seen: Seen,
    lease: Lease,
    /// Whether the owner had beaten up to this scan's epoch when the last proof came back.
    pub beat_in_time: Cell<bool>,
    /// Whether the lease was lost when the judgement looked at its own time.
    pub lost_in_time: Cell<bool>,
    /// How many deaths it recorded first.
    pub recorded: Cell<u32>,
}

/// A scan at this epoch; the slots of the models have a grace of their own, the generation's number.
pub fn scan(epoch: u64) -> Scan {
    Scan {
        mode: Mode::Tick,
        epoch,
        grace_epochs: 1,
        on_silence: OnSilence::Reclaim,
        is_round: false,
        forgave_epoch: 0,
    }
}

impl World {
    /// The slot is owned in generation 1, with these units in flight.
    pub fn owned(in_flight: &[u32]) -> (Arc<Self>, Claim) {
        let (cells, live) = Cells::owned(in_flight);
        (Self::around(cells, 1), live)
    }

    pub fn around(cells: Arc<Cells>, locked: u64) -> Arc<Self> {
        let [lock, gone, beaten, lease] = <[AtomicU64; 4]>::zeroed();
        lock.swap(locked, Ordering::AcqRel);
        let free = Lease::load(&lease);
        assert!(
            free.take(&lease, Holder::Unregistered).is_some(),
            "the first watchdog's"
        );
        Arc::new(Self {
            cells,
            lock,
            gone,
            beaten,
            lease,
        })
    }

    /// The owners up to this generation are gone, with all their locks.
    pub fn bury(&self, generation: u32) {
        self.set_lock(false);
        // Release: what the dead did comes before the proof of their death.
        self.gone.store(generation.into(), Ordering::Release);
    }

    /// Takes or drops the byte lock.
    pub fn set_lock(&self, held: bool) {
        // AcqRel pairs with the probe, and with itself.
        self.lock.swap(held.into(), Ordering::AcqRel);
    }

    /// A watchdog that has seen the slot at its owner's first epoch.
    pub fn watchdog(self: &Arc<Self>) -> Watchdog {
        let mut watchdog = Watchdog {
            world: Arc::clone(self),
            seen: Seen::default(),
            lease: Lease::load(&self.lease),
            beat_in_time: Cell::new(false),
            lost_in_time: Cell::new(false),
            recorded: Cell::new(0),
        };
        let (lag_epochs, finding) = watchdog.judge(&scan(first_epoch(1)));
        assert!(
            lag_epochs == 0 && finding.is_none(),
            "first sight is a beat: {finding:?}"
        );
        watchdog
    }
}

impl Watchdog {
    /// Judges the slot, and remembers what it saw.
    pub fn judge(&mut self, scan: &Scan) -> (u64, Option<Finding>) {
        let mut seen = self.seen;
        let judged = judge(&self.world.cells.slot, scan, &mut seen, self);
        self.seen = seen;
        judged
    }
}

impl Witness for Watchdog {
    fn lock_is_free(&self) -> bool {
        // AcqRel pairs with `set_lock`.
        self.world.lock.fetch_add(0, Ordering::AcqRel) == 0
    }

    /// As the three sources of the heartbeat crate: certificate and byte lock, then pid.
    fn examine(&self, claim: Claim) -> Evidence {
        // Acquire pairs with the owner's Release behind its beat.
        let beaten = self.world.beaten.load(Ordering::Acquire);
        self.beat_in_time.set(beaten > 0);
        let gone = |source| Evidence {
            proof: Proof::Gone,
            source,
        };
        let certificate = self.world.cells.slot.certificate();
        let decided_by_lock = claim.state() == Some(ClaimState::Claiming)
            || matches!(certificate, Certificate::Disarmed | Certificate::Died);
        if decided_by_lock && self.lock_is_free() {
            gone(ProofSource::ByteLock)
        // Acquire pairs with `bury`.
        } else if self.world.gone.load(Ordering::Acquire) >= claim.generation().into() {
            gone(ProofSource::Pid)
        } else {
            Evidence::UNKNOWN
        }
    }

    fn still_primary(&self) -> bool {
        Lease::load(&self.world.lease) == self.lease
    }

    fn on_time(&self) -> bool {
        self.lost_in_time.set(!self.still_primary());
        true
    }

    fn record_death(&self, claim: Claim) {
        if self.world.cells.verdict.record_death(claim) {
            self.recorded.set(self.recorded.get() + 1);
        }
    }
}
