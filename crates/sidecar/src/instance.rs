//! What is observed: an instance, and the instruments that it shares with the sidecar.
//!
//! Contract: the sidecar holds the [`Instruments`] and a policy, and never the instance: so a borrowed
//! thing can be observed as well as an owned one, and it may end while it is observed. An instance takes
//! a new tag over in one of its own calls, one caller at a time, the latest tag last.
//!
//! ```text
//!   instance ─ observation ─▶ ring ─▶ scanner ─ statistics ─▶ policy
//!      ▲                                                        │
//!      └──────────────── tag in the header ◀────────────────────┘
//! ```

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::event::Event;
use crate::handshake::HandshakeHeader;
use crate::observation::{Observation, TALLIED_OP};
use crate::policy::Policy;
use crate::ring::ObservationRing;
use crate::sink::{EventSink, record_in};

/// The number of observations that a ring of [`Instruments::new`] holds: 128 KiB.
pub const RING_CAPACITY: usize = 4_096;

/// The number of the next instruments of this process.
static NEXT_ID: AtomicU32 = AtomicU32::new(1);

/// Something that can be observed and steered.
pub trait AdaptiveInstance {
    /// What it shares with the sidecar.
    fn instruments(&self) -> &Arc<Instruments>;

    /// Its tag, and who is inside.
    fn header(&self) -> &HandshakeHeader {
        self.instruments().header()
    }

    /// Its observations.
    fn ring(&self) -> &ObservationRing {
        self.instruments().ring()
    }

    /// A policy for it: what its makers think right for most.
    fn make_policy(&self) -> Box<dyn Policy>;

    /// Becomes what the tag asks for. Called in one of the instance's own calls, one at a time.
    fn apply_migration(&self, tag: u32);
}

/// What an instance and the sidecar share.
///
/// ```
/// use bumpless_sidecar::Instruments;
/// let instruments = Instruments::new();
/// assert_eq!((instruments.header().tag(), instruments.ring().counts().pushed), (0, 0));
/// ```
#[derive(Debug)]
pub struct Instruments {
    id: u32,
    header: HandshakeHeader,
    /// The generation of the header that the instance has taken over.
    applied: AtomicU32,
    /// Held while a tag is taken over.
    applying: Mutex<()>,
    ring: ObservationRing,
    events: Option<Arc<dyn EventSink>>,
    events_lost: AtomicU64,
}

impl Instruments {
    /// With a ring of [`RING_CAPACITY`] in the heap, and no sink for events.
    #[must_use]
    pub fn new() -> Self {
        Self::on_ring(ObservationRing::with_capacity(RING_CAPACITY))
    }

    /// With a ring of one's own: of another capacity, or in shared memory.
    #[must_use]
    pub fn on_ring(ring: ObservationRing) -> Self {
        Self {
            // Relaxed: a number that nobody else gets.
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            header: HandshakeHeader::new(),
            applied: AtomicU32::new(0),
            applying: Mutex::new(()),
            ring,
            events: None,
            events_lost: AtomicU64::new(0),
        }
    }

    /// Tells events to `sink`.
    #[must_use]
    pub fn with_events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.events = Some(sink);
        self
    }

    /// Which instruments of this process these are: the `instance_id` of each observation.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The tag, and who is inside.
    #[must_use]
    pub fn header(&self) -> &HandshakeHeader {
        &self.header
    }

    /// The observations.
    #[must_use]
    pub fn ring(&self) -> &ObservationRing {
        &self.ring
    }

    /// Pushes an observation of an operation that was not timed.
    #[inline(always)]
    pub fn observe(&self, op_kind: u16, is_contended: bool, value: u32) {
        self.push(op_kind, contended_flag(is_contended), 0, value);
    }

    /// Pushes an observation of an operation that took `latency_ns`.
    pub fn observe_timed(&self, op_kind: u16, is_contended: bool, value: u32, latency_ns: u64) {
        let flags = Observation::TIMED | contended_flag(is_contended);
        self.push(op_kind, flags, latency_ns, value);
    }

    /// Pushes a sample of what the ring [tallies](ObservationRing::tally).
    pub fn observe_sample(&self, value: u32, latency_ns: u64) {
        // One that finds no place is counted all the same: it is tallied.
        let _ = self.ring.push_sample(Observation {
            instance_id: self.id,
            op_kind: TALLIED_OP,
            flags: Observation::TIMED | Observation::TALLIED,
            latency_ns,
            producer_id: self.ring.producer_id(),
            value,
        });
    }

    #[inline(always)]
    fn push(&self, op_kind: u16, flags: u16, latency_ns: u64, value: u32) {
        // One that finds no place is counted by the ring.
        let _ = self.ring.push(Observation {
            instance_id: self.id,
            op_kind,
            flags,
            latency_ns,
            producer_id: self.ring.producer_id(),
            value,
        });
    }

    /// Whether somebody takes events: else they need not be made.
    #[must_use]
    #[inline]
    pub fn has_sink(&self) -> bool {
        self.events.is_some()
    }

    /// Whether a box should look for news to tell: there is a sink, and this is no fork child's copy of a
    /// box, whose memory of what was told is its parent's, perhaps in the middle of a change.
    #[must_use]
    pub(crate) fn tells_news(&self) -> bool {
        self.has_sink() && !self.ring.is_forked()
    }

    /// Tells an event, as one of this instance, to the sink, if there is one. A sink that panics loses the
    /// event, which is counted.
    pub fn tell(&self, event: Event) {
        let Some(sink) = &self.events else { return };
        let of_this = Event {
            instance: self.id,
            ..event
        };
        if !record_in(&**sink, &of_this) {
            // Relaxed: a number.
            self.events_lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many events the sink did not take, as it panicked.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        // Relaxed: a number.
        self.events_lost.load(Ordering::Relaxed)
    }

    /// Takes the header's tag over by `apply`, if it is a new one. Cost: two loads.
    #[inline]
    pub fn follow(&self, apply: impl FnOnce(u32)) {
        // Relaxed: what was applied is under the lock; this is the filter before it.
        if self.header.generation() != self.applied.load(Ordering::Relaxed) {
            self.catch_up(apply);
        }
    }

    #[cold]
    fn catch_up(&self, apply: impl FnOnce(u32)) {
        // Whoever holds it applies for all; the next call sees whether that was the latest tag.
        let Ok(_applying) = self.applying.try_lock() else {
            return;
        };
        let asked = self.header.look();
        // Relaxed, both: written under the lock only.
        if asked.generation != self.applied.load(Ordering::Relaxed) {
            apply(asked.tag);
            self.applied.store(asked.generation, Ordering::Relaxed);
        }
    }
}

#[inline]
const fn contended_flag(is_contended: bool) -> u16 {
    // The flag is bit 0.
    Observation::CONTENDED * is_contended as u16
}

impl Default for Instruments {
    fn default() -> Self {
        Self::new()
    }
}
