//! Payloads between a node and the actuator: request, reply, sample.

use crate::epoch::{Epoch, NodeId};
use crate::message::{Action, Refusal, Reply, Request, Sample, Verdict};

use super::error::FrameError;
use super::layout::{REPLY_LEN, REQUEST_LEN, reply, request};
use super::value::Value;
use super::{Head, check_end, check_zero, split, unknown};

const DRIVE: u8 = 0;
const PROBE: u8 = 1;
const CONFIRM: u8 = 2;
const RESERVE: u8 = 3;

const ACK: u8 = 0;
const NACK: u8 = 1;
const GRANTED: u8 = 2;

pub fn action_code<V>(action: &Action<V>) -> u8 {
    match action {
        Action::Drive(_) => DRIVE,
        Action::Probe => PROBE,
        Action::Confirm => CONFIRM,
        Action::Reserve => RESERVE,
    }
}

pub fn encode_request<V: Value>(message: &Request<V>, bytes: &mut Vec<u8>) {
    let mut fields = [0; REQUEST_LEN];
    request::ACTUATOR.put(&mut fields, message.actuator);
    bytes.extend_from_slice(&fields);
    if let Action::Drive(value) = &message.action {
        value.encode(bytes);
    }
}

pub fn decode_request<V: Value>(head: &Head, payload: &[u8]) -> Result<Request<V>, FrameError> {
    let (fields, rest) = split::<REQUEST_LEN>(payload)?;
    let action = match head.code {
        DRIVE => {
            let value = V::decode(rest).ok_or(FrameError::Value { found: rest.len() })?;
            Action::Drive(value)
        }
        PROBE => Action::Probe,
        CONFIRM => Action::Confirm,
        RESERVE => Action::Reserve,
        found => return Err(unknown("action", found)),
    };
    if head.code != DRIVE {
        check_end(rest)?;
    }
    Ok(Request {
        cluster: head.cluster,
        node: head.node,
        incarnation: head.incarnation,
        epoch: head.epoch,
        seq: head.seq,
        actuator: request::ACTUATOR.get(fields),
        action,
    })
}

pub fn verdict_code(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Ack => ACK,
        Verdict::Nack(_) => NACK,
        Verdict::Granted { .. } => GRANTED,
    }
}

pub fn encode_reply(message: &Reply, bytes: &mut Vec<u8>) {
    let mut fields = [0; REPLY_LEN];
    reply::ACTUATOR.put(&mut fields, message.actuator);
    reply::LEVEL_COUNTER.put(&mut fields, message.level.counter());
    reply::LAST_SEQ.put(&mut fields, message.last_seq);
    reply::LEVEL_OWNER.put(&mut fields, message.level.owner().0);
    match message.verdict {
        Verdict::Ack => {}
        Verdict::Nack(refusal) => reply::REFUSAL.put(&mut fields, refusal as u8),
        Verdict::Granted { epoch, idle_ns } => {
            reply::GRANTED_COUNTER.put(&mut fields, epoch.counter());
            reply::GRANTED_OWNER.put(&mut fields, epoch.owner().0);
            reply::IDLE_NS.put(&mut fields, idle_ns);
        }
    }
    bytes.extend_from_slice(&fields);
}

pub fn decode_reply(head: &Head, payload: &[u8]) -> Result<Reply, FrameError> {
    let (fields, rest) = split::<REPLY_LEN>(payload)?;
    check_end(rest)?;
    check_zero("byte 43 of a reply", reply::ZERO_8.get(fields))?;
    check_zero("byte 44 of a reply", reply::ZERO_32.get(fields))?;
    let refusal_code = reply::REFUSAL.get(fields);
    let granted_owner = reply::GRANTED_OWNER.get(fields);
    let granted_counter = reply::GRANTED_COUNTER.get(fields);
    let idle_ns = reply::IDLE_NS.get(fields);
    if head.code != NACK {
        check_zero("refusal without a nack", refusal_code)?;
    }
    if head.code != GRANTED {
        check_zero("owner of no grant", granted_owner)?;
        check_zero("counter of no grant", granted_counter)?;
        check_zero("idle time of no grant", idle_ns)?;
    }
    let verdict = match head.code {
        ACK => Verdict::Ack,
        NACK => Verdict::Nack(refusal(refusal_code)?),
        GRANTED => Verdict::Granted {
            epoch: Epoch::new(granted_counter, NodeId(granted_owner)),
            idle_ns,
        },
        found => return Err(unknown("verdict", found)),
    };
    let level_owner = NodeId(reply::LEVEL_OWNER.get(fields));
    Ok(Reply {
        cluster: head.cluster,
        node: head.node,
        incarnation: head.incarnation,
        actuator: reply::ACTUATOR.get(fields),
        epoch: head.epoch,
        seq: head.seq,
        level: Epoch::new(reply::LEVEL_COUNTER.get(fields), level_owner),
        last_seq: reply::LAST_SEQ.get(fields),
        verdict,
    })
}

fn refusal(code: u8) -> Result<Refusal, FrameError> {
    let all = [
        Refusal::Superseded,
        Refusal::Replayed,
        Refusal::NotOwner,
        Refusal::EpochJump,
        Refusal::Unclaimed,
        Refusal::NotDurable,
        Refusal::Restarted,
    ];
    let known = all.into_iter().find(|refusal| *refusal as u8 == code);
    known.ok_or_else(|| unknown("refusal", code))
}

pub fn decode_sample<V: Value>(head: &Head, payload: &[u8]) -> Result<Sample<V>, FrameError> {
    check_zero("code of a sample", head.code)?;
    check_zero("node of a sample", head.node.0)?;
    check_zero("epoch of a sample", head.epoch.counter())?;
    check_zero("epoch owner of a sample", head.epoch.owner().0)?;
    let value = V::decode(payload).ok_or(FrameError::Value {
        found: payload.len(),
    })?;
    Ok(Sample {
        cluster: head.cluster,
        actuator: head.incarnation,
        cycle: head.seq,
        value,
    })
}
