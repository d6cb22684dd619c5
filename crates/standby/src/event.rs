//! What happened, and what is wrong: events, each once; alarms, latched.

use crate::authority::AuthorityError;
use crate::checkpoint::CheckpointError;
use crate::epoch::Epoch;
use crate::message::Refusal;

/// One change, reported by the tick in which it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// This node became the primary of `epoch`.
    Promoted {
        /// The new epoch.
        epoch: Epoch,
        /// Why.
        cause: Promotion,
    },
    /// This node is no longer primary.
    Demoted {
        /// The epoch that ended.
        epoch: Epoch,
        /// Why.
        cause: Demotion,
    },
    /// The actuator did not answer within the lease: outputs stop until it does.
    Suspended {
        /// The epoch, still this node's.
        epoch: Epoch,
    },
    /// The actuator answers again and knows no higher epoch: outputs go on.
    Resumed {
        /// The epoch.
        epoch: Epoch,
    },
    /// The primary keeps its role under a higher epoch, as the level rose without another driver.
    Renewed {
        /// The new epoch.
        epoch: Epoch,
    },
    /// This standby can take over from now on.
    Qualified {
        /// The epoch that it follows.
        epoch: Epoch,
    },
    /// This standby can no longer take over.
    Disqualified {
        /// Why.
        reason: Reason,
    },
    /// The pair can no longer survive a failure.
    RedundancyLost,
    /// The pair is a primary and a qualified standby again.
    RedundancyRestored,
    /// The partner was heard for the first time, or again.
    PartnerFound {
        /// Which life of it.
        incarnation: u64,
    },
    /// The partner has been silent for `miss_limit` cycles.
    PartnerLost,
    /// The partner started anew.
    PartnerRestarted {
        /// Its new life.
        incarnation: u64,
    },
    /// A switch-over that this node asked for ended as asked.
    SwitchOver {
        /// The partner's epoch.
        epoch: Epoch,
    },
    /// A switch-over that this node asked for did not happen; this node keeps the role.
    SwitchOverFailed,
    /// The scheduled test went there and back.
    SwitchTestPassed,
    /// The scheduled test did not.
    SwitchTestFailed,
    /// The scheduled test was left out.
    SwitchTestSkipped {
        /// As the last one failed; otherwise as the pair is not redundant.
        after_failure: bool,
    },
    /// The actuator refused an output of this node.
    OutputRefused {
        /// The epoch of the output.
        epoch: Epoch,
        /// Its cycle.
        seq: u64,
        /// Why.
        refusal: Refusal,
    },
    /// A state came complete and was refused.
    CheckpointRefused {
        /// Its cycle.
        seq: u64,
        /// Why.
        error: CheckpointError,
    },
    /// No epoch could be reserved.
    NoBallot {
        /// Why.
        error: AuthorityError,
    },
    /// This node was itself not run for this long: silence before does not count.
    OwnPause {
        /// From tick to tick; unit: ns.
        gap_ns: u64,
    },
    /// The caller's cycle number did not rise: nothing was done.
    CycleRefused {
        /// As given.
        found: u64,
        /// The last one.
        last: u64,
    },
    /// A path has been silent while the partner lives.
    PathDegraded {
        /// Which: 0 or 1.
        path: u8,
    },
    /// It delivers again.
    PathRestored {
        /// Which: 0 or 1.
        path: u8,
    },
    /// An alarm was raised.
    AlarmRaised {
        /// Which.
        alarm: Alarm,
    },
}

/// Why a node became primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Promotion {
    /// The primary fell silent.
    Takeover,
    /// The primary asked for it.
    SwitchOver,
    /// Both nodes started, and this one has the better claim.
    ColdStartWithPartner,
    /// The authority knows of no output for a whole timeout.
    ColdStartByAuthority,
    /// An operator said so.
    Forced,
}

/// Why a primary stopped being one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Demotion {
    /// The partner drives under a higher epoch.
    Superseded,
    /// The actuator has accepted a higher epoch.
    Refused,
    /// It left by order.
    Left,
}

/// Why a standby must not take over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The primary runs another program.
    ProgramMismatch = 1,
    /// The primary's state has another encoding.
    SchemaMismatch = 2,
    /// A state was refused: malformed or out of range.
    BadCheckpoint = 3,
    /// The inputs differ.
    InputMismatch = 4,
    /// No epoch could be made durable.
    NoBallot = 5,
    /// The actuator does not answer.
    ActuatorUnreachable = 6,
    /// No complete checkpoint for too long.
    StaleCheckpoint = 7,
    /// The followed epoch ended.
    EpochEnded = 8,
}

/// A condition that somebody must look at. Raised with its cause, kept until the cause is gone *and* the
/// pair is redundant again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Alarm {
    /// One failure stops the plant.
    RedundancyLost = 0,
    /// Path 0 is silent.
    Path0Degraded = 1,
    /// Path 1 is silent.
    Path1Degraded = 2,
    /// Two different states for one cycle of one epoch.
    Disagree = 3,
    /// Own frames came back.
    Loopback = 4,
    /// The primary's program is another one.
    ProgramMismatch = 5,
    /// The primary's state encoding is another one.
    SchemaMismatch = 6,
    /// The two nodes read different inputs.
    InputMismatch = 7,
    /// The two nodes computed different states from equal inputs.
    StateMismatch = 8,
    /// A state was refused.
    BadCheckpoint = 9,
    /// No epoch could be made durable.
    NoBallot = 10,
    /// The actuator does not answer.
    ActuatorUnreachable = 11,
    /// An epoch beyond belief was seen.
    EpochJump = 12,
    /// The role changes too often.
    Flapping = 13,
    /// The last scheduled switch test failed.
    SwitchTestFailed = 14,
    /// The actuator lost its memory and waits for a confirmation.
    ActuatorUnclaimed = 15,
    /// A path delivers late.
    PathLate = 16,
}

/// A set of alarms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AlarmSet(u32);

impl AlarmSet {
    /// Whether this one is in it.
    #[must_use]
    pub const fn has(self, alarm: Alarm) -> bool {
        self.0 & (1 << alarm as u8) != 0
    }

    /// Whether none is.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The bits: bit n is the alarm with the value n.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set with these bits, as [`bits`](Self::bits) gives them.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(crate) const fn set(&mut self, alarm: Alarm, is_on: bool) {
        let bit = 1 << alarm as u8;
        if is_on {
            self.0 |= bit;
        } else {
            self.0 &= !bit;
        }
    }

    pub(crate) const fn keep(&mut self, other: Self) {
        self.0 &= other.0;
    }
}
