//! What nodes say to each other and to the actuator, as values. Their bytes: [`crate::frame`].
//!
//! ```text
//!   node ── Heartbeat, every cycle, every path ──▶ node      alive, standing, level, first part of the state
//!   node ── Fragment, as many as needed ──▶ node             the rest of a large state
//!   node ── Request ──▶ actuator ── Reply ──▶ node           drive, ask, confirm
//!   actuator ── Sample, every cycle ──▶ both nodes           what the plant measured
//! ```
//!
//! `seq` is everywhere the number of the control cycle: both nodes give the same number to the cycle
//! in which they read the same inputs, and it never goes back, also not over a restart.

use crate::epoch::{Epoch, NodeId};
use crate::unhashed::Unhashed;

/// Where a node stands, as it tells its partner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Standing {
    /// Knows of no primary.
    Init = 0,
    /// Follows a primary, not yet able to replace it.
    Syncing = 1,
    /// Able to take over at any cycle.
    Qualified = 2,
    /// Drives the actuator.
    Primary = 3,
    /// Owns its epoch, and has stopped driving as the actuator does not answer.
    Suspended = 4,
    /// Follows, and must not take over.
    Disqualified = 5,
    /// Taken out of service by its operator.
    Maintenance = 6,
}

impl Standing {
    /// The one with this value.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        let all = [
            Self::Init,
            Self::Syncing,
            Self::Qualified,
            Self::Primary,
            Self::Suspended,
            Self::Disqualified,
            Self::Maintenance,
        ];
        all.into_iter().find(|standing| *standing as u8 == code)
    }
}

/// Bits of a heartbeat. Unknown bits are refused by the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// The primary asks the partner to take over with its next cycle.
    pub const TAKE_OVER: Self = Self(1);
    /// With `TAKE_OVER`: the primary stops after this cycle, whatever comes.
    pub const LEAVING: Self = Self(1 << 1);
    /// With `TAKE_OVER`: a test; the partner gives the role back after its dwell time.
    pub const TEST: Self = Self(1 << 2);
    /// The standby is the preferred node and asks for the role.
    pub const WANTS_PRIMARY: Self = Self(1 << 3);
    /// The standby cannot use deltas before it gets a full state.
    pub const NEEDS_FULL: Self = Self(1 << 4);
    /// The primary lets nobody synchronise now.
    pub const HOLD_SYNC: Self = Self(1 << 5);

    /// Every bit that has a meaning.
    pub const ALL: Self = Self((1 << 6) - 1);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// `other` if `is_set`, in addition.
    #[must_use]
    pub const fn with_if(self, other: Self, is_set: bool) -> Self {
        if is_set { self.with(other) } else { self }
    }
}

/// One per cycle and path: alive, and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Heartbeat {
    /// Which pair.
    pub cluster: u64,
    /// The sender.
    pub node: NodeId,
    /// Which life of the sender: random at each start.
    pub incarnation: u64,
    /// The highest epoch the sender knows; its own if it is `Primary` or `Suspended`.
    pub epoch: Epoch,
    /// The sender's control cycle.
    pub seq: u64,
    /// Where the sender stands.
    pub standing: Standing,
    /// Requests and conditions.
    pub flags: Flags,
    /// The sender's program.
    pub program: u64,
    /// The encoding of the sender's state.
    pub schema: u64,
    /// Digest of the inputs that the sender read in cycle `seq`.
    pub input_digest: u32,
    /// The incarnation of the receiver that the sender heard last; 0: none.
    pub echo: u64,
    /// Which state the sender holds: of which epoch, after which cycle. `(NONE, 0)`: its initial one.
    pub held: (Epoch, u64),
    /// Paths on which the sender heard the receiver in this cycle, a bit each. Only alarms depend on it.
    pub heard_paths: Unhashed<u8>,
    /// The whole state after cycle `seq`, or its change, if it fits in one frame.
    pub part: Option<Part>,
}

/// A piece of a state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Part {
    /// What the pieces make up together.
    pub kind: PartKind,
    /// Bytes of the whole that this is a piece of: the full state, or all changes of a delta.
    pub total_len: u32,
    /// Where in the whole this piece starts, in bytes.
    pub offset: u32,
    /// CRC-32C of the full encoded state, also for a delta.
    pub state_digest: u32,
    /// The piece.
    pub bytes: Vec<u8>,
}

/// What a set of parts is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// The encoded state.
    Full,
    /// What differs from the full state that was sent in cycle `base_seq` of the same epoch.
    Delta {
        /// The cycle of the full state.
        base_seq: u64,
    },
}

/// A part that did not fit in the heartbeat. It proves no liveness.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// Which pair.
    pub cluster: u64,
    /// The sender.
    pub node: NodeId,
    /// Which life of the sender.
    pub incarnation: u64,
    /// The sender's epoch.
    pub epoch: Epoch,
    /// The cycle after which the state is taken.
    pub seq: u64,
    /// The encoding of the state.
    pub schema: u64,
    /// The piece.
    pub part: Part,
}

/// What a node asks of the actuator in one cycle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Request<V> {
    /// Which pair.
    pub cluster: u64,
    /// The sender.
    pub node: NodeId,
    /// Which life of the sender.
    pub incarnation: u64,
    /// The sender's epoch.
    pub epoch: Epoch,
    /// The sender's control cycle.
    pub seq: u64,
    /// Which life of the actuator the sender heard last; 0: none. After a restart, an output of the
    /// epoch at the level is applied only if it was sent after the actuator was heard again.
    pub actuator: u64,
    /// What is asked.
    pub action: Action<V>,
}

/// What can be asked of the actuator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Action<V> {
    /// Apply this output.
    Drive(V),
    /// Tell the fence level, change nothing.
    Probe,
    /// No epoch above `epoch` is known here: said by both nodes to an actuator without memory.
    Confirm,
    /// Grant an epoch above `epoch`: the actuator as the pair's authority.
    Reserve,
}

/// The actuator's answer to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reply {
    /// Which pair.
    pub cluster: u64,
    /// Whom it answers.
    pub node: NodeId,
    /// Which life of that node.
    pub incarnation: u64,
    /// Which life of the actuator.
    pub actuator: u64,
    /// The epoch of the request.
    pub epoch: Epoch,
    /// The cycle of the request.
    pub seq: u64,
    /// The highest epoch that the actuator accepted.
    pub level: Epoch,
    /// The cycle of the last output that it accepted under `level`.
    pub last_seq: u64,
    /// The answer.
    pub verdict: Verdict,
}

/// Accepted or refused, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// ACK: the output is applied, the question answered.
    Ack,
    /// NACK.
    Nack(Refusal),
    /// This epoch is now the asking node's, for good.
    Granted {
        /// The epoch.
        epoch: Epoch,
        /// Since when no output was accepted; unit: ns.
        idle_ns: u64,
    },
}

/// Why the actuator refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Refusal {
    /// A higher epoch was accepted before.
    Superseded = 1,
    /// This cycle, or a later one, was already accepted under this epoch.
    Replayed = 2,
    /// The sender does not own the epoch.
    NotOwner = 3,
    /// Further above the level than a healthy pair can have got, or at the end of the counter.
    EpochJump = 4,
    /// The actuator lost its memory: both nodes, or the operator, must confirm an epoch first.
    Unclaimed = 5,
    /// The new level could not be made durable.
    NotDurable = 6,
    /// The actuator has restarted: the sender must have heard it since.
    Restarted = 7,
}

/// What the plant measured, told to both nodes: their input of the same cycle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sample<V> {
    /// Which pair.
    pub cluster: u64,
    /// Which life of the actuator.
    pub actuator: u64,
    /// The control cycle in which it was measured.
    pub cycle: u64,
    /// What was measured.
    pub value: V,
}

/// Something that arrived since the last cycle.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Received {
    /// From the partner, over this path (0 or 1).
    Heartbeat {
        /// Over which path.
        path: u8,
        /// The message.
        heartbeat: Heartbeat,
    },
    /// From the partner, over this path.
    Fragment {
        /// Over which path.
        path: u8,
        /// The message.
        fragment: Fragment,
    },
    /// From the actuator.
    Reply(Reply),
    /// From the authority that the node asked for an epoch.
    Grant(Result<Grant, crate::authority::AuthorityError>),
}

/// An epoch that this node may use, granted for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The epoch.
    pub epoch: Epoch,
}
