//! A tag's bytes: every field at its offset, all numbers little-endian.
//!
//! ```text
//!   at 0                                               200              256              312
//!      ┌───────────────────────────────────────────────┬────────────────┬────────────────┐
//!      │ the node, its partner, alarms, counts, writer │ path 0         │ path 1         │
//!      └───────────────────────────────────────────────┴────────────────┴────────────────┘
//! ```
//! Writer of all of it: the node, in every cycle. Readers: anybody. Units and meaning of each field:
//! `docs/layout.md`.

use bumpless_substrate::identity::ProcessIdentity;

use super::{Lateness, TagSnapshot};
use crate::epoch::{Epoch, NodeId};
use crate::event::{AlarmSet, Reason};
use crate::field::block;
use crate::message::Standing;
use crate::node::{Counts, PartnerStatus, PathHealth, Redundancy, State, Status};

/// The paths that a record has room for.
const PATHS: usize = 2;
const NODE_LEN: usize = 200;
const PATH_LEN: usize = 56;
/// Length of a record; unit: bytes.
pub const RECORD_LEN: usize = NODE_LEN + PATHS * PATH_LEN;

block! { node, NODE_LEN;
    WRITTEN_AT_NS: u64 = 0,
    INCARNATION: u64 = 8,
    CYCLE: u64 = 16,
    EPOCH_COUNTER: u64 = 24,
    PARTNER_INCARNATION: u64 = 32,
    PARTNER_EPOCH_COUNTER: u64 = 40,
    PARTNER_SEQ: u64 = 48,
    LATENESS_P99_NS: u64 = 56,
    LATENESS_MAX_NS: u64 = 64,
    START_TICKS: u64 = 72,
    PID_NAMESPACE: u64 = 80,
    TIME_NAMESPACE: u64 = 88,
    FOREIGN: u64 = 96,
    LOOPED_BACK: u64 = 104,
    IMPLAUSIBLE: u64 = 112,
    STALE: u64 = 120,
    BAD_PARTS: u64 = 128,
    REFUSED: u64 = 136,
    STATES_EQUAL: u64 = 144,
    STATES_DIFFERENT: u64 = 152,
    PID: u32 = 160,
    PARTNER_SILENT_CYCLES: u32 = 164,
    ACTIVE_ALARMS: u32 = 168,
    LATCHED_ALARMS: u32 = 172,
    FULL_LEN: u32 = 176,
    DELTA_LEN: u32 = 180,
    FULL_LEN_MAX: u32 = 184,
    NODE: u8 = 188,
    STATE: u8 = 189,
    REASON: u8 = 190,
    REDUNDANCY: u8 = 191,
    EPOCH_OWNER: u8 = 192,
    PARTNER: u8 = 193,
    PARTNER_EPOCH_OWNER: u8 = 194,
    PARTNER_STANDING: u8 = 195,
    SERVICE_LEVEL: u8 = 196,
    REDUNDANCY_SUPPORT: u8 = 197,
    PATH_COUNT: u8 = 198,
    KNOWN: u8 = 199,
}

block! { path, PATH_LEN;
    RECEIVED: u64 = 0,
    LOST: u64 = 8,
    LATE: u64 = 16,
    REPEATED: u64 = 24,
    REORDERED: u64 = 32,
    SILENT_CYCLES: u32 = 40,
    UNHEARD_CYCLES: u32 = 44,
    IS_DEGRADED: u8 = 48,
    ZERO_8: u8 = 49,
    ZERO_16: u16 = 50,
    ZERO_32: u32 = 52,
}

/// Bits of `KNOWN`: which fields that may be missing are there.
const HAS_CYCLE: u8 = 1;
const HAS_LATENESS: u8 = 2;
const HAS_PARTNER: u8 = 4;

pub fn encode(
    status: &Status,
    lateness: Option<Lateness>,
    writer: &ProcessIdentity,
    now_ns: u64,
) -> [u8; RECORD_LEN] {
    let mut bytes = [0; RECORD_LEN];
    let (head, paths) = bytes.split_at_mut(NODE_LEN);
    let mut known = 0;
    node::WRITTEN_AT_NS.put(head, now_ns);
    node::INCARNATION.put(head, status.incarnation);
    if let Some(cycle) = status.cycle {
        known |= HAS_CYCLE;
        node::CYCLE.put(head, cycle);
    }
    node::EPOCH_COUNTER.put(head, status.epoch.counter());
    node::EPOCH_OWNER.put(head, status.epoch.owner().0);
    if let Some(partner) = &status.partner {
        known |= HAS_PARTNER;
        node::PARTNER.put(head, partner.node.0);
        node::PARTNER_INCARNATION.put(head, partner.incarnation);
        node::PARTNER_EPOCH_COUNTER.put(head, partner.epoch.counter());
        node::PARTNER_EPOCH_OWNER.put(head, partner.epoch.owner().0);
        node::PARTNER_SEQ.put(head, partner.seq);
        node::PARTNER_STANDING.put(head, partner.standing as u8);
        node::PARTNER_SILENT_CYCLES.put(head, partner.silent_cycles);
    }
    if let Some(lateness) = lateness {
        known |= HAS_LATENESS;
        node::LATENESS_P99_NS.put(head, lateness.p99_ns);
        node::LATENESS_MAX_NS.put(head, lateness.max_ns);
    }
    node::PID.put(head, writer.pid);
    node::START_TICKS.put(head, writer.start_ticks);
    node::PID_NAMESPACE.put(head, writer.pid_namespace);
    node::TIME_NAMESPACE.put(head, writer.time_namespace);
    encode_counts(&status.counts, head);
    node::ACTIVE_ALARMS.put(head, status.active_alarms.bits());
    node::LATCHED_ALARMS.put(head, status.latched_alarms.bits());
    let [full_len, delta_len, full_len_max] = status.checkpoint_len;
    node::FULL_LEN.put(head, full_len);
    node::DELTA_LEN.put(head, delta_len);
    node::FULL_LEN_MAX.put(head, full_len_max);
    let (state, reason) = state_code(status.state);
    node::NODE.put(head, status.node.0);
    node::STATE.put(head, state);
    node::REASON.put(head, reason);
    node::REDUNDANCY.put(head, status.redundancy as u8);
    node::SERVICE_LEVEL.put(head, status.service_level);
    node::REDUNDANCY_SUPPORT.put(head, status.redundancy_support);
    node::PATH_COUNT.put(head, status.paths.len().min(PATHS) as u8);
    node::KNOWN.put(head, known);
    for (bytes, health) in paths.chunks_exact_mut(PATH_LEN).zip(&status.paths) {
        encode_path(health, bytes);
    }
    bytes
}

fn encode_counts(counts: &Counts, head: &mut [u8]) {
    node::FOREIGN.put(head, counts.foreign);
    node::LOOPED_BACK.put(head, counts.looped_back);
    node::IMPLAUSIBLE.put(head, counts.implausible);
    node::STALE.put(head, counts.stale);
    node::BAD_PARTS.put(head, counts.bad_parts);
    node::REFUSED.put(head, counts.refused);
    node::STATES_EQUAL.put(head, counts.states_equal);
    node::STATES_DIFFERENT.put(head, counts.states_different);
}

fn encode_path(health: &PathHealth, bytes: &mut [u8]) {
    path::RECEIVED.put(bytes, health.received);
    path::LOST.put(bytes, health.lost);
    path::LATE.put(bytes, health.late);
    path::REPEATED.put(bytes, health.repeated);
    path::REORDERED.put(bytes, health.reordered);
    path::SILENT_CYCLES.put(bytes, health.silent_cycles);
    path::UNHEARD_CYCLES.put(bytes, health.unheard_cycles);
    path::IS_DEGRADED.put(bytes, health.is_degraded.into());
}

/// `None`: no writer of this version wrote these bytes.
pub fn decode(bytes: &[u8]) -> Option<TagSnapshot> {
    let bytes: &[u8; RECORD_LEN] = bytes.try_into().ok()?;
    let (head, paths) = bytes.split_at(NODE_LEN);
    let has = |bit| node::KNOWN.get(head) & bit != 0;
    let epoch = |counter, owner| Epoch::new(counter, NodeId(owner));
    let partner = match has(HAS_PARTNER) {
        false => None,
        true => Some(PartnerStatus {
            node: NodeId(node::PARTNER.get(head)),
            incarnation: node::PARTNER_INCARNATION.get(head),
            standing: Standing::from_code(node::PARTNER_STANDING.get(head))?,
            epoch: epoch(
                node::PARTNER_EPOCH_COUNTER.get(head),
                node::PARTNER_EPOCH_OWNER.get(head),
            ),
            seq: node::PARTNER_SEQ.get(head),
            silent_cycles: node::PARTNER_SILENT_CYCLES.get(head),
        }),
    };
    let path_count = usize::from(node::PATH_COUNT.get(head));
    if path_count > PATHS {
        return None;
    }
    let status = Status {
        node: NodeId(node::NODE.get(head)),
        incarnation: node::INCARNATION.get(head),
        state: state(node::STATE.get(head), node::REASON.get(head))?,
        epoch: epoch(node::EPOCH_COUNTER.get(head), node::EPOCH_OWNER.get(head)),
        cycle: has(HAS_CYCLE).then(|| node::CYCLE.get(head)),
        redundancy: redundancy(node::REDUNDANCY.get(head))?,
        partner,
        checkpoint_len: [
            node::FULL_LEN.get(head),
            node::DELTA_LEN.get(head),
            node::FULL_LEN_MAX.get(head),
        ],
        paths: paths
            .chunks_exact(PATH_LEN)
            .take(path_count)
            .map(decode_path)
            .collect(),
        active_alarms: AlarmSet::from_bits(node::ACTIVE_ALARMS.get(head)),
        latched_alarms: AlarmSet::from_bits(node::LATCHED_ALARMS.get(head)),
        service_level: node::SERVICE_LEVEL.get(head),
        redundancy_support: node::REDUNDANCY_SUPPORT.get(head),
        counts: Counts {
            foreign: node::FOREIGN.get(head),
            looped_back: node::LOOPED_BACK.get(head),
            implausible: node::IMPLAUSIBLE.get(head),
            stale: node::STALE.get(head),
            bad_parts: node::BAD_PARTS.get(head),
            refused: node::REFUSED.get(head),
            states_equal: node::STATES_EQUAL.get(head),
            states_different: node::STATES_DIFFERENT.get(head),
        },
    };
    Some(TagSnapshot {
        status,
        lateness: has(HAS_LATENESS).then(|| Lateness {
            p99_ns: node::LATENESS_P99_NS.get(head),
            max_ns: node::LATENESS_MAX_NS.get(head),
        }),
        writer: ProcessIdentity {
            pid: node::PID.get(head),
            start_ticks: node::START_TICKS.get(head),
            pid_namespace: node::PID_NAMESPACE.get(head),
            time_namespace: node::TIME_NAMESPACE.get(head),
        },
        written_at_ns: node::WRITTEN_AT_NS.get(head),
    })
}

fn decode_path(bytes: &[u8]) -> PathHealth {
    let mut health = PathHealth::default();
    health.received = path::RECEIVED.get(bytes);
    health.lost = path::LOST.get(bytes);
    health.late = path::LATE.get(bytes);
    health.repeated = path::REPEATED.get(bytes);
    health.reordered = path::REORDERED.get(bytes);
    health.silent_cycles = path::SILENT_CYCLES.get(bytes);
    health.unheard_cycles = path::UNHEARD_CYCLES.get(bytes);
    health.is_degraded = path::IS_DEGRADED.get(bytes) != 0;
    health
}

const DISQUALIFIED: u8 = 5;

fn state_code(state: State) -> (u8, u8) {
    match state {
        State::Init => (0, 0),
        State::Syncing => (1, 0),
        State::Qualified => (2, 0),
        State::Primary => (3, 0),
        State::Solo => (4, 0),
        State::Disqualified(reason) => (DISQUALIFIED, reason as u8),
        State::Maintenance => (6, 0),
    }
}

fn state(code: u8, reason: u8) -> Option<State> {
    if code == DISQUALIFIED {
        let reasons = [
            Reason::ProgramMismatch,
            Reason::SchemaMismatch,
            Reason::BadCheckpoint,
            Reason::InputMismatch,
            Reason::NoBallot,
            Reason::ActuatorUnreachable,
            Reason::StaleCheckpoint,
            Reason::EpochEnded,
        ];
        let known = reasons.into_iter().find(|known| *known as u8 == reason);
        return known.map(State::Disqualified);
    }
    let states = [
        State::Init,
        State::Syncing,
        State::Qualified,
        State::Primary,
        State::Solo,
        State::Maintenance,
    ];
    states
        .into_iter()
        .find(|known| state_code(*known) == (code, reason))
}

fn redundancy(code: u8) -> Option<Redundancy> {
    let all = [
        Redundancy::None,
        Redundancy::Lost,
        Redundancy::Synchronising,
        Redundancy::Full,
    ];
    all.into_iter().find(|known| *known as u8 == code)
}
