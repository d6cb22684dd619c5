//! Payloads between nodes: heartbeat and fragment.

use crate::epoch::{Epoch, NodeId};
use crate::message::{Flags, Fragment, Heartbeat, Part, PartKind, Standing};
use crate::unhashed::Unhashed;

use super::error::FrameError;
use super::layout::{FRAGMENT_LEN, HEARTBEAT_LEN, PART_LEN, fragment, heartbeat, part};
use super::{Head, check_end, check_zero, split, unknown};

const NO_PART: u8 = 0;
const FULL: u8 = 1;
const DELTA: u8 = 2;

pub fn encode_heartbeat(message: &Heartbeat, bytes: &mut Vec<u8>) {
    let mut fields = [0; HEARTBEAT_LEN];
    let (held_epoch, held_seq) = message.held;
    heartbeat::PROGRAM.put(&mut fields, message.program);
    heartbeat::SCHEMA.put(&mut fields, message.schema);
    heartbeat::ECHO.put(&mut fields, message.echo);
    heartbeat::HELD_COUNTER.put(&mut fields, held_epoch.counter());
    heartbeat::HELD_SEQ.put(&mut fields, held_seq);
    heartbeat::INPUT_DIGEST.put(&mut fields, message.input_digest);
    heartbeat::HELD_OWNER.put(&mut fields, held_epoch.owner().0);
    heartbeat::HEARD_PATHS.put(&mut fields, message.heard_paths.0);
    bytes.extend_from_slice(&fields);
    encode_part(message.part.as_ref(), bytes);
}

pub fn decode_heartbeat(head: &Head, payload: &[u8]) -> Result<Heartbeat, FrameError> {
    let (fields, rest) = split::<HEARTBEAT_LEN>(payload)?;
    let unknown_flags = head.flags & !Flags::ALL.0;
    if unknown_flags != 0 {
        return Err(unknown("flags", unknown_flags));
    }
    check_zero("byte 46 of a heartbeat", heartbeat::ZERO.get(fields))?;
    let held_owner = NodeId(heartbeat::HELD_OWNER.get(fields));
    let held_epoch = Epoch::new(heartbeat::HELD_COUNTER.get(fields), held_owner);
    Ok(Heartbeat {
        cluster: head.cluster,
        node: head.node,
        incarnation: head.incarnation,
        epoch: head.epoch,
        seq: head.seq,
        standing: standing(head.code)?,
        flags: Flags(head.flags),
        program: heartbeat::PROGRAM.get(fields),
        schema: heartbeat::SCHEMA.get(fields),
        input_digest: heartbeat::INPUT_DIGEST.get(fields),
        echo: heartbeat::ECHO.get(fields),
        held: (held_epoch, heartbeat::HELD_SEQ.get(fields)),
        heard_paths: Unhashed(heartbeat::HEARD_PATHS.get(fields)),
        part: decode_part(rest)?,
    })
}

pub fn encode_fragment(message: &Fragment, bytes: &mut Vec<u8>) {
    let mut fields = [0; FRAGMENT_LEN];
    fragment::SCHEMA.put(&mut fields, message.schema);
    bytes.extend_from_slice(&fields);
    encode_part(Some(&message.part), bytes);
}

pub fn decode_fragment(head: &Head, payload: &[u8]) -> Result<Fragment, FrameError> {
    let (fields, rest) = split::<FRAGMENT_LEN>(payload)?;
    check_zero("code of a fragment", head.code)?;
    Ok(Fragment {
        cluster: head.cluster,
        node: head.node,
        incarnation: head.incarnation,
        epoch: head.epoch,
        seq: head.seq,
        schema: fragment::SCHEMA.get(fields),
        part: decode_part(rest)?.ok_or_else(|| unknown("kind of part", NO_PART))?,
    })
}

fn encode_part(message: Option<&Part>, bytes: &mut Vec<u8>) {
    let mut fields = [0; PART_LEN];
    let Some(message) = message else {
        bytes.extend_from_slice(&fields);
        return;
    };
    match message.kind {
        PartKind::Full => part::KIND.put(&mut fields, FULL),
        PartKind::Delta { base_seq } => {
            part::KIND.put(&mut fields, DELTA);
            part::BASE_SEQ.put(&mut fields, base_seq);
        }
    }
    part::TOTAL_LEN.put(&mut fields, message.total_len);
    part::OFFSET.put(&mut fields, message.offset);
    part::STATE_DIGEST.put(&mut fields, message.state_digest);
    bytes.extend_from_slice(&fields);
    bytes.extend_from_slice(&message.bytes);
}

fn decode_part(payload: &[u8]) -> Result<Option<Part>, FrameError> {
    let (fields, bytes) = split::<PART_LEN>(payload)?;
    check_zero("byte 1 of a part", part::ZERO_8.get(fields))?;
    check_zero("byte 2 of a part", part::ZERO_16.get(fields))?;
    let base_seq = part::BASE_SEQ.get(fields);
    let kind = match part::KIND.get(fields) {
        NO_PART => {
            check_zero("base of no part", base_seq)?;
            check_zero("length of no part", part::TOTAL_LEN.get(fields))?;
            check_zero("offset of no part", part::OFFSET.get(fields))?;
            check_zero("digest of no part", part::STATE_DIGEST.get(fields))?;
            check_end(bytes)?;
            return Ok(None);
        }
        FULL => {
            check_zero("base of a full state", base_seq)?;
            PartKind::Full
        }
        DELTA => PartKind::Delta { base_seq },
        found => return Err(unknown("kind of part", found)),
    };
    Ok(Some(Part {
        kind,
        total_len: part::TOTAL_LEN.get(fields),
        offset: part::OFFSET.get(fields),
        state_digest: part::STATE_DIGEST.get(fields),
        bytes: bytes.to_vec(),
    }))
}

fn standing(code: u8) -> Result<Standing, FrameError> {
    Standing::from_code(code).ok_or_else(|| unknown("standing", code))
}
