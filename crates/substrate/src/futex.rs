//! Sleeping on a word in shared memory, and waking who sleeps there, across processes.
//!
//! Contract: shared futexes (never the private kind, which would miss other processes). A wake is a
//! hint: the caller re-reads what it waits for, and waits with a timeout, because the process that
//! would have woken it may be dead.

use core::time::Duration;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags, Wait, WaitFlags, WaitvFlags};
use rustix::time::{ClockId, Timespec, clock_gettime};

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
    /// A signal handler ran, or the kernel cannot wait on this word, or not on all of them.
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

/// The most words that [`wait_any`] can wait on: a limit of the kernel's.
pub const WAIT_ANY_MAX: usize = 128;

/// How long to sleep at most while words change that the kernel is not waiting on.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Sleeps until one of several words is woken or does not hold its expected value, for at most
/// `timeout`. One wake wakes one sleeper: who has seen a word change wakes the word again for the
/// others. Words beyond [`WAIT_ANY_MAX`] are not waited on.
///
/// Where the call does not exist (Linux before 5.16) or is denied, sleeps on the first word alone, for
/// at most [`LOOK_INTERVAL`], and says [`Woken::Interrupted`]: whoever calls this looks at the words.
///
/// ```
/// use bumpless_substrate::{futex::{Woken, wait_any}, sync::AtomicU32};
/// let (a, b) = (AtomicU32::new(1), AtomicU32::new(2));
/// let woken = wait_any(&[(&a, 1), (&b, 1)], std::time::Duration::from_secs(1));
/// assert_eq!(woken, Woken::Changed);
/// ```
pub fn wait_any(words: &[(&AtomicU32, u32)], timeout: Duration) -> Woken {
    let waiters: Vec<Wait> = words
        .iter()
        .take(WAIT_ANY_MAX)
        .map(|(word, expected)| {
            let mut wait = Wait::new();
            wait.val = u64::from(*expected);
            wait.uaddr = word.as_ptr().cast::<core::ffi::c_void>().into();
            wait.flags = WaitFlags::SIZE_U32;
            wait
        })
        .collect();
    // The kernel wants the moment, not the length of time.
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = now.tv_nsec + i64::from(timeout.subsec_nanos());
    let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX / 2);
    let until = Timespec {
        tv_sec: now.tv_sec.saturating_add(seconds) + nanos / 1_000_000_000,
        tv_nsec: nanos % 1_000_000_000,
    };
    let flags = WaitvFlags::empty();
    match futex::waitv(&waiters, flags, Some(&until), ClockId::Monotonic) {
        Ok(_) => Woken::Woken,
        Err(Errno::AGAIN) => Woken::Changed,
        Err(Errno::TIMEDOUT) => Woken::TimedOut,
        Err(Errno::INTR) => Woken::Interrupted,
        // Whatever the reason is, it will still be one at the next call: returning at once would make
        // a loop spin.
        Err(_) => wait_on_the_first(words, timeout.min(LOOK_INTERVAL)),
    }
}

fn wait_on_the_first(words: &[(&AtomicU32, u32)], timeout: Duration) -> Woken {
    let woken = match words.first() {
        Some((word, expected)) => wait(word, *expected, Some(timeout)),
        None => {
            std::thread::sleep(timeout);
            Woken::TimedOut
        }
    };
    match woken {
        Woken::TimedOut => Woken::Interrupted,
        woken => woken,
    }
}
