//! Three ways to learn of a death, each a thread that tells what it was handed back.
//!
//! Contract: a watching thread sleeps in the kernel until the death reaches it by its own way, and
//! acknowledges what its report shows. It stamps the moment at which it knows and the moment at which
//! the report is in its hands, before it does anything else with it.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::Sender;
use std::time::Duration;

use bumpless_failover::{
    AcknowledgeError, Acknowledged, FailoverWatchdog, ReclaimReport, SlotRef, Stop,
};
use bumpless_substrate::clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

/// The watchdog's period, and the workers'.
pub const PERIOD: Duration = Duration::from_millis(10);

/// Scans that a worker may miss.
pub const GRACE_EPOCHS: u16 = 3;

/// The grace of workers whose silence is not what is measured: none is long enough.
pub const GRACE_FOR_EVER_EPOCHS: u16 = u16::MAX;

/// How a death is learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detector {
    /// From the kernel's certificate in the table.
    Robust,
    /// From a descriptor of the process.
    Pidfd,
    /// From missed beats alone.
    Beats,
}

impl Detector {
    /// All, in the order in which they take turns.
    pub const ALL: [Self; 3] = [Self::Robust, Self::Pidfd, Self::Beats];

    /// Its name in the figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Robust => "robust",
            Self::Pidfd => "pidfd",
            Self::Beats => "beats",
        }
    }
}

/// One slot in one report.
#[derive(Debug)]
pub struct Sighting {
    /// When the watching thread knew.
    pub seen_ns: u64,
    /// When the report was in its hands.
    pub handed_back_ns: u64,
    /// What the report showed.
    pub slot: SlotRef,
    /// What acknowledging it took.
    pub taken: Result<Acknowledged, AcknowledgeError>,
}

/// The shipped loop: asleep on certificates, awake at each period. For [`Detector::Robust`] and
/// [`Detector::Beats`], whose workers differ, not their watchdog.
pub fn watch_by_loop(watchdog: &FailoverWatchdog<'_>, stop: &Stop, sightings: &Sender<Sighting>) {
    watchdog.run(PERIOD, stop, |report| {
        tell(watchdog, report, report.started_ns, sightings);
    });
}

/// Asleep in `poll` on the worker's descriptor, then one scan.
///
/// # Errors
/// What the kernel answered.
pub fn watch_by_pidfd(
    watchdog: &FailoverWatchdog<'_>,
    pidfd: BorrowedFd<'_>,
    sightings: &Sender<Sighting>,
) -> Result<(), Errno> {
    let mut wait = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
    loop {
        match poll(&mut wait, None) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    let seen_ns = monotonic_ns();
    let report = watchdog.scan();
    tell(watchdog, &report, seen_ns, sightings);
    Ok(())
}

fn tell(
    watchdog: &FailoverWatchdog<'_>,
    report: &ReclaimReport,
    seen_ns: u64,
    sightings: &Sender<Sighting>,
) {
    let handed_back_ns = monotonic_ns();
    for (slot, _) in &report.dead_slots {
        let sighting = Sighting {
            seen_ns,
            handed_back_ns,
            slot: *slot,
            taken: watchdog.clear_dead_bitmap(*slot),
        };
        // Nobody listens any more when the measurement has failed.
        let _ = sightings.send(sighting);
    }
}
