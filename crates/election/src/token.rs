//! What travels with a leader's work, and what stands at the door where the work arrives.
//!
//! Contract: a term is held by one leader, and rises. A [`Fence`] that has seen a term lets no earlier
//! one pass any more: what a late leader still does is refused, however late it learns that it is one.

use core::fmt;

use crate::error::ElectionError;

/// Who leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leader {
    /// The leader's slot in the table.
    pub slot: u32,
    /// Which owner of the slot.
    pub generation: u32,
    /// Its process id in its own pid namespace.
    pub pid: u32,
    /// Its term: how often the leadership has been handed over.
    pub term: u64,
}

/// Shows that its holder was made leader. Of two, the one of the higher term is the later leader's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaderToken {
    slot: u32,
    generation: u32,
    term: u64,
}

impl LeaderToken {
    #[cfg_attr(bumpless_loom, expect(dead_code, reason = "models make no tokens"))]
    pub(crate) const fn new(slot: u32, generation: u32, term: u64) -> Self {
        Self {
            slot,
            generation,
            term,
        }
    }

    /// The term; at least 1, and never another leader's.
    #[must_use]
    pub const fn term(self) -> u64 {
        self.term
    }

    /// The leader's slot in the table.
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.slot
    }

    /// Which owner of the slot.
    #[must_use]
    pub const fn generation(self) -> u32 {
        self.generation
    }
}

impl fmt::Display for LeaderToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            slot,
            generation,
            term,
        } = self;
        write!(f, "term {term}: slot {slot} (generation {generation})")
    }
}

/// Remembers the highest term that it has let pass, and lets no lower one pass. It belongs to whatever the
/// leader's work changes: a file, a device, another service. Keep [`highest`](Self::highest) with that,
/// and start from it.
///
/// ```
/// use bumpless_election::Fence;
/// let mut fence = Fence::remembering(6);
/// assert!(fence.admit_term(7).is_ok()); // as often as it likes
/// assert_eq!(fence.admit_term(6).unwrap_err().to_string(), "term 6 is over: 7 has been here");
/// assert_eq!(fence.highest(), 7);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fence {
    highest: u64,
}

impl Fence {
    /// A fence that nobody has passed.
    #[must_use]
    pub const fn new() -> Self {
        Self::remembering(0)
    }

    /// A fence that a leader of this term has passed.
    #[must_use]
    pub const fn remembering(highest: u64) -> Self {
        Self { highest }
    }

    /// The highest term that has passed; 0 = none. To be kept before the work of that term is done.
    #[must_use]
    pub const fn highest(&self) -> u64 {
        self.highest
    }

    /// Lets the leader of a term pass that is not over.
    ///
    /// # Errors
    /// [`ElectionError::TermOver`].
    pub fn admit(&mut self, token: &LeaderToken) -> Result<(), ElectionError> {
        self.admit_term(token.term)
    }

    /// As [`admit`](Self::admit), for a term that came as a number.
    ///
    /// # Errors
    /// [`ElectionError::TermOver`]; also for term 0, which is nobody's.
    pub fn admit_term(&mut self, term: u64) -> Result<(), ElectionError> {
        if term < self.highest || term == 0 {
            let highest = self.highest;
            return Err(ElectionError::TermOver { term, highest });
        }
        self.highest = term;
        Ok(())
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn no_term_passes_behind_a_later_one_and_term_zero_never_does() {
        let mut fence = Fence::new();
        assert!(fence.admit_term(0).is_err());
        let (early, late) = (LeaderToken::new(1, 1, 5), LeaderToken::new(2, 1, 6));
        for token in [early, early, late, late] {
            fence.admit(&token).unwrap();
        }
        let error = fence.admit(&early).unwrap_err();
        assert_eq!(error.to_string(), "term 5 is over: 6 has been here");
        let mut kept = Fence::remembering(fence.highest());
        assert!(kept.admit(&early).is_err() && kept.admit(&late).is_ok());
    }
}
