//! The numbers of the cycles, on machines whose clocks began at different times.
//!
//! Contract: a number never goes back once it was used. Everybody counts by the own clock, and who hears a
//! number that is more than one ahead goes on from that one: nodes hear the plant's samples, the plant
//! hears the nodes' requests. So all three agree within a cycle, also after a restart of a machine, and
//! clocks that drift apart cost the slower one a number now and then. On one machine nothing is ever
//! raised, as nobody is ahead of the clock.
//!
//! ```text
//!   not settled ── first number heard: taken, also a far lower one ──▶ settled ──┐ more than one ahead:
//!        └──────── settle(): the own clock's ────────────────────────────▶ ▲ ────┘ raised
//! ```

/// Clocks that began together are not further apart than this; unit: cycles.
const APART_MAX: u64 = 1024;

/// What is added to the own clock's number.
///
/// ```
/// use bumpless_standby::drive::Numbering;
///
/// let mut numbering = Numbering::default();
/// numbering.hear(5_000_000, 1_200); // this machine runs for much longer than the plant's
/// assert_eq!(numbering.of(5_000_001), 1_201);
/// numbering.hear(5_000_001, 1_202); // one ahead is the same moment in another phase
/// assert_eq!(numbering.of(5_000_001), 1_201);
/// numbering.hear(5_000_001, 1_203);
/// assert_eq!(numbering.of(5_000_001), 1_203);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbering {
    /// Wraps: the others' clock may be behind.
    offset: u64,
    is_settled: bool,
}

impl Numbering {
    /// No higher number is believed: a forged one leaves room to go on.
    pub const CYCLE_MAX: u64 = 1 << 62;

    /// The number of the own clock's cycle `own`.
    #[must_use]
    pub const fn of(&self, own: u64) -> u64 {
        own.wrapping_add(self.offset)
    }

    /// Somebody is in cycle `heard`, while the own clock is in cycle `own`: read after it was heard. 0 is
    /// nobody's cycle.
    pub fn hear(&mut self, own: u64, heard: u64) {
        if heard == 0 || heard > Self::CYCLE_MAX {
            return;
        }
        let number = self.of(own);
        let is_behind = heard > number.saturating_add(1);
        let is_far_ahead = number > heard.saturating_add(APART_MAX);
        if is_behind || is_far_ahead && !self.is_settled {
            self.offset = heard.wrapping_sub(own);
        }
        self.is_settled = true;
    }

    /// From now on numbers are used: they only rise.
    pub fn settle(&mut self) {
        self.is_settled = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_never_goes_back() {
        let mut numbering = Numbering::default();
        numbering.settle();
        numbering.hear(5_000_000, 1_200);
        assert_eq!(numbering.of(5_000_000), 5_000_000);
        numbering.hear(5_000_000, 9_000_000);
        numbering.hear(5_000_001, 1_200);
        assert_eq!(numbering.of(5_000_001), 9_000_001);
    }

    #[test]
    fn clocks_that_began_together_are_left_alone_by_whoever_is_late() {
        let mut numbering = Numbering::default();
        numbering.hear(5_000_000, 5_000_000 - APART_MAX);
        assert_eq!(numbering.of(7), 7);
    }

    #[test]
    fn no_number_is_believed_that_leaves_no_room() {
        let mut numbering = Numbering::default();
        for heard in [0, Numbering::CYCLE_MAX + 1, u64::MAX] {
            numbering.hear(10, heard);
        }
        assert_eq!(numbering, Numbering::default());
        numbering.hear(10, Numbering::CYCLE_MAX);
        assert_eq!(numbering.of(11), Numbering::CYCLE_MAX + 1);
    }

    #[test]
    fn three_clocks_with_offsets_and_drift_keep_within_two_numbers() {
        // Plant and nodes; ns of each clock in a cycle of the first: 200 ppm fast, and slow.
        let mut all = [Numbering::default(); 3];
        let clock = |who: usize, at: u64| match who {
            0 => at,
            1 => 77_000_000_000 + at + at / 5_000,
            _ => 900_000_000 + at - at / 5_000,
        } / 10_000;
        let mut last = [0; 3];
        for at in (10_000_000..2_010_000_000).step_by(2_500) {
            // The plant hears the nodes, and the nodes the plant.
            for (hearer, speaker) in [(1, 0), (2, 0), (0, 1), (0, 2)] {
                let heard = all[speaker].of(clock(speaker, at));
                let own = clock(hearer, at);
                all[hearer].hear(own, heard);
            }
            let numbers = [0, 1, 2].map(|who| all[who].of(clock(who, at)));
            let (low, high) = (numbers.iter().min(), numbers.iter().max());
            assert!(
                high.zip(low).is_some_and(|(high, low)| high - low <= 2),
                "{numbers:?}"
            );
            assert!(numbers.iter().zip(last).all(|(now, last)| *now >= last));
            last = numbers;
        }
        // The fastest clock is 40 cycles ahead of the plant's: no more than that was raised.
        assert!((201_000..=201_045).contains(&last[0]), "{last:?}");
    }
}
