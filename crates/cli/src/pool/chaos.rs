//! When the pool harms its own workers.
//!
//! Contract: events are due at even intervals, the first after half of one; an event that found no
//! victim stays due; missed ones are not made up for in a burst. Time is an argument.

/// One kind of event.
#[derive(Debug)]
pub struct Schedule {
    interval_ns: u64,
    due_ns: u64,
}

impl Schedule {
    /// `rate` events per second; none for a rate of 0.
    #[must_use]
    pub fn new(rate: f64, now_ns: u64) -> Option<Self> {
        let interval_ns = (rate > 0.0).then(|| (1e9 / rate) as u64)?;
        Some(Self {
            interval_ns,
            due_ns: now_ns + interval_ns / 2,
        })
    }

    /// Whether an event is due.
    #[must_use]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// The event has happened.
    pub fn done(&mut self, now_ns: u64) {
        self.due_ns = now_ns.max(self.due_ns + self.interval_ns);
        if self.due_ns == now_ns {
            self.due_ns += self.interval_ns;
        }
    }
}

/// Chooses among victims in turn, so that nobody is spared.
#[derive(Debug, Default)]
pub struct Turn(usize);

impl Turn {
    /// The next of `count` lanes for which `fits` holds, after the last one chosen.
    pub fn choose(&mut self, count: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let start = self.0 + 1;
        let chosen = (start..start + count)
            .map(|lane| lane % count)
            .find(|lane| fits(*lane))?;
        self.0 = chosen;
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_due_at_the_rate_and_never_in_bursts() {
        assert!(Schedule::new(0.0, 0).is_none());
        let mut schedule = Schedule::new(10.0, 0).unwrap();
        let mut times = Vec::new();
        for now_ms in 0..1000 {
            if schedule.is_due(now_ms * 1_000_000) {
                schedule.done(now_ms * 1_000_000);
                times.push(now_ms);
            }
        }
        assert_eq!(times, [50, 150, 250, 350, 450, 550, 650, 750, 850, 950]);
        let late = 5_000_000_000;
        assert!(schedule.is_due(late));
        schedule.done(late);
        assert!(!schedule.is_due(late + 99_000_000) && schedule.is_due(late + 100_000_000));
    }

    #[test]
    fn victims_take_turns() {
        let mut turn = Turn::default();
        let odd = |lane: usize| lane % 2 == 1;
        let chosen: Vec<_> = (0..4).map(|_| turn.choose(6, odd)).collect();
        assert_eq!(chosen, [Some(1), Some(3), Some(5), Some(1)]);
        assert_eq!(turn.choose(6, |_| false), None);
        assert_eq!(turn.choose(0, odd), None);
    }
}
