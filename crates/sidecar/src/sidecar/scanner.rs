//! The scanner: drains the rings, keeps the statistics, asks the policies.
//!
//! Contract: no thread and no clock of its own: time is an argument. Each observation is in the statistics
//! once. A tag that was changed is told as an event. A policy that panics is taken away from its instance,
//! counted there, and told; all others go on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::event::{Event, EventKind};
use crate::instance::{AdaptiveInstance, Instruments};
use crate::policy::{NoMigrationPolicy, Policy};
use crate::ring::Drained;
use crate::sink::{EventSink, record_in};
use crate::stats::InstanceStats;

/// Drains what is registered, when it is told to.
///
/// ```
/// use bumpless_sidecar::{AdaptiveInstance, FixedPolicy, Scanner, SidecarBox};
/// use bumpless_substrate::shared_atomic::SharedAtomicU64;
/// use bumpless_substrate::sync::Ordering;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let count = SidecarBox::new(SharedAtomicU64::create(&folder.path().join("count"), 0)?);
/// let mut scanner = Scanner::new();
/// let id = scanner.register_with(&count, Box::new(FixedPolicy(3)));
/// count.fetch_add(1, Ordering::Relaxed);
/// let scanned = scanner.scan(1_000);
/// assert_eq!((scanned.drained.taken, scanned.migrations), (1, 1));
/// assert_eq!((count.header().tag(), scanner.stats(id).unwrap().scanned_ns), (3, 1_000));
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct Scanner {
    watched: Vec<Watched>,
    events: Option<Arc<dyn EventSink>>,
    next_id: u64,
}

/// What names a registered instance in its scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstanceId(u64);

/// What a scan did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scanned {
    /// From all rings.
    pub drained: Drained,
    /// Tags that were changed.
    pub migrations: u64,
    /// Policies that panicked, and are off now.
    pub policies_off: u64,
    /// Whether a ring was at least a quarter full.
    pub is_crowded: bool,
}

/// An instance, with its policy and its statistics.
pub(super) struct Watched {
    id: InstanceId,
    instruments: Arc<Instruments>,
    policy: Box<dyn Policy>,
    stats: InstanceStats,
}

impl core::fmt::Debug for Watched {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Watched")
            .field("id", &self.id)
            .field("instance", &self.instruments.id())
            .finish_non_exhaustive()
    }
}

impl Scanner {
    /// Watches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells changes of tags, and what happens to policies, to `sink`.
    #[must_use]
    pub fn with_events(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.events = Some(sink);
        self
    }

    /// Watches an instance, with the policy that it makes for itself.
    pub fn register(&mut self, instance: &impl AdaptiveInstance) -> InstanceId {
        self.register_with(instance, instance.make_policy())
    }

    /// Watches an instance with a policy of one's own.
    pub fn register_with(
        &mut self,
        instance: &impl AdaptiveInstance,
        policy: Box<dyn Policy>,
    ) -> InstanceId {
        let id = InstanceId(self.next_id);
        self.next_id += 1;
        self.watched.push(Watched {
            id,
            instruments: Arc::clone(instance.instruments()),
            policy,
            stats: InstanceStats::default(),
        });
        id
    }

    /// Watches it no more; whether it did.
    pub fn unregister(&mut self, id: InstanceId) -> bool {
        self.take(id).is_some()
    }

    /// As [`unregister`](Self::unregister), for who wants to choose when the policy ends.
    pub(super) fn take(&mut self, id: InstanceId) -> Option<Watched> {
        let place = self.watched.iter().position(|watched| watched.id == id)?;
        Some(self.watched.remove(place))
    }

    /// What was observed of an instance, as of the last scan.
    #[must_use]
    pub fn stats(&self, id: InstanceId) -> Option<&InstanceStats> {
        let watched = self.watched.iter().find(|watched| watched.id == id)?;
        Some(&watched.stats)
    }

    /// Drains every ring and asks every policy. `now_ns` is the caller's monotonic clock.
    pub fn scan(&mut self, now_ns: u64) -> Scanned {
        let mut scanned = Scanned::default();
        for watched in &mut self.watched {
            watched.drain(now_ns, &mut scanned);
            let Some(event) = watched.decide(now_ns, &mut scanned) else {
                continue;
            };
            if let Some(sink) = &self.events {
                // What is lost here is counted in the statistics all the same.
                let _ = record_in(&**sink, &event);
            }
        }
        scanned
    }

    /// Has every ring wake its doorbell with the next observation; false when one has some already.
    pub(super) fn fall_asleep(&self) -> bool {
        // Every ring, also behind one that refuses: rings that stay asleep cost nothing.
        let refused = self
            .watched
            .iter()
            .filter(|watched| !watched.instruments.ring().fall_asleep());
        refused.count() == 0
    }

    /// Whether a ring lies in a file.
    pub(super) fn has_files(&self) -> bool {
        let mut watched = self.watched.iter();
        watched.any(|watched| watched.instruments.ring().region().is_some())
    }
}

impl Watched {
    fn drain(&mut self, now_ns: u64, scanned: &mut Scanned) {
        let (ring, stats) = (self.instruments.ring(), &mut self.stats);
        if ring.is_inherited() {
            // What is counted there is the parent's.
            return;
        }
        let drained = ring.drain(now_ns, &mut |observation| stats.add(&observation));
        stats.add_tallied(ring.tallied());
        stats.dropped = ring.counts().dropped;
        stats.skipped += drained.skipped + drained.overtaken;
        stats.events_lost = self.instruments.events_lost();
        stats.scanned_ns = now_ns;
        scanned.is_crowded |= drained.taken >= ring.capacity().div_ceil(4);
        scanned.drained.taken += drained.taken;
        scanned.drained.skipped += drained.skipped;
        scanned.drained.overtaken += drained.overtaken;
    }

    /// Asks the policy; what there is to tell of it.
    fn decide(&mut self, now_ns: u64, scanned: &mut Scanned) -> Option<Event> {
        let header = self.instruments.header();
        let tag = header.tag();
        let (policy, stats) = (&mut self.policy, &self.stats);
        let of_this = |kind, value: u64, detail: u64| Event {
            instance: self.instruments.id(),
            pid: std::process::id(),
            value,
            detail,
            ..Event::new(kind, now_ns)
        };
        // The policy is thrown away if it panics, and the statistics are only lent.
        match catch_unwind(AssertUnwindSafe(|| policy.decide(stats, tag))) {
            // What is refused, because an operation is still inside, is decided again at the next scan.
            Ok(wanted) => {
                let wanted = wanted.filter(|wanted| *wanted != tag)?;
                header.migrate(wanted).ok()?;
                self.stats.migrations += 1;
                scanned.migrations += 1;
                Some(of_this(EventKind::Migrated, wanted.into(), tag.into()))
            }
            Err(panic) => {
                // What a panic carries, and a policy's end, may themselves panic: they are never dropped.
                std::mem::forget(panic);
                let off = std::mem::replace(&mut self.policy, Box::new(NoMigrationPolicy));
                std::mem::forget(off);
                self.stats.policies_off += 1;
                scanned.policies_off += 1;
                let panics = self.stats.policies_off;
                Some(of_this(EventKind::PolicyPanicked, panics, 0))
            }
        }
    }
}
