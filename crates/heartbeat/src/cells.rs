//! The three lines of one slot, borrowed from the mapping.
//!
//! Contract: what the layers above decide on. They judge; this crate only keeps the words.

use crate::identity_line::IdentityLine;
use crate::slot::Slot;
use crate::verdict_line::VerdictLine;

/// The lines of one slot.
#[derive(Debug, Clone, Copy)]
pub struct SlotCells<'a> {
    /// The owner's line.
    pub slot: &'a Slot,
    /// The cold line.
    pub identity: &'a IdentityLine,
    /// The peers' line.
    pub verdict: &'a VerdictLine,
}
