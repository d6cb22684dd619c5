//! The fence at the plant: it accepts one writer at a time, and never one of the past.
//!
//! Contract: an output is applied if its sender owns its epoch and the epoch is above the level, or at
//! the level with a later cycle than the last one. A new level is durable before its first output is
//! applied. Every request is answered, so that a superseded primary learns it. Between outputs the last
//! one is held.
//!
//! ```text
//!   no memory ──▶ Unclaimed ── both nodes confirm, or commission() ──▶ Claimed(level)
//!                                                                        │ Drive, epoch > level:
//!   memory ──────────────────────────────────────────────▶ Claimed ◀─────┘ save, then apply
//! ```
//!
//! An actuator without its memory accepts nothing: any epoch could be the one of a primary that was
//! superseded. Each node then tells the highest epoch that it knows; every epoch that ever drove belongs
//! to one of the two, so above both nothing has driven.

use thiserror::Error;

use crate::epoch::{Epoch, NodeId};
use crate::message::{Action, Refusal, Reply, Request, Verdict};
use crate::persist::{Store, StoreError};
use crate::unhashed::Unhashed;

/// What an actuator must know about its pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ActuatorConfig {
    /// Names the pair; requests of others are not answered.
    pub cluster: u64,
    /// The two nodes.
    pub nodes: [NodeId; 2],
    /// Further than this above the level, an epoch is refused, unless it was granted here.
    pub epoch_jump_max: u64,
}

/// The last accepted output.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held<V> {
    /// What the plant gets, until the next one.
    pub value: V,
    /// Under which epoch.
    pub epoch: Epoch,
    /// Of which cycle.
    pub seq: u64,
    /// When it was accepted; unit: ns of the caller's clock.
    pub at_ns: u64,
}

/// Why an actuator was not commissioned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommissionError {
    /// Nobody could ever drive again.
    #[error(
        "level {found} leaves no epoch above it, wanted a counter below {}",
        Epoch::COUNTER_MAX
    )]
    NothingAbove {
        /// As asked.
        found: Epoch,
    },
    /// It is not durable.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How many requests of each kind there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ActuatorCounts {
    /// Outputs applied.
    pub accepted: u64,
    /// Outputs refused, for any reason.
    pub refused: u64,
    /// Of those, outputs of an epoch below the level.
    pub stale: u64,
    /// Requests of another cluster, or of a node that is not of the pair.
    pub foreign: u64,
    /// Levels that could not be made durable.
    pub not_durable: u64,
}

/// The fence and the value behind it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Actuator<V> {
    config: ActuatorConfig,
    incarnation: u64,
    is_claimed: bool,
    level: Epoch,
    /// `None`: nothing was accepted under `level` in this life.
    last_seq: Option<u64>,
    granted_counter: u64,
    /// The last grant to each node of the pair: a repeated question gets the same answer.
    grants: [Option<(u64, Epoch)>; 2],
    confirmed: [Option<Epoch>; 2],
    held: Option<Held<V>>,
    idle_since_ns: u64,
    counts: Unhashed<ActuatorCounts>,
}

const RECORD_LEN: usize = 17;

impl<V: Clone> Actuator<V> {
    /// Starts with what `store` remembers; `incarnation` is random, not 0, and new at each start.
    ///
    /// # Errors
    /// The store cannot be read, or holds something else.
    pub fn start(
        config: ActuatorConfig,
        incarnation: u64,
        now_ns: u64,
        store: &mut impl Store,
    ) -> Result<Self, StoreError> {
        let record = match store.load()? {
            None => None,
            Some(bytes) => Some(
                decode_record(&bytes).ok_or_else(|| StoreError::malformed(&bytes, RECORD_LEN))?,
            ),
        };
        let (level, granted_counter) = record.unwrap_or((Epoch::NONE, 0));
        Ok(Self {
            config,
            incarnation,
            is_claimed: record.is_some(),
            level,
            last_seq: None,
            granted_counter,
            grants: [None; 2],
            confirmed: [None; 2],
            held: None,
            idle_since_ns: now_ns,
            counts: Unhashed::default(),
        })
    }

    /// An operator vouches that nothing above `level` drives: an actuator without memory accepts outputs
    /// from then on.
    ///
    /// # Errors
    /// No epoch is left above the level, or it could not be made durable; nothing has changed.
    pub fn commission(
        &mut self,
        level: Epoch,
        store: &mut impl Store,
    ) -> Result<(), CommissionError> {
        if level.counter() >= Epoch::COUNTER_MAX {
            return Err(CommissionError::NothingAbove { found: level });
        }
        let level = level.max(self.level);
        self.save(level, self.granted_counter.max(level.counter()), store)?;
        self.is_claimed = true;
        Ok(())
    }

    /// Answers one request; `None` if it is not of this pair.
    pub fn receive(
        &mut self,
        now_ns: u64,
        request: &Request<V>,
        store: &mut impl Store,
    ) -> Option<Reply> {
        let index = self
            .config
            .nodes
            .iter()
            .position(|node| *node == request.node);
        let (Some(index), true) = (index, request.cluster == self.config.cluster) else {
            self.counts.0.foreign += 1;
            return None;
        };
        let verdict = match &request.action {
            Action::Drive(value) => self.drive(now_ns, request, value, store),
            Action::Probe if self.is_claimed => Verdict::Ack,
            Action::Probe => Verdict::Nack(Refusal::Unclaimed),
            Action::Confirm => self.confirm(index, request, store),
            Action::Reserve => self.reserve(now_ns, index, request, store),
        };
        Some(Reply {
            cluster: request.cluster,
            node: request.node,
            incarnation: request.incarnation,
            actuator: self.incarnation,
            epoch: request.epoch,
            seq: request.seq,
            level: self.level,
            last_seq: self.last_seq.unwrap_or(0),
            verdict,
        })
    }

    /// What the plant gets: the last accepted output of this life; `None` before the first.
    #[must_use]
    pub fn held(&self) -> Option<&Held<V>> {
        self.held.as_ref()
    }

    /// The highest epoch accepted.
    #[must_use]
    pub fn level(&self) -> Epoch {
        self.level
    }

    /// Whether it has its memory, or was given one.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        self.is_claimed
    }

    /// Which life of the actuator this is.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// What was counted since the start.
    #[must_use]
    pub fn counts(&self) -> ActuatorCounts {
        self.counts.0
    }

    fn drive(
        &mut self,
        now_ns: u64,
        request: &Request<V>,
        value: &V,
        store: &mut impl Store,
    ) -> Verdict {
        match self.admit(request, store) {
            Ok(()) => {
                self.last_seq = Some(request.seq);
                self.idle_since_ns = now_ns;
                self.held = Some(Held {
                    value: value.clone(),
                    epoch: request.epoch,
                    seq: request.seq,
                    at_ns: now_ns,
                });
                self.counts.0.accepted += 1;
                Verdict::Ack
            }
            Err(refusal) => {
                self.counts.0.refused += 1;
                self.counts.0.stale += u64::from(refusal == Refusal::Superseded);
                Verdict::Nack(refusal)
            }
        }
    }

    fn admit(&mut self, request: &Request<V>, store: &mut impl Store) -> Result<(), Refusal> {
        let epoch = request.epoch;
        if !self.is_claimed {
            return Err(Refusal::Unclaimed);
        }
        if epoch < self.level {
            return Err(Refusal::Superseded);
        }
        if epoch.owner() != request.node {
            return Err(Refusal::NotOwner);
        }
        if epoch > self.level {
            let is_granted = epoch.counter() <= self.granted_counter;
            if !is_granted && epoch.jumps_over(self.level, self.config.epoch_jump_max) {
                return Err(Refusal::EpochJump);
            }
            return self
                .save(epoch, self.granted_counter, store)
                .map_err(|_| Refusal::NotDurable);
        }
        match self.last_seq {
            Some(last_seq) if request.seq <= last_seq => Err(Refusal::Replayed),
            // Which cycle was the last before the restart is not known: what was sent before it, and
            // delayed, must not undo it.
            None if request.actuator != self.incarnation => Err(Refusal::Restarted),
            _ => Ok(()),
        }
    }

    fn confirm(&mut self, index: usize, request: &Request<V>, store: &mut impl Store) -> Verdict {
        if self.is_claimed {
            return Verdict::Ack;
        }
        if request.actuator != self.incarnation || request.epoch.counter() > Epoch::COUNTER_MAX {
            return Verdict::Nack(Refusal::Unclaimed);
        }
        self.confirmed[index] = Some(request.epoch);
        let [Some(one), Some(other)] = self.confirmed else {
            return Verdict::Nack(Refusal::Unclaimed);
        };
        let level = one.max(other);
        if self.save(level, level.counter(), store).is_err() {
            return Verdict::Nack(Refusal::NotDurable);
        }
        self.is_claimed = true;
        Verdict::Ack
    }

    fn reserve(
        &mut self,
        now_ns: u64,
        index: usize,
        request: &Request<V>,
        store: &mut impl Store,
    ) -> Verdict {
        if !self.is_claimed {
            return Verdict::Nack(Refusal::Unclaimed);
        }
        let above = request.epoch.max(self.level);
        let idle_ns = now_ns.saturating_sub(self.idle_since_ns);
        if let Some((incarnation, epoch)) = self.grants[index]
            && incarnation == request.incarnation
            && epoch > above
        {
            return Verdict::Granted { epoch, idle_ns };
        }
        let known = Epoch::new(self.granted_counter.max(self.level.counter()), request.node);
        if request.epoch.jumps_over(known, self.config.epoch_jump_max) {
            return Verdict::Nack(Refusal::EpochJump);
        }
        let Some(epoch) = above.next(self.granted_counter, request.node) else {
            return Verdict::Nack(Refusal::EpochJump);
        };
        if self.save(self.level, epoch.counter(), store).is_err() {
            return Verdict::Nack(Refusal::NotDurable);
        }
        self.grants[index] = Some((request.incarnation, epoch));
        Verdict::Granted { epoch, idle_ns }
    }

    /// Durable first, then in force.
    fn save(
        &mut self,
        level: Epoch,
        granted_counter: u64,
        store: &mut impl Store,
    ) -> Result<(), StoreError> {
        if let Err(error) = store.save(&encode_record(level, granted_counter)) {
            self.counts.0.not_durable += 1;
            return Err(error);
        }
        if level != self.level {
            self.last_seq = None;
        }
        self.level = level;
        self.granted_counter = granted_counter;
        Ok(())
    }
}

/// `level counter:u64 | granted counter:u64 | level owner:u8`, little-endian.
fn encode_record(level: Epoch, granted_counter: u64) -> [u8; RECORD_LEN] {
    let mut bytes = [0; RECORD_LEN];
    bytes[..8].copy_from_slice(&level.counter().to_le_bytes());
    bytes[8..16].copy_from_slice(&granted_counter.to_le_bytes());
    bytes[16] = level.owner().0;
    bytes
}

fn decode_record(bytes: &[u8]) -> Option<(Epoch, u64)> {
    let bytes: &[u8; RECORD_LEN] = bytes.try_into().ok()?;
    let (counter, rest) = bytes.split_first_chunk::<8>()?;
    let (granted, owner) = rest.split_first_chunk::<8>()?;
    let level = Epoch::new(u64::from_le_bytes(*counter), NodeId(*owner.first()?));
    let granted = u64::from_le_bytes(*granted);
    (level.counter().max(granted) <= Epoch::COUNTER_MAX).then_some((level, granted))
}
