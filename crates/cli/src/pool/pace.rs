//! When the next scan is due.
//!
//! Contract: one scan per period, never more to make up for lost time: the workers' lateness is
//! counted in scans, and a parent that was itself late must not blame them. Time is an argument.

/// An even pace.
#[derive(Debug)]
pub struct Pace {
    period_ns: u64,
    due_ns: u64,
}

impl Pace {
    /// Due at once, then every `period_ns`.
    pub fn new(period_ns: u64, now_ns: u64) -> Self {
        Self {
            period_ns,
            due_ns: now_ns,
        }
    }

    /// Whether it is time; then the next time is one period after this one was planned, or after now
    /// if that has passed too.
    pub fn is_due(&mut self, now_ns: u64) -> bool {
        if now_ns < self.due_ns {
            return false;
        }
        self.due_ns += self.period_ns;
        if self.due_ns <= now_ns {
            self.due_ns = now_ns + self.period_ns;
        }
        true
    }

    /// How long until it is time.
    #[must_use]
    pub fn left_ns(&self, now_ns: u64) -> u64 {
        self.due_ns.saturating_sub(now_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_caller_is_not_asked_to_catch_up() {
        let mut pace = Pace::new(10, 100);
        let due: Vec<_> = [100, 105, 111, 115, 120, 300, 301, 309, 310, 311]
            .into_iter()
            .filter(|now| pace.is_due(*now))
            .collect();
        assert_eq!(due, [100, 111, 120, 300, 310]);
        assert_eq!((pace.left_ns(312), pace.left_ns(400)), (8, 0));
    }
}
