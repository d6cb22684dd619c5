//! When the pool harms its own workers.
//!
//! Contract: the first event is due after half of the mean interval; then the intervals are random
//! (exponential), so that work which takes longer than the mean is not killed for ever. An event that
//! found no victim stays due; missed ones are not made up for in a burst. Time and seed are arguments.

/// One kind of event.
#[derive(Debug)]
pub struct Schedule {
    interval_ns: f64,
    due_ns: u64,
    random: u64,
}

impl Schedule {
    /// `rate` events per second; none for a rate of 0.
    #[must_use]
    pub fn new(rate: f64, now_ns: u64, seed: u64) -> Option<Self> {
        let interval_ns = (rate > 0.0).then(|| 1e9 / rate)?;
        let due_ns = now_ns + (interval_ns / 2.0) as u64;
        Some(Self {
            interval_ns,
            due_ns,
            random: seed | 1,
        })
    }

    /// Whether an event is due.
    #[must_use]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.due_ns
    }

    /// The event has happened.
    pub fn done(&mut self, now_ns: u64) {
        // Xorshift; the top 53 bits are a number above 0 and at most 1.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let uniform = ((self.random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        self.due_ns = now_ns + (-uniform.ln() * self.interval_ns) as u64;
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
    fn events_are_due_at_the_rate_in_uneven_intervals() {
        assert!(Schedule::new(0.0, 0, 1).is_none());
        let mut schedule = Schedule::new(10.0, 0, 1).unwrap();
        let mut times_ms = Vec::new();
        for now_ms in 0..1_000_000 {
            if schedule.is_due(now_ms * 1_000_000) {
                schedule.done(now_ms * 1_000_000);
                times_ms.push(now_ms);
            }
        }
        assert_eq!(times_ms[0], 50);
        assert!(
            (9_000..11_000).contains(&times_ms.len()),
            "{}",
            times_ms.len()
        );
        let longest = times_ms.windows(2).map(|pair| pair[1] - pair[0]).max();
        assert!(longest > Some(500), "{longest:?}");
    }

    #[test]
    fn an_event_that_found_no_victim_stays_due_and_is_one_event() {
        let mut schedule = Schedule::new(1000.0, 0, 1).unwrap();
        let late_ns = 5_000_000_000;
        assert!(schedule.is_due(late_ns));
        schedule.done(late_ns);
        assert!(!schedule.is_due(late_ns));
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
