//! The crate's one error: what was tried, on which barrier or slot, the value found and the limit.

use core::fmt;
use core::time::Duration;
use std::path::PathBuf;

use bumpless_heartbeat::HeartbeatError;
use bumpless_substrate::region::RegionError;

use crate::floor::Absent;
use crate::presence::Presence;

/// Why a barrier's operation did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BarrierError {
    /// The barrier's file could not be created, mapped or removed, or is not a barrier.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The table refuses the handle: fenced, given back, inherited by a fork, or of another table.
    #[error(transparent)]
    Table(#[from] HeartbeatError),
    /// Not a barrier's name.
    #[error("barrier `{found}`: a name is 1 to {limit} of a-z, A-Z, 0-9, `-` and `_`")]
    Name {
        /// The name given.
        found: String,
        /// The most bytes of a name.
        limit: usize,
    },
    /// The handle's slot has joined already.
    #[error("{path}: slot {slot}, generation {generation}: a member already")]
    AlreadyMember {
        /// The barrier's path.
        path: PathBuf,
        /// The handle's slot.
        slot: u32,
        /// The handle's generation.
        generation: u32,
    },
    /// The member's word does not say that it is one: damaged.
    #[error("{path}: slot {slot}, generation {generation}: no member any more; found {found}")]
    NotMember {
        /// The barrier's path.
        path: PathBuf,
        /// The member's slot.
        slot: u32,
        /// The member's generation.
        generation: u32,
        /// What the word says.
        found: String,
    },
    /// A quorum is at least one member, and at most as many as the table has slots.
    #[error("{path}: quorum of {found}: it is 1 to {limit}")]
    Quorum {
        /// The barrier's path.
        path: PathBuf,
        /// The quorum asked for.
        found: usize,
        /// The table's capacity.
        limit: usize,
    },
    /// The epoch was not released in time; the arrival was taken back, and counts for nothing.
    #[error("{path}: epoch {epoch} not released within {waited:?}; absent: {}", Listed(.absent))]
    TimedOut {
        /// The barrier's path.
        path: PathBuf,
        /// The epoch in which the member had arrived.
        epoch: u64,
        /// How long it waited.
        waited: Duration,
        /// Who had not arrived by then.
        absent: Vec<Absent>,
    },
}

/// Absent members as text, at most [`SHOWN_MAX`] of them.
struct Listed<'a>(&'a [Absent]);

/// How many absent members the text names.
const SHOWN_MAX: usize = 8;

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, absent) in self.0.iter().take(SHOWN_MAX).enumerate() {
            let what = match absent.presence {
                Presence::Live => "not arrived",
                Presence::Died => "dead",
                Presence::Fenced => "fenced",
                Presence::Left => "gone",
            };
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}slot {} {what}", absent.slot)?;
        }
        match self.0.len() {
            0 => f.write_str("nobody"),
            all if all > SHOWN_MAX => write!(f, " and {} more", all - SHOWN_MAX),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_names_who_was_missing_and_not_too_many() {
        let text = |count| {
            let absent = |slot| Absent {
                slot,
                generation: 1,
                presence: if slot == 0 {
                    Presence::Died
                } else {
                    Presence::Live
                },
            };
            let error = BarrierError::TimedOut {
                path: "t.b.barrier".into(),
                epoch: 7,
                waited: Duration::from_secs(1),
                absent: (0..count).map(absent).collect(),
            };
            error.to_string()
        };
        let begin = "t.b.barrier: epoch 7 not released within 1s; absent: ";
        assert_eq!(text(0), format!("{begin}nobody"));
        assert_eq!(text(2), format!("{begin}slot 0 dead, slot 1 not arrived"));
        assert!(text(10).ends_with(", slot 7 not arrived and 2 more"));
    }
}
