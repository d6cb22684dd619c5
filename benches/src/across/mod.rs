//! What takes two processes: single durations, of which the middle one, the 99th of a hundred and the longest
//! are told.
//!
//! Contract: the others are children that are this program again, in a role. They begin together, at a barrier
//! in shared memory, and die with the measurement. One that ends by itself, before its end was asked for or
//! with an error, ends the measurement with an error. A figure and its floor take turns between the same two
//! processes. Deaths are measured by the tool (`bumpless bench death`), with children of its own.
//!
//! ```text
//!   this process   start children ─ barrier ─┬─ a beat, seen by … ─┬─▶ end of the children ─▶ durations
//!                                            └── a word, seen by … ─┘
//!   a child        register ─────── barrier ─── what its role says, until it is told to end ─▶ 0
//! ```

mod death;
mod floor;
mod peer;
pub mod role;
mod seen;
mod words;
mod work;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use bumpless_heartbeat::HeartbeatTable;
use serde::Serialize;

use crate::folder::Folder;

/// How long another process is awaited.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// Durations of one thing.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Durations {
    /// Of what.
    pub what: String,
    /// How many there were.
    pub samples: usize,
    /// The middle one, in nanoseconds.
    pub p50_ns: u64,
    /// The 99th of a hundred, in nanoseconds.
    pub p99_ns: u64,
    /// The longest, in nanoseconds.
    pub max_ns: u64,
}

impl Durations {
    /// By nearest rank; zeros when there are none.
    pub(crate) fn new(what: &str, mut found_ns: Vec<u64>) -> Self {
        found_ns.sort_unstable();
        let at = |percent: usize| {
            let rank = (found_ns.len() * percent).div_ceil(100).max(1);
            found_ns.get(rank - 1).copied().unwrap_or_default()
        };
        Self {
            what: what.to_owned(),
            samples: found_ns.len(),
            p50_ns: at(50),
            p99_ns: at(99),
            max_ns: at(100),
        }
    }
}

/// A measurement across processes.
#[derive(Debug, Clone, Copy)]
pub struct Across {
    /// What a filter looks at.
    pub name: &'static str,
    /// Measures for about as long as told, with its table at that path.
    run: fn(&Path, Duration) -> Result<Vec<Durations>>,
}

/// All of them, in the order in which they are told.
pub const ALL: [Across; 7] = [
    Across {
        name: "across processes: beats, stores",
        run: |path, time| Ok(seen::measure(&table(path)?, time)?.into()),
    },
    Across {
        name: "across processes: mark, complete",
        run: |path, _| Ok(work::measure(&table(path)?)?.into()),
    },
    Across {
        name: "across processes: deaths",
        run: |_, time| Ok(death::measure(time)?.into()),
    },
    Across {
        name: "across processes: futex",
        run: |path, time| Ok(vec![floor::futex(&table(path)?, time)?]),
    },
    Across {
        name: "across processes: lock of a byte",
        run: |path, time| Ok(vec![floor::lock(path, time)?]),
    },
    Across {
        name: "across processes: UDP",
        run: |path, time| Ok(vec![floor::udp(&table(path)?, time)?]),
    },
    Across {
        name: "across processes: clock",
        run: |_, _| Ok(vec![floor::clock()]),
    },
];

impl Across {
    /// Measures for about as long as told.
    ///
    /// # Errors
    /// A child that ended by itself or does not answer, or what a table says.
    pub fn measure(&self, time: Duration) -> Result<Vec<Durations>> {
        let folder = Folder::in_memory()?;
        (self.run)(&folder.path().join("table"), time)
    }
}

fn table(path: &Path) -> Result<HeartbeatTable> {
    Ok(HeartbeatTable::create(path, 8)?)
}

/// Where the bare words beside a table lie.
fn words_of(table: &Path) -> std::path::PathBuf {
    table.with_extension("words")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_the_99th_and_the_longest_are_durations_that_were_found() {
        let found = Durations::new("it", (1..=200).rev().collect());
        assert_eq!((found.p50_ns, found.p99_ns, found.max_ns), (100, 198, 200));
        let none = Durations::new("it", Vec::new());
        assert_eq!((none.samples, none.max_ns), (0, 0));
    }
}
