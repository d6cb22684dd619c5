//! The figures of a measurement: as a table, and as one line of JSON.

use serde::Serialize;

/// Some durations, of which the least, the middle, the 99th of a hundred and the longest are told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    min: f64,
    p50: f64,
    p99: f64,
    max: f64,
}

impl Spread {
    /// Of durations in nanoseconds, in microseconds; zeros when there are none. By nearest rank.
    pub fn of_ns(durations_ns: impl IntoIterator<Item = u64>) -> Self {
        let mut sorted: Vec<u64> = durations_ns.into_iter().collect();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).map_or(0.0, |ns| *ns as f64 / 1_000.0)
        };
        Self {
            min: at(0),
            p50: at(50),
            p99: at(99),
            max: at(100),
        }
    }

    /// A line of a table.
    pub fn row(self, name: &str) -> String {
        let Self { min, p50, p99, .. } = self;
        format!("{name:10}{min:>11.1}{p50:>11.1}{p99:>11.1}\n")
    }
}

/// What one detector did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DetectorFigures {
    /// From right before the kill until the watching thread knows, in microseconds.
    pub seen_us: Spread,
    /// From right before the kill until the units are in a report, in microseconds.
    pub handed_back_us: Spread,
}

/// What `bench death` found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeathFigures {
    /// Bytes that each killed worker had touched.
    pub rss: u64,
    /// Other live workers.
    pub others: u32,
    /// Kills for each detector.
    pub runs: u32,
    /// By death certificate.
    pub robust: DetectorFigures,
    /// By process descriptor.
    pub pidfd: DetectorFigures,
    /// By missed beats.
    pub beats: DetectorFigures,
}

impl DeathFigures {
    /// The figures for people; `load` is what the machine was doing else.
    pub fn table(&self, load: &str) -> String {
        let Self {
            rss, others, runs, ..
        } = self;
        let mut text = format!(
            "SIGKILL to seen and to handed back, in microseconds: rss {rss} bytes, {others} other \
             workers, {runs} runs each, load {load}\n\
             {:10}{:>11}{:>11}{:>11}   {:>11}{:>11}{:>11}\n",
            "", "seen min", "p50", "p99", "handed min", "p50", "p99"
        );
        for (name, figures) in [
            ("robust", &self.robust),
            ("pidfd", &self.pidfd),
            ("beats", &self.beats),
        ] {
            let (seen, handed) = (figures.seen_us, figures.handed_back_us);
            text += &format!(
                "{name:10}{:>11.1}{:>11.1}{:>11.1}   {:>11.1}{:>11.1}{:>11.1}\n",
                seen.min, seen.p50, seen.p99, handed.min, handed.p50, handed.p99
            );
        }
        text
    }
}

/// What else the machine was doing: its load average over a minute, in words.
pub fn load() -> String {
    let averages = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = averages.split(' ').next().filter(|word| !word.is_empty());
    minute.unwrap_or("unknown").to_owned()
}

/// What `bench barrier` found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BarrierFigures {
    /// Round trips in one block.
    pub rounds: u32,
    /// Blocks of each kind.
    pub blocks: u32,
    /// One round trip over a bare futex word, in microseconds, the mean of each block.
    pub futex_us: Spread,
    /// One epoch of the barrier, in microseconds, the mean of each block.
    pub barrier_us: Spread,
    /// The middle one of the barrier's blocks over that of the word's.
    pub ratio: f64,
}

impl BarrierFigures {
    /// Of the blocks' means, in nanoseconds.
    pub fn new(rounds: u32, futex_ns: &[u64], barrier_ns: &[u64]) -> Self {
        let futex_us = Spread::of_ns(futex_ns.iter().copied());
        let barrier_us = Spread::of_ns(barrier_ns.iter().copied());
        Self {
            rounds,
            blocks: futex_ns.len() as u32,
            futex_us,
            barrier_us,
            ratio: barrier_us.p50 / futex_us.p50,
        }
    }

    /// The figures for people; `load` is what the machine was doing else.
    pub fn table(&self, load: &str) -> String {
        let Self { rounds, blocks, .. } = self;
        let mut text = format!(
            "Round trip of two processes, in microseconds: {blocks} blocks of {rounds} each, load {load}\n\
             {:10}{:>9}{:>9}{:>9}\n",
            "", "min", "p50", "p99"
        );
        for (name, spread) in [("futex", self.futex_us), ("barrier", self.barrier_us)] {
            let Spread { min, p50, p99, .. } = spread;
            text += &format!("{name:10}{min:>9.2}{p50:>9.2}{p99:>9.2}\n");
        }
        text + &format!("barrier / futex, p50: {:.2}\n", self.ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_by_nearest_rank() {
        let spread = Spread::of_ns((1..=200).rev().map(|us| us * 1_000));
        let wanted = Spread {
            min: 1.0,
            p50: 100.0,
            p99: 198.0,
            max: 200.0,
        };
        assert_eq!(spread, wanted);
        let alone = Spread::of_ns([1_500]);
        assert_eq!((alone.min, alone.p50, alone.p99), (1.5, 1.5, 1.5));
        assert_eq!(Spread::of_ns([]).p99, 0.0);
    }
}
