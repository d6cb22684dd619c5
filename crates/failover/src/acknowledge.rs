//! Acknowledging a report: exactly what it showed, exactly once.
//!
//! Contract: each unit, each death and each notice of silence goes to exactly one acknowledgement,
//! whoever else acknowledges the same report. Units that were marked, owners that came, and deaths
//! that happened after the report are left alone. What a watchdog of an earlier term reported is
//! refused: the present one reports it again, under the same names.

use bumpless_heartbeat::{Unit, UnitSet};

use crate::lease::Lease;
use crate::report::SlotRef;
use crate::watchdog::FailoverWatchdog;

/// Why an acknowledgement took nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcknowledgeError {
    /// All that the report showed was acknowledged before.
    #[error("acknowledge {slot}: all of it was acknowledged before")]
    AlreadyAcknowledged {
        /// The slot, as its report names it.
        slot: String,
    },
    /// Another watchdog has taken over since the report.
    #[error("acknowledge {slot}: reported in term {found}, and the table is in term {wanted}")]
    StaleTerm {
        /// The slot, as its report names it.
        slot: String,
        /// The report's term.
        found: u32,
        /// The table's term.
        wanted: u32,
    },
    /// The report did not show this unit.
    #[error("acknowledge {slot}: unit {unit} is not in its report")]
    NotReported {
        /// The slot, as its report names it.
        slot: String,
        /// The unit.
        unit: Unit,
    },
    /// The report is of another table.
    #[error("acknowledge {slot}: it is of table {found:016x}, and this is {wanted:016x}")]
    OtherTable {
        /// The slot, as its report names it.
        slot: String,
        /// The creation id in the report.
        found: u64,
        /// The table's creation id.
        wanted: u64,
    },
    /// The table was opened to look only.
    #[error("acknowledge {slot}: the table was opened read-only")]
    ReadOnly {
        /// The slot, as its report names it.
        slot: String,
    },
}

/// What one acknowledgement took over; nobody else was, or will be, told the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Acknowledged {
    /// Units.
    pub units: UnitSet,
    /// Deaths.
    pub deaths: u32,
    /// That a silent owner was fenced.
    pub silence: bool,
}

impl FailoverWatchdog<'_> {
    /// Acknowledges all that the report showed of a slot: to be called when its units have been taken
    /// over, durably enough for the user's purpose. Cost: a locked CAS per work word that held units.
    ///
    /// # Errors
    /// [`AcknowledgeError`]; nothing was taken then.
    pub fn clear_dead_bitmap(&self, slot: SlotRef) -> Result<Acknowledged, AcknowledgeError> {
        self.acknowledge(slot, slot.units)
    }

    /// Acknowledges one unit of a report, and the news itself; the slot is reported again with those
    /// that are left.
    ///
    /// # Errors
    /// [`AcknowledgeError`]; the unit was not taken then.
    pub fn acknowledge_unit(
        &self,
        slot: SlotRef,
        unit: Unit,
    ) -> Result<Acknowledged, AcknowledgeError> {
        if !slot.units.contains(unit) {
            return Err(AcknowledgeError::NotReported {
                slot: slot.to_string(),
                unit,
            });
        }
        let taken = self.acknowledge(slot, UnitSet::EMPTY.with(unit))?;
        if taken.units.is_empty() {
            return Err(AcknowledgeError::AlreadyAcknowledged {
                slot: slot.to_string(),
            });
        }
        Ok(taken)
    }

    fn acknowledge(&self, slot: SlotRef, units: UnitSet) -> Result<Acknowledged, AcknowledgeError> {
        let table = self.table();
        let name = || slot.to_string();
        if table.is_read_only() {
            return Err(AcknowledgeError::ReadOnly { slot: name() });
        }
        if slot.creation_id != table.creation_id() {
            let (found, wanted) = (slot.creation_id, table.creation_id());
            return Err(AcknowledgeError::OtherTable {
                slot: name(),
                found,
                wanted,
            });
        }
        let wanted = Lease::load(&table.header().lease).term();
        if slot.term != wanted {
            return Err(AcknowledgeError::StaleTerm {
                slot: name(),
                found: slot.term,
                wanted,
            });
        }
        let Some(cells) = table.cells(slot.slot as usize) else {
            return Err(AcknowledgeError::AlreadyAcknowledged { slot: name() });
        };
        let taken = cells.slot.acknowledge(slot.generation, units);
        let deaths = cells.verdict.acknowledge(slot.deaths_recorded);
        if taken.units.is_empty() && !taken.notice && deaths == 0 {
            return Err(AcknowledgeError::AlreadyAcknowledged { slot: name() });
        }
        Ok(Acknowledged {
            units: taken.units,
            deaths,
            silence: taken.notice,
        })
    }
}
