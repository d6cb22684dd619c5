//! What lies beside a table: its elections and barriers, found by their names.

use std::path::Path;

use bumpless_barrier::{EpochBarrier, Presence};
use bumpless_election::SharedLeaderElection;
use bumpless_heartbeat::HeartbeatTable;
use serde::Serialize;

/// An election of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ElectionView {
    /// Its name.
    pub name: String,
    /// How often the leadership was handed over.
    pub term: u64,
    /// Who leads.
    pub leader: Option<LeaderView>,
    /// The slots of those who stand, the leader's among them.
    pub candidates: Vec<u32>,
}

/// A leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeaderView {
    /// Its slot.
    pub slot: u32,
    /// Which owner of the slot.
    pub generation: u32,
    /// Its process id in its own pid namespace.
    pub pid: u32,
}

/// A barrier of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BarrierView {
    /// Its name.
    pub name: String,
    /// The epoch that has not been released.
    pub epoch: u64,
    /// The slots of the members that have arrived in it.
    pub arrived: Vec<u32>,
    /// The slots of the members that are waited for.
    pub awaited: Vec<u32>,
}

/// The table's elections, by name.
pub fn elections(table: &HeartbeatTable) -> Vec<ElectionView> {
    let looked = |name: String| {
        // One that is over, or of an earlier table, is none of this one's.
        let found = SharedLeaderElection::observe(table, &name).ok()?;
        Some(ElectionView {
            name,
            term: found.term,
            leader: found.leader.map(|leader| LeaderView {
                slot: leader.slot,
                generation: leader.generation,
                pid: leader.pid,
            }),
            candidates: found.candidates,
        })
    };
    let names = names_beside(table.path(), ".election");
    names.into_iter().filter_map(looked).collect()
}

/// The table's barriers, by name.
pub fn barriers(table: &HeartbeatTable) -> Vec<BarrierView> {
    let looked = |name: String| {
        let found = EpochBarrier::observe(table, &name).ok()?;
        let live = found
            .absent
            .iter()
            .filter(|member| member.presence == Presence::Live);
        Some(BarrierView {
            name,
            epoch: found.epoch,
            arrived: found.arrived,
            awaited: live.map(|member| member.slot).collect(),
        })
    };
    let suffix = format!(".{:016x}.barrier", table.creation_id());
    let names = names_beside(table.path(), &suffix);
    names.into_iter().filter_map(looked).collect()
}

/// The NAMEs of the files `TABLE.NAME` and the suffix, sorted.
fn names_beside(table: &Path, suffix: &str) -> Vec<String> {
    let (Some(folder), Some(own)) = (table.parent(), table.file_name()) else {
        return Vec::new();
    };
    let own = format!("{}.", own.to_string_lossy());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let name = name.strip_prefix(&own)?.strip_suffix(suffix)?;
            Some(name.to_owned())
        })
        .collect();
    names.sort();
    names
}
