//! How long to wait before something that failed is tried again.
//!
//! Contract: each wait is twice the last one, up to a cap; who was healthy for a while starts anew. The
//! time is an argument.

use std::time::Duration;

/// The first wait.
pub const FIRST: Duration = Duration::from_millis(200);

/// The longest wait.
pub const LONGEST: Duration = Duration::from_secs(30);

/// Who ran for so long before it failed is taken for healthy: its failure is the first.
pub const HEALTHY: Duration = Duration::from_secs(60);

/// Failures in a row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Takes in a failure after so long a run; how long to wait before the next try.
    pub fn after_failure(&mut self, ran: Duration) -> Duration {
        if ran >= HEALTHY {
            self.failures = 0;
        }
        // Beyond 2^16 the cap has long been reached.
        let doublings = self.failures.min(16);
        self.failures = self.failures.saturating_add(1);
        FIRST.saturating_mul(1 << doublings).min(LONGEST)
    }

    /// Failures in a row, the last one included.
    #[must_use]
    pub fn failures(self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_start_anew_after_a_healthy_run() {
        let mut backoff = Backoff::default();
        let mut waits_ms = |ran| backoff.after_failure(ran).as_millis();
        let short = Duration::from_secs(1);
        let first: Vec<_> = (0..10).map(|_| waits_ms(short)).collect();
        assert_eq!(
            first,
            [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000]
        );
        assert_eq!(waits_ms(HEALTHY), 200);
        assert_eq!(waits_ms(short), 400);
        assert_eq!(backoff.failures(), 2);
    }

    #[test]
    fn any_number_of_failures_waits_no_longer_than_the_cap() {
        let mut backoff = Backoff { failures: u32::MAX };
        assert_eq!(backoff.after_failure(Duration::ZERO), LONGEST);
        assert_eq!(backoff.failures(), u32::MAX);
    }
}
