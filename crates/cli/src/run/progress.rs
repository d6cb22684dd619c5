//! Whether the command has shown progress lately.
//!
//! Contract: pure but for a lock that nobody holds for long; the time is an argument. The start of the
//! command counts as progress. A command without a way to show progress is never late.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Until when the command is trusted.
#[derive(Debug)]
pub struct Progress {
    /// The longest time without progress; none: it is not asked for.
    within: Option<Duration>,
    trusted_until: Mutex<Instant>,
}

impl Progress {
    /// A command that starts now.
    #[must_use]
    pub fn new(within: Option<Duration>, now: Instant) -> Self {
        Self {
            within,
            trusted_until: Mutex::new(now + within.unwrap_or_default()),
        }
    }

    /// Takes in that it has shown progress.
    pub fn shown(&self, now: Instant) {
        self.trust_for(self.within.unwrap_or_default(), now);
    }

    /// Takes in that it needs so long for what it does now.
    pub fn trust_for(&self, time: Duration, now: Instant) {
        let mut until = self.lock();
        *until = (*until).max(now + time);
    }

    /// Whether it is on time.
    #[must_use]
    pub fn is_on_time(&self, now: Instant) -> bool {
        self.within.is_none() || now < *self.lock()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Instant> {
        // One word: true whoever panicked.
        self.trusted_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(5);

    #[test]
    fn who_showed_nothing_within_the_limit_is_late_until_it_shows_something() {
        let start = Instant::now();
        let progress = Progress::new(Some(LIMIT), start);
        assert!(progress.is_on_time(start + LIMIT / 2));
        assert!(!progress.is_on_time(start + LIMIT));
        progress.shown(start + LIMIT);
        assert!(progress.is_on_time(start + 2 * LIMIT - Duration::from_nanos(1)));
        assert!(!progress.is_on_time(start + 2 * LIMIT));
    }

    #[test]
    fn a_long_trust_is_not_cut_short_by_progress() {
        let start = Instant::now();
        let progress = Progress::new(Some(LIMIT), start);
        progress.trust_for(4 * LIMIT, start);
        progress.shown(start + LIMIT);
        assert!(progress.is_on_time(start + 3 * LIMIT));
        assert!(!progress.is_on_time(start + 4 * LIMIT));
    }

    #[test]
    fn who_has_no_way_to_show_progress_is_never_late() {
        let start = Instant::now();
        assert!(Progress::new(None, start).is_on_time(start + 1000 * LIMIT));
    }
}
