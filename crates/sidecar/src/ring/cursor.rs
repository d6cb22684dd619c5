//! A reader's place in a ring, and for how long it has waited there.
//!
//! Contract: `delivered + overtaken + skipped` is the number of places that the cursor has gone past: no
//! record is unaccounted for.

/// How long a consumer or reader has been looking at an unfinished record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vigil {
    /// 1 + the position; 0: none.
    at: u64,
    since_ns: u64,
}

impl Vigil {
    /// Whether the record at `position` has been unfinished for `patience_ns`; begins to count at the first
    /// look at it.
    pub fn is_over(&mut self, position: u64, now_ns: u64, patience_ns: u64) -> bool {
        let at = position.wrapping_add(1);
        if self.at != at {
            *self = Self {
                at,
                since_ns: now_ns,
            };
        }
        now_ns.saturating_sub(self.since_ns) >= patience_ns
    }
}

/// Where a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    pub(super) next: u64,
    pub(super) vigil: Vigil,
    /// Records that were read.
    pub delivered: u64,
    /// Records that were overwritten before they were read.
    pub overtaken: u64,
    /// Records that nobody finished in time, or that a late producer wrote over.
    pub skipped: u64,
}

impl Cursor {
    /// In front of the record at `position`.
    #[must_use]
    pub const fn at(position: u64) -> Self {
        Self {
            next: position,
            vigil: Vigil { at: 0, since_ns: 0 },
            delivered: 0,
            overtaken: 0,
            skipped: 0,
        }
    }

    /// The position of the record that comes next.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.next
    }
}
