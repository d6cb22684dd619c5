//! The bytes of what is said: one datagram is one frame.
//!
//! Contract: [`decode`] gives back exactly what was encoded, or an error; no byte pattern makes it panic.
//! Every frame has one encoding only: bytes without meaning are zero, and anything else is refused. All
//! numbers are little-endian. A frame of another version is refused as such, whatever else is in it.
//!
//! ```text
//!   at 0        4        6      7      8         16            24             32       40
//!      ┌────────┬────────┬──────┬──────┬─────────┬─────────────┬──────────────┬────────┐
//!      │ magic  │ version│ kind │ code │ cluster │ incarnation │ epoch counter│ seq    │
//!      ├────────┴───┬────┴─┬────┴──┬───┴─────────┴─┬───────────┴──────────────┴────────┘
//!      │ epoch owner│ node │ flags │ payload length│ payload ...  │ CRC-32C │
//!      └────────────┴──────┴───────┴───────────────┴──────────────┴─────────┘
//!     40           41     42      44              48       48 + length
//! ```
//!
//! | kind | code | payload |
//! |---|---|---|
//! | 1 heartbeat | standing | program, schema, echo, held state, input digest, heard paths; part |
//! | 2 fragment | 0 | schema; part |
//! | 3 request | 0 drive, 1 probe, 2 confirm, 3 reserve | actuator; the value, for drive |
//! | 4 reply | 0 ack, 1 nack, 2 granted | actuator, level, last cycle, grant, refusal |
//! | 5 sample | 0 | the value; `incarnation` is the actuator's, `seq` the cycle, node and epoch are zero |
//!
//! `flags` are the heartbeat's, 0 in every other kind. The CRC is over everything before it. The
//! payloads, field by field: `layout.rs`, and for other languages `docs/layout.md`.

mod actuator;
mod error;
mod layout;
mod node;
mod value;

use crate::epoch::{Epoch, NodeId};
use crate::message::{Fragment, Heartbeat, Reply, Request, Sample};

pub use error::FrameError;
pub(crate) use layout::MAGIC;
pub use layout::VERSION;
pub use value::Value;

use layout::{CRC_LEN, HEADER_LEN, header};

/// A decoded frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Frame<V> {
    /// From node to node, every cycle.
    Heartbeat(Heartbeat),
    /// From node to node: a part of a large state.
    Fragment(Fragment),
    /// From a node to the actuator.
    Request(Request<V>),
    /// From the actuator to a node.
    Reply(Reply),
    /// From the plant to both nodes.
    Sample(Sample<V>),
}

const HEARTBEAT: u8 = 1;
const FRAGMENT: u8 = 2;
const REQUEST: u8 = 3;
const REPLY: u8 = 4;
const SAMPLE: u8 = 5;

/// Appends a heartbeat.
pub fn encode_heartbeat(heartbeat: &Heartbeat, bytes: &mut Vec<u8>) {
    let head = Head {
        kind: HEARTBEAT,
        code: heartbeat.standing as u8,
        flags: heartbeat.flags.0,
        cluster: heartbeat.cluster,
        node: heartbeat.node,
        incarnation: heartbeat.incarnation,
        epoch: heartbeat.epoch,
        seq: heartbeat.seq,
    };
    head.seal(bytes, |bytes| node::encode_heartbeat(heartbeat, bytes));
}

/// Appends a fragment.
pub fn encode_fragment(fragment: &Fragment, bytes: &mut Vec<u8>) {
    let head = Head {
        kind: FRAGMENT,
        code: 0,
        flags: 0,
        cluster: fragment.cluster,
        node: fragment.node,
        incarnation: fragment.incarnation,
        epoch: fragment.epoch,
        seq: fragment.seq,
    };
    head.seal(bytes, |bytes| node::encode_fragment(fragment, bytes));
}

/// Appends a request.
pub fn encode_request<V: Value>(request: &Request<V>, bytes: &mut Vec<u8>) {
    let head = Head {
        kind: REQUEST,
        code: actuator::action_code(&request.action),
        flags: 0,
        cluster: request.cluster,
        node: request.node,
        incarnation: request.incarnation,
        epoch: request.epoch,
        seq: request.seq,
    };
    head.seal(bytes, |bytes| actuator::encode_request(request, bytes));
}

/// Appends a reply.
pub fn encode_reply(reply: &Reply, bytes: &mut Vec<u8>) {
    let head = Head {
        kind: REPLY,
        code: actuator::verdict_code(&reply.verdict),
        flags: 0,
        cluster: reply.cluster,
        node: reply.node,
        incarnation: reply.incarnation,
        epoch: reply.epoch,
        seq: reply.seq,
    };
    head.seal(bytes, |bytes| actuator::encode_reply(reply, bytes));
}

/// Appends a sample.
pub fn encode_sample<V: Value>(sample: &Sample<V>, bytes: &mut Vec<u8>) {
    let head = Head {
        kind: SAMPLE,
        code: 0,
        flags: 0,
        cluster: sample.cluster,
        node: NodeId(0),
        incarnation: sample.actuator,
        epoch: Epoch::new(0, NodeId(0)),
        seq: sample.cycle,
    };
    head.seal(bytes, |bytes| sample.value.encode(bytes));
}

/// Reads one datagram.
///
/// ```
/// use bumpless_standby::frame::{Frame, decode, encode_request};
/// use bumpless_standby::message::{Action, Request};
/// use bumpless_standby::{Epoch, NodeId};
///
/// let request = Request {
///     cluster: 7,
///     node: NodeId(1),
///     incarnation: 0x5eed,
///     epoch: Epoch::new(3, NodeId(1)),
///     seq: 41,
///     actuator: 9,
///     action: Action::Drive(2.5_f64),
/// };
/// let mut bytes = Vec::new();
/// encode_request(&request, &mut bytes);
/// assert_eq!(decode(&bytes), Ok(Frame::Request(request)));
/// ```
///
/// # Errors
/// Not a frame of this version, or damaged: in this order by mark, version, length, CRC and content.
///
/// Cost: one pass over the bytes; a part of a state is copied, nothing else is allocated.
pub fn decode<V: Value>(bytes: &[u8]) -> Result<Frame<V>, FrameError> {
    let (head, payload) = Head::open(bytes)?;
    match head.kind {
        HEARTBEAT => node::decode_heartbeat(&head, payload).map(Frame::Heartbeat),
        FRAGMENT | REQUEST | REPLY | SAMPLE if head.flags != 0 => Err(unknown("flags", head.flags)),
        FRAGMENT => node::decode_fragment(&head, payload).map(Frame::Fragment),
        REQUEST => actuator::decode_request(&head, payload).map(Frame::Request),
        REPLY => actuator::decode_reply(&head, payload).map(Frame::Reply),
        SAMPLE => actuator::decode_sample(&head, payload).map(Frame::Sample),
        found => Err(unknown("kind", found)),
    }
}

/// What every frame begins with.
struct Head {
    kind: u8,
    code: u8,
    flags: u16,
    cluster: u64,
    node: NodeId,
    incarnation: u64,
    epoch: Epoch,
    seq: u64,
}

impl Head {
    /// Appends header, payload and CRC.
    fn seal(&self, bytes: &mut Vec<u8>, payload: impl FnOnce(&mut Vec<u8>)) {
        let start = bytes.len();
        let mut head = [0; HEADER_LEN];
        header::MAGIC.put(&mut head, u32::from_le_bytes(MAGIC));
        header::VERSION.put(&mut head, VERSION);
        header::KIND.put(&mut head, self.kind);
        header::CODE.put(&mut head, self.code);
        header::CLUSTER.put(&mut head, self.cluster);
        header::INCARNATION.put(&mut head, self.incarnation);
        header::EPOCH_COUNTER.put(&mut head, self.epoch.counter());
        header::SEQ.put(&mut head, self.seq);
        header::EPOCH_OWNER.put(&mut head, self.epoch.owner().0);
        header::NODE.put(&mut head, self.node.0);
        header::FLAGS.put(&mut head, self.flags);
        bytes.extend_from_slice(&head);
        payload(bytes);
        let frame = &mut bytes[start..];
        // What is longer than any datagram gets a length that no receiver takes.
        let payload_len = u32::try_from(frame.len() - HEADER_LEN).unwrap_or(u32::MAX);
        header::PAYLOAD_LEN.put(frame, payload_len);
        let crc = crc32c::crc32c(frame);
        bytes.extend_from_slice(&crc.to_le_bytes());
    }

    /// The header of an undamaged frame of this version, and its payload.
    fn open(bytes: &[u8]) -> Result<(Self, &[u8]), FrameError> {
        let too_short = FrameError::TooShort {
            found: bytes.len(),
            wanted: HEADER_LEN + CRC_LEN,
        };
        let (covered, crc) = bytes.split_last_chunk::<CRC_LEN>().ok_or(too_short)?;
        let (head, payload) = covered.split_first_chunk::<HEADER_LEN>().ok_or(too_short)?;
        let magic = header::MAGIC.get(head).to_le_bytes();
        if magic != MAGIC {
            return Err(FrameError::Magic { found: magic });
        }
        let version = header::VERSION.get(head);
        if version != VERSION {
            return Err(FrameError::Version {
                found: version,
                wanted: VERSION,
            });
        }
        let payload_len = header::PAYLOAD_LEN.get(head);
        if u32::try_from(payload.len()) != Ok(payload_len) {
            return Err(FrameError::Length {
                found: payload.len(),
                wanted: payload_len,
            });
        }
        let (found, wanted) = (crc32c::crc32c(covered), u32::from_le_bytes(*crc));
        if found != wanted {
            return Err(FrameError::Checksum { found, wanted });
        }
        let owner = NodeId(header::EPOCH_OWNER.get(head));
        let head = Self {
            kind: header::KIND.get(head),
            code: header::CODE.get(head),
            flags: header::FLAGS.get(head),
            cluster: header::CLUSTER.get(head),
            node: NodeId(header::NODE.get(head)),
            incarnation: header::INCARNATION.get(head),
            epoch: Epoch::new(header::EPOCH_COUNTER.get(head), owner),
            seq: header::SEQ.get(head),
        };
        Ok((head, payload))
    }
}

fn unknown(what: &'static str, found: impl Into<u32>) -> FrameError {
    FrameError::Unknown {
        what,
        found: found.into(),
    }
}

/// The fixed fields of a payload, and what follows them.
fn split<const LEN: usize>(payload: &[u8]) -> Result<(&[u8; LEN], &[u8]), FrameError> {
    payload
        .split_first_chunk::<LEN>()
        .ok_or(FrameError::Payload {
            found: payload.len(),
            wanted: LEN,
        })
}

/// Bytes that stand where nothing may follow.
fn check_end(rest: &[u8]) -> Result<(), FrameError> {
    if rest.is_empty() {
        Ok(())
    } else {
        Err(FrameError::Trailing { found: rest.len() })
    }
}

/// A field without meaning in this frame.
fn check_zero(what: &'static str, found: impl Into<u64>) -> Result<(), FrameError> {
    match found.into() {
        0 => Ok(()),
        found => Err(FrameError::NotZero { what, found }),
    }
}
