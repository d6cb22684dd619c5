//! A futex on which a consumer of many rings sleeps.
//!
//! Contract: who waits looks at the bell's value first, then tells its rings that it falls asleep, then
//! waits while the bell has that value: a push between the two changes it. A producer may die before it
//! rings, so waits have a timeout.

use core::time::Duration;

use bumpless_substrate::futex;
use bumpless_substrate::sync::{AtomicU32, Ordering};

/// A bell. Many rings can ring the same one.
///
/// ```
/// use core::time::Duration;
/// use std::sync::Arc;
/// use bumpless_sidecar::{Doorbell, Observation, ObservationRing};
///
/// let ring = ObservationRing::with_capacity(64);
/// let bell = Arc::new(Doorbell::new());
/// ring.add_doorbell(&bell);
/// let value = bell.value();
/// if ring.fall_asleep() {
///     assert!(ring.push(Observation::default())); // by another thread
///     bell.wait(value, Duration::from_secs(10)); // returns at once
/// }
/// assert_ne!(bell.value(), value);
/// ```
#[derive(Debug, Default)]
pub struct Doorbell(AtomicU32);

impl Doorbell {
    /// A bell that nobody has rung.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What changes when it is rung.
    #[must_use]
    pub fn value(&self) -> u32 {
        value(&self.0)
    }

    /// Rings: one addition and one system call.
    pub fn ring(&self) {
        ring(&self.0);
    }

    /// Sleeps while the bell's value is `value`, for at most `timeout`; may return earlier for no reason.
    pub fn wait(&self, value: u32, timeout: Duration) {
        // Whatever ended it, the caller looks again.
        let _ = futex::wait(&self.0, value, Some(timeout));
    }
}

pub(super) fn value(word: &AtomicU32) -> u32 {
    // Acquire pairs with the release in `ring`: who sees it rung sees what it was rung for. And the
    // release of `fall_asleep` behind it keeps it before that.
    word.load(Ordering::Acquire)
}

pub(super) fn ring(word: &AtomicU32) {
    // Release pairs with the acquire in `value`.
    word.fetch_add(1, Ordering::Release);
    let _woken = futex::wake(word, u32::MAX);
}
