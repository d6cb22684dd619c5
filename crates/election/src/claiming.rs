//! How a claim goes: look who leads, and if nobody does, seat the lowest who stands and lives.
//!
//! Contract: on references, with the world as an argument, so that the models run this code. A claim
//! never waits, and changes nothing while a leader lives, unless it preempts. It is bounded: each
//! attempt that fails is a change that somebody else has made.
//!
//! ```text
//!   stand ─▶ look ──▶ leader lives and stands ── lower than we, or we do not preempt ──▶ that one leads
//!             ▲                │ else
//!             └── hand over to the lowest (pid, slot) of those who stand and live
//! ```
//! The term of a hand-over is read from the seat afterwards, by another look: so it is exact also when
//! the caller stood still in the middle for however long, and if the seat has moved on, then the
//! answer is who leads now.

use bumpless_substrate::sync::AtomicU32;

use crate::candidacy::{stand, standing};
use crate::seat::{Candidate, LeaderLine, Reign};

/// How often a claim tries to hand over.
pub const CLAIM_TRIES: u32 = if cfg!(bumpless_loom) { 8 } else { 256 };

/// What a claim asks of the table and of the other candidates.
pub trait Electorate {
    /// The slots in which somebody may stand.
    fn slots(&self) -> impl Iterator<Item = u32>;

    /// The candidacy of a slot; `None` beyond the table.
    fn candidacy(&self, slot: u32) -> Option<&AtomicU32>;

    /// The process id of that owner, if it is registered, not fenced and not known to be dead.
    fn living(&self, who: Candidate) -> Option<u32>;

    /// The process id of who leads, if it lives and stands.
    fn leader(&self, reign: Reign) -> Option<(Candidate, u32)> {
        let holder = reign.holder().filter(|holder| self.stands(*holder))?;
        Some((holder, self.living(holder)?))
    }

    /// Whether that owner is a candidate.
    fn stands(&self, who: Candidate) -> bool {
        self.candidacy(who.slot).and_then(standing) == Some(who.generation)
    }
}

/// Why a claim came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The election is over.
    Closed,
    /// Nobody leads, and the caller is registered no more, or was fenced.
    NotLiving,
    /// The slot's candidacy is a later owner's.
    Outlived {
        /// The word found.
        found: u32,
    },
    /// Others changed the seat each time.
    Contended,
}

/// Stands as `me`, and sees to it that somebody leads; who does, under which pid.
///
/// # Errors
/// [`Refusal`].
pub fn claim(
    line: &LeaderLine,
    world: &impl Electorate,
    me: Candidate,
    preempts: bool,
) -> Result<(Reign, u32), Refusal> {
    let candidacy = world.candidacy(me.slot).ok_or(Refusal::NotLiving)?;
    stand(candidacy, me.generation).map_err(|found| Refusal::Outlived { found })?;
    for _ in 0..CLAIM_TRIES {
        let reign = line.look();
        if reign.is_closed() {
            return Err(Refusal::Closed);
        }
        let is_lower = |(leader, pid): (Candidate, u32)| {
            let mine = world.living(me).map(|my_pid| (my_pid, me.slot));
            mine.is_some_and(|mine| mine < (pid, leader.slot))
        };
        if let Some(leader) = world.leader(reign)
            && !(preempts && is_lower(leader))
        {
            return Ok((reign, leader.1));
        }
        let lowest = lowest(world, me).ok_or(Refusal::NotLiving)?;
        // If it fails, the next look shows why.
        let _ = line.hand_over(reign, lowest);
    }
    Err(Refusal::Contended)
}

/// The lowest of those who stand and live.
fn lowest(world: &impl Electorate, me: Candidate) -> Option<Candidate> {
    let mut lowest: Option<((u32, u32), Candidate)> = None;
    let mut consider = |slot| {
        let Some(generation) = world.candidacy(slot).and_then(standing) else {
            return;
        };
        let candidate = Candidate { slot, generation };
        let Some(pid) = world.living(candidate) else {
            return;
        };
        let order = (pid, slot);
        if lowest.is_none_or(|(lowest, _)| order < lowest) {
            lowest = Some((order, candidate));
        }
    };
    // Our own slot may not be among the hinted ones yet.
    consider(me.slot);
    world
        .slots()
        .filter(|slot| *slot != me.slot)
        .for_each(consider);
    lowest.map(|(_, candidate)| candidate)
}
