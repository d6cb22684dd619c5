//! A node as others read it: one value, made at any time.
//!
//! How it maps to what industry shows (OPC UA ServiceLevel and RedundancySupport, the states of redundant
//! controllers) is in `docs/standby.md`.

use super::Node;
use super::condition::Counts;
use super::partner::PathHealth;
use crate::checkpoint::Controller;
use crate::config::Mode;
use crate::epoch::{Epoch, NodeId};
use crate::event::{AlarmSet, Reason};
use crate::message::Standing;

/// Where a node stands, in the terms of its operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Knows of no primary.
    Init,
    /// Follows a primary, not yet able to replace it.
    Syncing,
    /// Able to take over at any cycle.
    Qualified,
    /// Drives the actuator, with a qualified partner.
    Primary,
    /// Drives the actuator, alone.
    Solo,
    /// Must not drive.
    Disqualified(Reason),
    /// Out of service.
    Maintenance,
}

/// Whether the pair survives a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Redundancy {
    /// No primary is known.
    None = 0,
    /// One node drives, nobody could replace it.
    Lost = 1,
    /// A standby is being brought up to date.
    Synchronising = 2,
    /// A primary and a qualified standby.
    Full = 3,
}

/// The partner, as it last said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartnerStatus {
    /// Which node.
    pub node: NodeId,
    /// Which life of it.
    pub incarnation: u64,
    /// Where it stands.
    pub standing: Standing,
    /// The highest epoch it knows.
    pub epoch: Epoch,
    /// Its control cycle.
    pub seq: u64,
    /// Own cycles since it was heard, up to the miss limit.
    pub silent_cycles: u32,
}

/// One node, now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Which node.
    pub node: NodeId,
    /// Which life of it.
    pub incarnation: u64,
    /// Where it stands.
    pub state: State,
    /// Its own epoch while it is primary; else the highest it knows.
    pub epoch: Epoch,
    /// Its last control cycle; `None` before the first.
    pub cycle: Option<u64>,
    /// The pair.
    pub redundancy: Redundancy,
    /// `None`: never heard.
    pub partner: Option<PartnerStatus>,
    /// Bytes of the last full checkpoint sent, of the last delta, and of the longest full one.
    pub checkpoint_len: [u32; 3],
    /// One per path.
    pub paths: Vec<PathHealth>,
    /// Alarms whose cause is there now.
    pub active_alarms: AlarmSet,
    /// Alarms that were raised since the pair was last made redundant.
    pub latched_alarms: AlarmSet,
    /// OPC UA ServiceLevel: 0 maintenance, 1 no data, 2 to 199 degraded, 200 to 255 healthy.
    pub service_level: u8,
    /// OPC UA RedundancySupport: cold 1, warm 2, hot 3.
    pub redundancy_support: u8,
    /// What was counted.
    pub counts: Counts,
}

impl<C: Controller> Node<C> {
    /// Where the node stands.
    #[must_use]
    pub fn state(&self) -> State {
        match self.standing {
            Standing::Init => State::Init,
            Standing::Syncing => State::Syncing,
            Standing::Qualified => State::Qualified,
            Standing::Primary if self.partner_is_qualified() => State::Primary,
            Standing::Primary => State::Solo,
            Standing::Suspended => State::Disqualified(Reason::ActuatorUnreachable),
            Standing::Disqualified => {
                State::Disqualified(self.reason.unwrap_or(Reason::EpochEnded))
            }
            Standing::Maintenance => State::Maintenance,
        }
    }

    /// Everything that an operator asks for.
    #[must_use]
    pub fn status(&self) -> Status {
        let condition = &self.condition.0;
        let partner = &self.partner;
        let state = self.state();
        Status {
            node: self.config.0.node,
            incarnation: self.incarnation,
            state,
            epoch: if self.is_owner() {
                self.epoch
            } else {
                self.level
            },
            cycle: self.last.map(|last| last.cycle),
            redundancy: self.redundancy(),
            partner: partner.is_known().then_some(PartnerStatus {
                node: self.config.0.partner,
                incarnation: partner.incarnation,
                standing: partner.standing,
                epoch: partner.epoch,
                seq: partner.seq,
                silent_cycles: partner.silent_cycles,
            }),
            checkpoint_len: [
                condition.full_len,
                condition.delta_len,
                condition.full_len_max,
            ],
            paths: condition.paths().to_vec(),
            active_alarms: condition.active,
            latched_alarms: condition.latched,
            service_level: service_level(state),
            redundancy_support: match self.config.0.mode {
                Mode::Cold => 1,
                Mode::Warm => 2,
                Mode::Hot => 3,
            },
            counts: condition.counts,
        }
    }

    fn redundancy(&self) -> Redundancy {
        if self.is_redundant() {
            return Redundancy::Full;
        }
        let partner_follows = self.partner.silent_cycles < self.config.0.miss_limit
            && self.partner.standing == Standing::Syncing;
        match self.standing {
            Standing::Syncing => Redundancy::Synchronising,
            Standing::Primary if partner_follows => Redundancy::Synchronising,
            Standing::Primary | Standing::Qualified | Standing::Disqualified => Redundancy::Lost,
            Standing::Init | Standing::Suspended | Standing::Maintenance => Redundancy::None,
        }
    }
}

const fn service_level(state: State) -> u8 {
    match state {
        State::Maintenance => 0,
        State::Init => 1,
        State::Syncing => 2,
        State::Disqualified(_) => 10,
        State::Qualified => 199,
        State::Solo => 200,
        State::Primary => 255,
    }
}
