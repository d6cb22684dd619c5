//! The election, as its users have it.
//!
//! Contract: no call but the one that says so waits. What a call decides on can be outdated when it
//! returns, as with any look at others: so the leader's work carries its term, and whatever the work
//! changes checks that (see [`Fence`](crate::Fence)).
//!
//! ```text
//!   candidate:  try_claim_leadership ─▶ Theirs ─ wait_for_change ─┐
//!                     ▲      │                                    │
//!                     └──────┼────────────────────────────────────┘
//!                            ▼
//!   leader:                 Mine ─ { beat_as_leader ─ work with the term }* ─ step_down
//!                                         └─ None, or an error: leads no more
//! ```

use bumpless_heartbeat::{Handle, HeartbeatTable};
use bumpless_substrate::proof::Proof;
use bumpless_substrate::sync::AtomicU32;
use bumpless_substrate::view::View;

use crate::candidacy::{Life, life, withdraw};
use crate::claiming::{CLAIM_TRIES, Electorate, Refusal, claim};
use crate::error::ElectionError;
use crate::place::{self, CANDIDACIES, LEADER};
use crate::seat::{Candidate, LeaderLine, Reign};
use crate::token::{Leader, LeaderToken};

/// The result of an election's operation.
pub type Result<T> = core::result::Result<T, ElectionError>;

/// What a claim came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// The caller leads.
    Mine(LeaderToken),
    /// Somebody else does.
    Theirs(Leader),
}

/// An election among the processes that are registered in a table. `Sync`: share it by reference.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl");
/// use bumpless_election::{Fence, Leadership, SharedLeaderElection};
/// use bumpless_heartbeat::HeartbeatTable;
///
/// let table = HeartbeatTable::create(&path, 64)?;
/// let me = table.register(std::process::id())?;
/// let election = SharedLeaderElection::open(&table, "compaction")?;
///
/// let mut fence = Fence::new(); // kept by whatever the leader changes
/// let Leadership::Mine(token) = election.try_claim_leadership(me)? else {
///     unreachable!("nobody else is here");
/// };
/// fence.admit(&token)?;
/// assert_eq!(election.beat_as_leader(me)?, Some(token));
///
/// election.step_down(me)?;
/// assert_eq!(election.current_leader(), None);
/// let Leadership::Mine(next) = election.try_claim_leadership(me)? else {
///     unreachable!("nobody else is here");
/// };
/// fence.admit(&next)?;
/// assert!(fence.admit(&token).is_err()); // of an earlier term
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SharedLeaderElection<'t> {
    pub(crate) table: &'t HeartbeatTable,
    pub(crate) line: View<LeaderLine>,
    pub(crate) candidacies: View<AtomicU32>,
    pub(crate) preempts: bool,
}

impl<'t> SharedLeaderElection<'t> {
    /// The table's election of this name: made, or attached to. It lies beside the table, in
    /// `TABLE.NAME.election` (0600).
    ///
    /// # Errors
    /// [`ElectionError::Name`]; [`ElectionError::Table`] for a table that was replaced, or opened to look
    /// only; [`ElectionError::Region`].
    pub fn open(table: &'t HeartbeatTable, name: &str) -> Result<Self> {
        let region = place::open(table, name)?;
        Ok(Self {
            table,
            line: View::new(&region, LEADER, 1)?,
            candidacies: View::new(&region, CANDIDACIES, region.capacity())?,
            preempts: false,
        })
    }

    /// Makes this process's claims take the place of a live leader with a higher (pid, slot). Without it,
    /// a leader stays until it steps down, dies or is fenced.
    #[must_use]
    pub fn preempting(mut self) -> Self {
        self.preempts = true;
        self
    }

    /// The table whose registered processes stand in it.
    #[must_use]
    pub fn table(&self) -> &'t HeartbeatTable {
        self.table
    }

    /// Stands, and leads if nobody does and no candidate is lower. Whoever calls this while nobody leads
    /// makes the lowest live candidate leader. Never waits. Cost: two locked CAS (one, for who stands
    /// already; none, while somebody leads), some ten loads, and four for each other candidate.
    ///
    /// # Errors
    /// [`ElectionError::Table`]: the registration is not in force; [`ElectionError::Superseded`],
    /// [`ElectionError::Outlived`], [`ElectionError::MarkedDead`], [`ElectionError::Contended`].
    pub fn try_claim_leadership(&self, handle: Handle) -> Result<Leadership> {
        self.table.check(handle)?;
        let me = candidate(handle);
        let (reign, pid) = match claim(self.line(), self, me, self.preempts) {
            Ok(elected) => elected,
            Err(refusal) => return Err(self.refused(handle, refusal)),
        };
        Ok(match reign.holder() {
            Some(holder) if holder != me => Leadership::Theirs(leader(holder, pid, reign)),
            _ => Leadership::Mine(token(me, reign)),
        })
    }

    /// The token of the owner of `handle`, if it leads. Cost: eight loads.
    ///
    /// # Errors
    /// [`ElectionError::Table`]: the registration is not in force, and a fenced leader leads no more;
    /// [`ElectionError::Superseded`].
    pub fn am_i_leader(&self, handle: Handle) -> Result<Option<LeaderToken>> {
        self.table.check(handle)?;
        self.token_of(handle)
    }

    /// A beat in the table, and then as [`am_i_leader`](Self::am_i_leader).
    ///
    /// # Errors
    /// As [`am_i_leader`](Self::am_i_leader).
    pub fn beat_as_leader(&self, handle: Handle) -> Result<Option<LeaderToken>> {
        self.table.beat(handle)?;
        self.token_of(handle)
    }

    /// Stands no more, and leads no more; says whether it led. To be called before unregistering: a
    /// leader that just goes is noticed by those who look, and wakes nobody.
    ///
    /// # Errors
    /// [`ElectionError::Table`]: the registration is not in force, and there is nothing to give up.
    pub fn step_down(&self, handle: Handle) -> Result<bool> {
        self.table.check(handle)?;
        let me = candidate(handle);
        let Some(candidacy) = self.candidacy(me.slot) else {
            return Ok(false);
        };
        withdraw(candidacy, me.generation);
        for _ in 0..CLAIM_TRIES {
            let reign = self.line().look();
            if reign.holder() != Some(me) {
                return Ok(false);
            }
            // Fails when somebody asked to be woken, or has handed over meanwhile.
            if reign.is_closed() || self.line().vacate(reign) {
                return Ok(true);
            }
        }
        // Without its candidacy it leads nobody, whatever the seat says.
        Ok(true)
    }

    /// Who leads; `None` while nobody does, also when the leader is gone or fenced and not replaced yet.
    #[must_use]
    pub fn current_leader(&self) -> Option<Leader> {
        self.living_leader(self.line().look())
    }

    /// The term: how often the leadership was handed over. 0: nobody ever led.
    #[must_use]
    pub fn election_term(&self) -> u64 {
        self.line().look().term()
    }

    pub(crate) fn line(&self) -> &LeaderLine {
        &self.line[0]
    }

    pub(crate) fn living_leader(&self, reign: Reign) -> Option<Leader> {
        let (holder, pid) = self.leader(reign).filter(|_| !reign.is_closed())?;
        Some(leader(holder, pid, reign))
    }

    #[cold]
    pub(crate) fn superseded(&self) -> ElectionError {
        let path = self.line.region().path().to_owned();
        ElectionError::Superseded { path }
    }

    fn token_of(&self, handle: Handle) -> Result<Option<LeaderToken>> {
        let reign = self.line().look();
        if reign.is_closed() {
            return Err(self.superseded());
        }
        let me = candidate(handle);
        let leads = reign.holder() == Some(me) && self.stands(me);
        Ok(leads.then(|| token(me, reign)))
    }

    #[cold]
    fn refused(&self, handle: Handle, refusal: Refusal) -> ElectionError {
        let Candidate { slot, generation } = candidate(handle);
        match refusal {
            Refusal::Closed => self.superseded(),
            Refusal::Outlived { found } => ElectionError::Outlived {
                slot,
                generation,
                found,
            },
            Refusal::Contended => ElectionError::Contended {
                path: self.line.region().path().to_owned(),
                tries: CLAIM_TRIES,
            },
            // Most often since the check before the claim.
            Refusal::NotLiving => match self.table.check(handle) {
                Err(error) => error.into(),
                Ok(()) => ElectionError::MarkedDead { slot, generation },
            },
        }
    }
}

impl Electorate for SharedLeaderElection<'_> {
    fn slots(&self) -> impl Iterator<Item = u32> {
        self.table.occupancy().iter()
    }

    fn candidacy(&self, slot: u32) -> Option<&AtomicU32> {
        self.candidacies.get(slot as usize)
    }

    fn living(&self, who: Candidate) -> Option<u32> {
        let slot = self.table.cells(who.slot as usize)?.slot;
        match life(slot, who.generation) {
            Life::Lives { pid } => Some(pid),
            Life::Gone => None,
            Life::Unproven { pid } => {
                let claim = slot.claimed_by();
                let is_gone = self.table.examine(who.slot as usize, claim).proof == Proof::Gone;
                (claim.generation() == who.generation && !is_gone).then_some(pid)
            }
        }
    }
}

fn candidate(handle: Handle) -> Candidate {
    Candidate {
        slot: handle.slot() as u32,
        generation: handle.generation(),
    }
}

fn leader(holder: Candidate, pid: u32, reign: Reign) -> Leader {
    Leader {
        slot: holder.slot,
        generation: holder.generation,
        pid,
        term: reign.term(),
    }
}

fn token(me: Candidate, reign: Reign) -> LeaderToken {
    LeaderToken::new(me.slot, me.generation, reign.term())
}
