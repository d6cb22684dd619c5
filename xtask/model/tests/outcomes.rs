//! What a search must have met, or it has searched nothing.

use std::sync::atomic::{AtomicU32, Ordering};

/// Something that must happen at least once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// The plant applied the first output of another owner.
    TakeoverApplied,
    /// A primary was replaced in its absence.
    Takeover,
    /// A primary handed its role over.
    SwitchOver,
    /// A primary kept its role under a higher epoch.
    Renewal,
    /// A node started the plant with its partner's consent.
    ColdStart,
    /// A node started the plant with the authority's consent.
    StartByAuthority,
    /// A node that had crashed was qualified again.
    Requalified,
    /// An output was refused.
    Refused,
    /// A primary stopped driving, as the actuator did not answer.
    Suspended,
}

/// What was met so far, by all threads of a search.
#[derive(Debug, Default)]
pub struct Outcomes(AtomicU32);

impl Outcomes {
    /// Notes it.
    pub fn note(&self, outcome: Outcome) {
        let bit = 1 << outcome as u8;
        // Relaxed: a bit that only ever gets set, read when all threads have been joined.
        if self.0.load(Ordering::Relaxed) & bit == 0 {
            self.0.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Whether it was met.
    pub fn has(&self, outcome: Outcome) -> bool {
        // Relaxed: as above.
        self.0.load(Ordering::Relaxed) & (1 << outcome as u8) != 0
    }
}
