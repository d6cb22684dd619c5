//! The sidecar: one thread that drains every ring of the process, and lets the policies decide.
//!
//! Contract: the thread sleeps in the kernel while nothing is observed, and wakes with the first
//! observation. While something is, it scans at an interval, so that those who are observed make no
//! system call: 1 ms, growing to 10 ms while no ring is a quarter full. A policy that panics is switched
//! off for its instance. In a fork child there is no thread: everything here is inert, and says so.
//!
//! ```text
//!            nothing for 100 ms, and every ring says that it sleeps
//!   scanning ─────────────────────────────────────────────────────▶ asleep on the bell
//!      ▲  └─ every 1 to 10 ms                                            │
//!      └──────────── an observation, a registration, stop ───────────────┘
//! ```

mod scanner;

use core::time::Duration;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::fork_guard::ForkGuard;

pub use scanner::{InstanceId, Scanned, Scanner};

use crate::error::SidecarError;
use crate::instance::AdaptiveInstance;
use crate::policy::Policy;
use crate::ring::Doorbell;
use crate::sink::EventSink;
use crate::stats::InstanceStats;

/// The shortest interval between two scans of the thread.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The longest.
const INTERVAL_MAX: Duration = Duration::from_millis(10);

/// So many scans of the longest interval find nothing before the thread goes to sleep.
const IDLE_SCANS: u32 = 10;

/// The longest sleep: a producer may die between waking the consumer and ringing.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// The longest sleep while a ring lies in a file: other processes ring the file's bell, not this one.
const SLEEP_MAX_FILES: Duration = Duration::from_millis(100);

/// The thread, and what it watches.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl");
/// use bumpless_heartbeat::HeartbeatTable;
/// use bumpless_sidecar::{Sidecar, SidecarBox, TableOp};
///
/// let table = SidecarBox::new(HeartbeatTable::create(&path, 64)?);
/// let sidecar = Sidecar::start()?;
/// let watched = sidecar.register(&table)?; // until it is dropped
///
/// let me = table.register(std::process::id())?;
/// table.beat(me)?;
/// sidecar.scan_now()?; // or wait for the thread
/// assert_eq!(watched.stats()?.op(TableOp::Beat).count, 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Sidecar {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What thread, owner and registrations share.
#[derive(Debug)]
struct Shared {
    scanner: Mutex<Scanner>,
    bell: Arc<Doorbell>,
    stops: AtomicBool,
    /// Tested before the lock above is taken: the thread may have held it when the process forked.
    guard: ForkGuard,
}

/// An instance that is watched; dropping it ends that.
#[derive(Debug)]
pub struct Registration {
    shared: Arc<Shared>,
    id: InstanceId,
}

impl Sidecar {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`SidecarError::Thread`].
    pub fn start() -> Result<Self, SidecarError> {
        Self::start_with(Scanner::new())
    }

    /// Starts the thread, and tells changes of tags, and what happens to policies, to `sink`.
    ///
    /// # Errors
    /// [`SidecarError::Thread`].
    pub fn start_with_events(sink: Arc<dyn EventSink>) -> Result<Self, SidecarError> {
        Self::start_with(Scanner::new().with_events(sink))
    }

    fn start_with(scanner: Scanner) -> Result<Self, SidecarError> {
        let shared = Arc::new(Shared {
            scanner: Mutex::new(scanner),
            bell: Arc::default(),
            stops: AtomicBool::new(false),
            guard: ForkGuard::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = Builder::new()
            .name("bumpless-sidecar".to_owned())
            .spawn(move || of_thread.run())
            .map_err(|source: io::Error| SidecarError::Thread { source })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Watches an instance, with the policy that it makes for itself.
    ///
    /// # Errors
    /// [`SidecarError::Inert`] in a fork child.
    pub fn register(&self, instance: &impl AdaptiveInstance) -> Result<Registration, SidecarError> {
        self.register_with(instance, instance.make_policy())
    }

    /// Watches an instance with a policy of one's own.
    ///
    /// # Errors
    /// [`SidecarError::Inert`] in a fork child.
    pub fn register_with(
        &self,
        instance: &impl AdaptiveInstance,
        policy: Box<dyn Policy>,
    ) -> Result<Registration, SidecarError> {
        let id = self.shared.scanner()?.register_with(instance, policy);
        instance.ring().add_doorbell(&self.shared.bell);
        self.shared.bell.ring();
        Ok(Registration {
            shared: Arc::clone(&self.shared),
            id,
        })
    }

    /// Scans now, in the calling thread.
    ///
    /// # Errors
    /// [`SidecarError::Inert`] in a fork child.
    pub fn scan_now(&self) -> Result<Scanned, SidecarError> {
        Ok(self.shared.scanner()?.scan(monotonic_ns()))
    }

    /// Whether this is a fork child's copy, which has no thread.
    #[must_use]
    pub fn is_inert(&self) -> bool {
        self.shared.guard.is_forked()
    }

    /// Ends the thread, behind a last scan, as dropping it does.
    pub fn stop(self) {}
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        if self.is_inert() {
            // It is no thread of this process.
            std::mem::forget(thread);
            return;
        }
        // Relaxed: a flag on its own; the bell makes the thread look.
        self.shared.stops.store(true, Ordering::Relaxed);
        self.shared.bell.ring();
        if thread.thread().id() == std::thread::current().id() {
            // A policy had it: the thread ends behind this scan, and cannot wait for itself.
            return;
        }
        // It catches the panics of policies; another one is its own bug, and was printed.
        let _ = thread.join();
    }
}

impl Registration {
    /// What was observed, as of the last scan.
    ///
    /// # Errors
    /// [`SidecarError::Inert`] in a fork child.
    pub fn stats(&self) -> Result<InstanceStats, SidecarError> {
        let stats = self.shared.scanner()?.stats(self.id).cloned();
        // It is there until this is dropped.
        Ok(stats.unwrap_or_default())
    }

    /// Which instance.
    #[must_use]
    pub fn id(&self) -> InstanceId {
        self.id
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // In a fork child there is nothing to end.
        let ended = self.shared.scanner().ok();
        let ended = ended.and_then(|mut scanner| scanner.take(self.id));
        // Behind the lock: the policy's end may be that of another registration. It may panic as well.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(ended)));
    }
}

impl Shared {
    fn scanner(&self) -> Result<MutexGuard<'_, Scanner>, SidecarError> {
        if self.guard.is_forked() {
            return Err(SidecarError::Inert);
        }
        // The scanner catches what its policies do.
        Ok(self.scanner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn run(&self) {
        let mut pace = Pace::default();
        loop {
            // Before the flag: a stop between the two changes the value, so that nobody sleeps on it.
            let value = self.bell.value();
            // Relaxed: the bell's value, acquired, orders it.
            if self.stops.load(Ordering::Relaxed) {
                break;
            }
            let timeout = {
                let Ok(mut scanner) = self.scanner() else {
                    return;
                };
                let scanned = scanner.scan(monotonic_ns());
                match pace.next(&scanned) {
                    Some(interval) => interval,
                    None if !scanner.fall_asleep() => INTERVAL_MAX,
                    None if scanner.has_files() => SLEEP_MAX_FILES,
                    None => SLEEP_MAX,
                }
            };
            self.bell.wait(value, timeout);
        }
        if let Ok(mut scanner) = self.scanner() {
            scanner.scan(monotonic_ns());
        }
    }
}

/// How long the thread waits between two scans.
#[derive(Debug, Default)]
struct Pace {
    interval: Duration,
    idle_scans: u32,
}

impl Pace {
    /// The wait before the next scan; `None`: until something comes.
    fn next(&mut self, scanned: &Scanned) -> Option<Duration> {
        self.interval = if scanned.is_crowded {
            INTERVAL_MIN
        } else {
            (self.interval * 2).clamp(INTERVAL_MIN, INTERVAL_MAX)
        };
        let is_idle = scanned.drained.taken + scanned.drained.skipped == 0;
        self.idle_scans = if is_idle { self.idle_scans + 1 } else { 0 };
        (self.idle_scans < IDLE_SCANS).then_some(self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_grows_while_rings_are_nearly_empty_and_ends_in_sleep() {
        let mut pace = Pace::default();
        let mut some = Scanned::default();
        some.drained.taken = 1;
        let mut waits = |scanned: &Scanned, times: usize| {
            (0..times)
                .map(|_| pace.next(scanned).map(|wait| wait.as_millis()))
                .collect::<Vec<_>>()
        };
        assert_eq!(waits(&some, 5), [1, 2, 4, 8, 10].map(Some));
        let mut crowded = some;
        crowded.is_crowded = true;
        assert_eq!(waits(&crowded, 2), [1, 1].map(Some));
        let nothing = waits(&Scanned::default(), 11);
        assert_eq!(nothing.iter().filter(|wait| wait.is_some()).count(), 9);
        assert_eq!(nothing[9..], [None, None]);
        assert_eq!(waits(&some, 1), [Some(10)]);
    }
}
