//! Looking at a barrier without joining: for people and tools.
//!
//! Contract: writes nothing, locks nothing, makes nothing, waits for nobody, and cannot be noticed. What
//! it says may be outdated when it is read; nothing is to be decided on it.

use std::sync::Arc;

use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::{PREAMBLE_LEN, Region};
use bumpless_substrate::view::View;

use crate::barrier::{EpochBarrier, FORMAT, WORDS, path_of};
use crate::error::BarrierError;
use crate::floor::Absent;
use crate::gate::Gate;
use crate::presence::presence;
use crate::word::ArrivalWord;

/// How a barrier stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembly {
    /// The epoch that has not been released.
    pub epoch: u64,
    /// The slots of the members that have arrived in it, in rising order.
    pub arrived: Vec<u32>,
    /// The members that have not: who is live is waited for.
    pub absent: Vec<Absent>,
}

impl EpochBarrier<'_> {
    /// Looks at the barrier of this name of a table, which may be open to look only. Cost: the file is
    /// opened and mapped, and four loads for each member.
    ///
    /// # Errors
    /// [`BarrierError::Name`]; [`BarrierError::Region`], also when there is none.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("workers.tbl");
    /// # use bumpless_barrier::EpochBarrier;
    /// # use bumpless_heartbeat::HeartbeatTable;
    /// # let table = HeartbeatTable::create(&path, 64)?;
    /// # let me = table.register(std::process::id())?;
    /// let barrier = EpochBarrier::create(&table, "phase")?;
    /// let _member = barrier.join(me)?;
    ///
    /// let observed = HeartbeatTable::open_read_only(&path)?;
    /// let assembly = EpochBarrier::observe(&observed, "phase")?;
    /// assert_eq!((assembly.epoch, assembly.arrived.len(), assembly.absent.len()), (0, 0, 1));
    /// # Ok(()) }
    /// ```
    pub fn observe(table: &HeartbeatTable, name: &str) -> Result<Assembly, BarrierError> {
        let region = Arc::new(Region::observe(&path_of(table, name)?, &FORMAT)?);
        let gate: View<Gate> = View::new(&region, PREAMBLE_LEN, 1)?;
        let words: View<ArrivalWord> = View::new(&region, WORDS, region.capacity())?;
        let epoch = gate[0].peek().epoch();
        let mut assembly = Assembly {
            epoch: epoch.number(),
            arrived: Vec::new(),
            absent: Vec::new(),
        };
        for (word, slot) in words.iter().zip(0_u32..) {
            let arrival = word.peek();
            let (Some(generation), Some(cells)) =
                (arrival.generation(), table.cells(slot as usize))
            else {
                continue;
            };
            if arrival.has_arrived_in(epoch) {
                assembly.arrived.push(slot);
            } else {
                let presence = presence(cells.slot, generation);
                assembly.absent.push(Absent {
                    slot,
                    generation,
                    presence,
                });
            }
        }
        Ok(assembly)
    }
}
