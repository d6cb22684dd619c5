//! Whether a member is there: what the table's slot says of one owner of it.
//!
//! Contract: nothing but [`Presence::Live`] ever becomes another answer of the same owner, so a look
//! that found an owner gone stays true however old it is. No wait, no lock, no write.

use bumpless_heartbeat::Certificate;
use bumpless_heartbeat::slot::Slot;

/// What has become of one owner of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is registered, and nothing says that it is gone.
    Live,
    /// The kernel marked its slot, or a proof of death was found: it ended.
    Died,
    /// A watchdog took the slot from it.
    Fenced,
    /// It gave its slot back, or somebody else owns it by now. Who gave it back may not be seen at all.
    Left,
}

/// Looks at the owner of `generation`. Cost: three loads of one cache line.
#[must_use]
pub fn presence(slot: &Slot, generation: u32) -> Presence {
    // Behind the acquire load of a LIVE claim every other word is of that generation or a later one; a
    // later one says that this owner is gone, so neither fence nor mark needs a second look.
    let claim = slot.claimed_by();
    if !claim.is_live() || claim.generation() != generation {
        return Presence::Left;
    }
    if slot.certificate() == Certificate::Died {
        return Presence::Died;
    }
    match slot.peek_decision(generation) {
        Some(work) if work.is_fenced() => Presence::Fenced,
        Some(_) => Presence::Live,
        None => Presence::Left,
    }
}
