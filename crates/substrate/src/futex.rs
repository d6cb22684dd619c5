//! Sleeping on a word in shared memory, and waking who sleeps there, across processes.
//!
//! Contract: shared futexes (never the private kind, which would miss other processes). A wake is a
//! hint: the caller re-reads what it waits for, and waits with a timeout, because the process that
//! would have woken it may be dead.

use core::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;

use crate::sync::AtomicU32;

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// Somebody woke this word, or the kernel did so for no reason.
    Woken,
    /// The word did not hold the expected value: nothing was waited for.
    Changed,
    /// The time was over.
    TimedOut,
    /// A signal handler ran, or the kernel cannot wait on this word.
    Interrupted,
}

/// Sleeps while the word holds `expected`, until a wake or for at most `timeout` (None: for ever).
/// The kernel compares and sleeps in one step, so a store followed by [`wake`] is never missed.
/// Works on a mapping that may only be read.
///
/// ```
/// use bumpless_substrate::{futex::{Woken, wait}, sync::AtomicU32};
/// assert_eq!(wait(&AtomicU32::new(7), 6, None), Woken::Changed);
/// ```
pub fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> Woken {
    let timeout = timeout.map(|t| Timespec {
        // Far more than anybody waits, should the number of seconds not fit.
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX / 2),
        tv_nsec: t.subsec_nanos().into(),
    });
    match futex::wait(word, Flags::empty(), expected, timeout.as_ref()) {
        Ok(()) => Woken::Woken,
        Err(Errno::AGAIN) => Woken::Changed,
        Err(Errno::TIMEDOUT) => Woken::TimedOut,
        Err(_) => Woken::Interrupted,
    }
}

/// Wakes at most `count` sleepers of the word; returns how many. Store first, then wake.
pub fn wake(word: &AtomicU32, count: u32) -> u32 {
    // The kernel reads a signed number. It refuses none of our words, so an error means nobody.
    let count = count.min(i32::MAX.unsigned_abs());
    futex::wake(word, Flags::empty(), count).map_or(0, |woken| u32::try_from(woken).unwrap_or(0))
}
