//! What an onlooker who sees everything notes, and what must never be noted.
//!
//! | never | means |
//! |---|---|
//! | two owners | two nodes, or two lives of one, stood as primary under the same epoch or sent an output of it |
//! | superseded output | the plant applied an output of an epoch below one that it had applied before, in any life of the actuator |
//! | plant went back | the plant applied an output of the same epoch and of the same or an earlier cycle |
//! | adopted went back | in one life, a node held a state of (epoch, cycle), and later one of a lower |
//! | blank takeover | a node that never held anything but its initial state replaced a primary that drives, without having been let |
//! | false checkpoint | a node sent a state under another cycle than the one that it is of |
//! | never settles | faults end, and the pair is not a primary and a qualified standby a stated number of cycles later |

use bumpless_standby::Epoch;

/// Something that must never happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Never {
    TwoOwners,
    SupersededOutput,
    PlantWentBack,
    AdoptedWentBack,
    BlankTakeover,
    FalseCheckpoint,
}

/// Notes about the past, part of the state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ghosts {
    /// Every epoch under which a node stood as primary, with the life that did.
    owners: Vec<(Epoch, u64)>,
    /// The last output that the plant applied.
    applied: (Epoch, u64),
    violated: Option<Never>,
}

impl Ghosts {
    /// Nothing has happened.
    pub fn new() -> Self {
        Self {
            owners: Vec::new(),
            applied: (Epoch::NONE, 0),
            violated: None,
        }
    }

    /// The first thing that must never happen and did.
    pub fn violated(&self) -> Option<Never> {
        self.violated
    }

    /// Epoch and cycle of the last output that the plant applied.
    pub fn applied(&self) -> (Epoch, u64) {
        self.applied
    }

    /// This life stands as primary, or sends an output, under the epoch. Says whether it is the first.
    pub fn owns(&mut self, epoch: Epoch, life: u64) -> bool {
        let known = self.owners.iter().find(|(known, _)| *known == epoch);
        match known {
            Some((_, owner)) if *owner == life => return false,
            Some(_) => self.violate(Never::TwoOwners),
            None => {
                self.owners.push((epoch, life));
                self.owners.sort_unstable();
            }
        }
        true
    }

    /// The plant applied an output. Says whether it is the first of another owner than the last one's.
    pub fn applies(&mut self, epoch: Epoch, cycle: u64) -> bool {
        let (last_epoch, last_cycle) = self.applied;
        if epoch < last_epoch {
            self.violate(Never::SupersededOutput);
        } else if epoch == last_epoch && cycle <= last_cycle {
            self.violate(Never::PlantWentBack);
        }
        self.applied = (epoch, cycle);
        last_epoch != Epoch::NONE && last_epoch.owner() != epoch.owner()
    }

    /// A node of one life held the first and now holds the second.
    pub fn adopts(&mut self, before: (Epoch, u64), after: (Epoch, u64)) {
        if after < before {
            self.violate(Never::AdoptedWentBack);
        }
    }

    /// A node sent these bytes as the state after this cycle.
    pub fn sends(&mut self, state: &[u8], cycle: u64) {
        if *state != cycle.to_le_bytes() {
            self.violate(Never::FalseCheckpoint);
        }
    }

    /// Notes it, unless something else was noted before.
    pub fn violate(&mut self, never: Never) {
        self.violated = self.violated.or(Some(never));
    }
}
