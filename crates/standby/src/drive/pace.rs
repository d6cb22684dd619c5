//! The pace of a control loop: absolute deadlines of the monotonic clock, and the number of the cycle.
//!
//! Contract: cycle `n` begins at `n` periods of the machine's monotonic clock, so all processes of a
//! machine give the same number to the same moment, also after a restart. A loop that is late skips the
//! cycles that are over; it never catches up in a burst.

use bumpless_substrate::clock::monotonic_ns;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec};

use super::Histogram;

/// One cycle's begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// The number of the cycle.
    pub cycle: u64,
    /// When it really began; unit: ns of the monotonic clock.
    pub now_ns: u64,
    /// How late that is; unit: ns.
    pub late_ns: u64,
    /// Cycles that were left out since the last one.
    pub skipped: u64,
}

/// Waits for cycle after cycle.
#[derive(Debug)]
pub struct Pace {
    period_ns: u64,
    phase_ns: u64,
    last: u64,
    lateness: Histogram,
}

impl Pace {
    /// Cycles of this length, each `phase_ns` after its multiple of the period.
    #[must_use]
    pub fn new(period_ns: u64, phase_ns: u64) -> Self {
        let period_ns = period_ns.max(1);
        let phase_ns = phase_ns % period_ns;
        Self {
            period_ns,
            phase_ns,
            last: monotonic_ns().saturating_sub(phase_ns) / period_ns,
            lateness: Histogram::default(),
        }
    }

    /// Sleeps until the next cycle begins; at once if it is late.
    pub fn await_next(&mut self) -> Beat {
        let begin_of = |cycle: u64| cycle * self.period_ns + self.phase_ns;
        let deadline_ns = begin_of(self.last + 1);
        let mut now_ns = monotonic_ns();
        while now_ns < deadline_ns {
            let deadline = Timespec {
                tv_sec: (deadline_ns / 1_000_000_000).cast_signed(),
                tv_nsec: (deadline_ns % 1_000_000_000).cast_signed(),
            };
            // A signal ends the sleep early: the clock decides.
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &deadline);
            now_ns = monotonic_ns();
        }
        let cycle = (now_ns - self.phase_ns) / self.period_ns;
        let beat = Beat {
            cycle,
            now_ns,
            late_ns: now_ns - begin_of(cycle),
            skipped: cycle - self.last - 1,
        };
        // Late is counted from the deadline that was waited for, skipped cycles included.
        self.lateness.note(now_ns - deadline_ns);
        self.last = cycle;
        beat
    }

    /// The cycle of the machine's clock, whatever the phase.
    #[must_use]
    pub fn clock_cycle(&self) -> u64 {
        monotonic_ns() / self.period_ns
    }

    /// How late every cycle began.
    #[must_use]
    pub fn lateness(&self) -> &Histogram {
        &self.lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cycle_begins_at_its_multiple_of_the_period_and_the_numbers_rise() {
        let mut pace = Pace::new(1_000_000, 300_000);
        let mut last = pace.last;
        for _ in 0..20 {
            let beat = pace.await_next();
            assert_eq!(beat.cycle, last + 1 + beat.skipped);
            assert_eq!(beat.now_ns - beat.late_ns, beat.cycle * 1_000_000 + 300_000);
            last = beat.cycle;
        }
        assert_eq!(pace.lateness().count(), 20);
    }

    #[test]
    fn a_late_loop_skips_what_is_over_and_goes_on_in_step() {
        let mut pace = Pace::new(1_000_000, 0);
        let first = pace.await_next();
        while monotonic_ns() < first.now_ns + 5_000_000 {}
        let late = pace.await_next();
        assert!(late.skipped >= 3, "{late:?}");
        assert!(late.cycle >= first.cycle + 4, "{late:?}");
        let next = pace.await_next();
        assert!(next.cycle > late.cycle);
    }
}
