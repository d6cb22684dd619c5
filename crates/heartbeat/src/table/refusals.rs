//! Why a call on the table was refused, in words: which slot of which file, and what was found there.
//!
//! Contract: changes nothing. All of it is off the straight way of the calls.

use bumpless_substrate::region::PathState;

use super::HeartbeatTable;
use crate::error::HeartbeatError;
use crate::handle::Handle;
use crate::slot::SlotError;
use crate::unit::Unit;

impl HeartbeatTable {
    #[cold]
    pub(super) fn not_of_this_table(&self, handle: Handle) -> HeartbeatError {
        if self.guard.is_forked() {
            return self.forked();
        }
        if let Err(read_only) = self.writable() {
            return read_only;
        }
        if handle.slot() >= self.capacity() {
            let (slot, capacity) = (handle.slot(), self.capacity());
            return HeartbeatError::SlotOutOfRange { slot, capacity };
        }
        let found = "another table than the one that gave the handle".to_owned();
        HeartbeatError::StaleHandle {
            slot: handle.slot(),
            generation: handle.generation(),
            found,
        }
    }

    #[cold]
    pub(crate) fn named(
        &self,
        handle: Handle,
        unit: Option<Unit>,
        error: SlotError,
    ) -> HeartbeatError {
        let (slot, generation) = (handle.slot(), handle.generation());
        let unit = unit.map_or(0, Unit::index);
        match error {
            SlotError::Stale { found } => HeartbeatError::StaleHandle {
                slot,
                generation,
                found: format!("{found:?}"),
            },
            SlotError::Fenced => HeartbeatError::Fenced { slot, generation },
            SlotError::AlreadyMarked => HeartbeatError::AlreadyMarked { slot, unit },
            SlotError::NotMarked => HeartbeatError::NotMarked { slot, unit },
            SlotError::Contended => HeartbeatError::Contended { slot },
        }
    }

    #[cold]
    pub(crate) fn replaced(&self) -> HeartbeatError {
        let path = self.region.path().to_owned();
        match self.region.path_state() {
            Ok(PathState::Orphaned) => HeartbeatError::Orphaned { path },
            _ => HeartbeatError::Superseded { path },
        }
    }

    #[cold]
    pub(super) fn forked(&self) -> HeartbeatError {
        HeartbeatError::ForkedHandle {
            path: self.region.path().to_owned(),
        }
    }
}
