//! Looking at an election without taking part: for people and tools.
//!
//! Contract: writes nothing, locks nothing, makes nothing, waits for nobody, and cannot be noticed. What
//! it says may be outdated when it is read; nothing is to be decided on it.

use std::sync::Arc;

use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::Region;
use bumpless_substrate::view::View;

use crate::candidacy::standing;
use crate::claiming::Electorate;
use crate::election::{Result, SharedLeaderElection};
use crate::place::{CANDIDACIES, FORMAT, LEADER, path_of};
use crate::seat::Candidate;
use crate::token::Leader;

/// How an election stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standings {
    /// How often the leadership was handed over.
    pub term: u64,
    /// Who leads; `None` while nobody does, also when the leader is gone and not replaced yet.
    pub leader: Option<Leader>,
    /// The slots of those who stand and live, the leader among them, in rising order.
    pub candidates: Vec<u32>,
}

impl SharedLeaderElection<'_> {
    /// Looks at the election of this name of a table, which may be open to look only. Cost: the file is
    /// opened and mapped, and ten loads for each candidate.
    ///
    /// # Errors
    /// [`ElectionError::Name`](crate::ElectionError::Name);
    /// [`ElectionError::Region`](crate::ElectionError::Region), also when there is none;
    /// [`ElectionError::Superseded`](crate::ElectionError::Superseded): it is over, or another table's.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("workers.tbl");
    /// # use bumpless_election::SharedLeaderElection;
    /// # use bumpless_heartbeat::HeartbeatTable;
    /// # let table = HeartbeatTable::create(&path, 64)?;
    /// # let me = table.register(std::process::id())?;
    /// SharedLeaderElection::open(&table, "compaction")?.try_claim_leadership(me)?;
    ///
    /// let observed = HeartbeatTable::open_read_only(&path)?;
    /// let standings = SharedLeaderElection::observe(&observed, "compaction")?;
    /// assert_eq!((standings.term, standings.candidates), (1, vec![0]));
    /// # Ok(()) }
    /// ```
    pub fn observe(table: &HeartbeatTable, name: &str) -> Result<Standings> {
        let region = Arc::new(Region::observe(&path_of(table, name)?, &FORMAT)?);
        let election = SharedLeaderElection {
            table,
            line: View::new(&region, LEADER, 1)?,
            candidacies: View::new(&region, CANDIDACIES, region.capacity())?,
            preempts: false,
        };
        let reign = election.line().peek();
        if reign.is_closed() || !election.line().belongs_to(table.creation_id()) {
            return Err(election.superseded());
        }
        let stands = |slot: &u32| {
            let generation = election.candidacy(*slot).and_then(standing);
            generation.is_some_and(|generation| {
                let slot = *slot;
                election.living(Candidate { slot, generation }).is_some()
            })
        };
        Ok(Standings {
            term: reign.term(),
            leader: election.living_leader(reign),
            candidates: election.slots().filter(stands).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use bumpless_heartbeat::HeartbeatTable;

    use super::*;
    use crate::error::ElectionError;

    #[test]
    fn a_look_makes_no_election_and_tells_one_of_another_table_from_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        let table = HeartbeatTable::create(&path, 4).unwrap();
        let look = |table: &HeartbeatTable| SharedLeaderElection::observe(table, "x");
        assert!(matches!(look(&table), Err(ElectionError::Region(_))));
        let me = table.register(std::process::id()).unwrap();
        let election = SharedLeaderElection::open(&table, "x").unwrap();
        election.try_claim_leadership(me).unwrap();
        let observed = HeartbeatTable::open_read_only(&path).unwrap();
        let standings = look(&observed).unwrap();
        assert_eq!(standings.leader, election.current_leader());
        election.step_down(me).unwrap();
        let standings = look(&observed).unwrap();
        assert_eq!((standings.leader, standings.candidates), (None, vec![]));
        let other = HeartbeatTable::reset(&path, 4).unwrap();
        assert!(matches!(
            look(&other),
            Err(ElectionError::Superseded { .. })
        ));
    }
}
