//! What the figures were measured on, and what a look at the clock costs there.

use std::fs;
use std::sync::LazyLock;
use std::time::Instant;

use serde::Serialize;

/// Things to know before a figure is believed.
pub const CAVEATS: [&str; 8] = [
    "a beat alone is an L1 hit, and its figure is throughput: how many overlap, not how long one takes",
    "so are all figures of operations in a row: mark, complete, snapshot, push, drain, ticks; latency is what is done each after the last, and what is told across processes",
    "a goal is missed only by more than the spread: a large one hides a miss",
    "nanoseconds are of this run; between runs and machines only the ratios compare",
    "the mutexes are in one process, uncontended: no price for a process that dies holding one",
    "a scan's lines were just written by the same core, except where another core writes them",
    "across processes, each single duration is between two looks at the clock, and the longest are the scheduler's: a process that does not run sees nothing",
    "a tick's figure is without links, disks and clock; its inputs lie in the processor's caches",
];

/// The machine and its state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many of them there are.
    pub cores: usize,
    /// The kernel's release.
    pub kernel: String,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: String,
    /// What a look at the clock costs here, in nanoseconds.
    pub clock_ns: f64,
}

impl Machine {
    /// Looks around.
    #[must_use]
    pub fn here() -> Self {
        let first_line = |path: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            text.lines().next().unwrap_or("unknown").to_owned()
        };
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let mut models = cpuinfo
            .lines()
            .filter(|line| line.starts_with("model name"));
        let processor = models.next().and_then(|line| line.split_once(": "));
        let load = first_line("/proc/loadavg");
        Self {
            processor: processor.map_or("unknown", |(_, name)| name).to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: first_line("/proc/sys/kernel/osrelease"),
            load: load.split(' ').take(3).collect::<Vec<_>>().join(" "),
            clock_ns: clock_cost_ns(),
        }
    }
}

/// Nanoseconds between two looks at the clock with nothing in between: the middle one of many.
#[must_use]
pub fn clock_cost_ns() -> f64 {
    static COST_NS: LazyLock<f64> = LazyLock::new(|| {
        let mut found: Vec<u128> = (0..10_001)
            .map(|_| Instant::now().elapsed().as_nanos())
            .collect();
        found.sort_unstable();
        found[found.len() / 2] as f64
    });
    *COST_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_is() {
        let machine = Machine::here();
        assert!(machine.cores >= 1 && machine.clock_ns >= 1.0, "{machine:?}");
        assert_ne!(machine.kernel, "unknown");
    }
}
