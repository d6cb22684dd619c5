//! One frame of each kind, as value and as bytes. The bytes were put together from `docs/layout.md` by
//! hand, not by the encoder. 48 bytes a line: header, then payload.

use bumpless_standby::frame::{
    Frame, encode_fragment, encode_heartbeat, encode_reply, encode_request, encode_sample,
};
use bumpless_standby::message::{
    Action, Flags, Fragment, Heartbeat, Part, PartKind, Refusal, Reply, Request, Sample, Standing,
    Verdict,
};
use bumpless_standby::{Epoch, NodeId, Unhashed};

const CLUSTER: u64 = 0x0102_0304_0506_0708;
const INCARNATION: u64 = 0x1112_1314_1516_1718;
const NODE: NodeId = NodeId(1);
const EPOCH: Epoch = Epoch::new(0x21, NODE);
const SEQ: u64 = 0x3132;

const HEARTBEAT: &str = "\
    424c53420100010308070605040302011817161514131211210000000000000032310000000000000101110051000000\
    410000000000000051000000000000006100000000000000200000000000000030310000000000007473727100030000\
    020000000900000000000000848382810031000000000000010000000100000099f0ee0572";

const BARE_HEARTBEAT: &str = "\
    424c5342010001000807060504030201181716151413121100000000000000000700000000000000ff00000048000000\
    4100000000000000510000000000000000000000000000000000000000000000000000000000000005000000ff000000\
    000000000000000000000000000000000000000000000000aa8d33b6";

const FRAGMENT: &str = "\
    424c53420100020008070605040302011817161514131211210000000000000032310000000000000101000023000000\
    510000000000000001000000b80b000060090000848382810000000000000000a1a2a3ed3db1c4";

const REQUEST: &str = "\
    424c53420100030008070605040302011817161514131211210000000000000032310000000000000101000010000000\
    91000000000000000000000000000440d88e53a6";

const GRANT: &str = "\
    424c53420100040208070605040302011817161514131211210000000000000032310000000000000101000030000000\
    910000000000000020000000000000003131000000000000220000000000000040420f00000000000001000000000000\
    2bcb7402";

const NACK: &str = "\
    424c53420100040108070605040302011817161514131211210000000000000032310000000000000101000030000000\
    910000000000000020000000000000003131000000000000000000000000000000000000000000000000020000000000\
    d7a2cc0a";

const SAMPLE: &str = "\
    424c53420100050008070605040302019100000000000000000000000000000032310000000000000000000008000000\
    000000000000044053cb18d8";

/// Each frame with its bytes.
pub fn all() -> Vec<(Frame<f64>, Vec<u8>)> {
    [
        (Frame::Heartbeat(heartbeat()), HEARTBEAT),
        (Frame::Heartbeat(bare_heartbeat()), BARE_HEARTBEAT),
        (Frame::Fragment(fragment()), FRAGMENT),
        (Frame::Request(request()), REQUEST),
        (Frame::Reply(grant()), GRANT),
        (Frame::Reply(nack()), NACK),
        (Frame::Sample(sample()), SAMPLE),
    ]
    .into_iter()
    .map(|(frame, hex)| (frame, from_hex(hex)))
    .collect()
}

pub fn encode(frame: &Frame<f64>) -> Vec<u8> {
    let mut bytes = vec![];
    match frame {
        Frame::Heartbeat(heartbeat) => encode_heartbeat(heartbeat, &mut bytes),
        Frame::Fragment(fragment) => encode_fragment(fragment, &mut bytes),
        Frame::Request(request) => encode_request(request, &mut bytes),
        Frame::Reply(reply) => encode_reply(reply, &mut bytes),
        Frame::Sample(sample) => encode_sample(sample, &mut bytes),
    }
    bytes
}

pub fn heartbeat() -> Heartbeat {
    Heartbeat {
        cluster: CLUSTER,
        node: NODE,
        incarnation: INCARNATION,
        epoch: EPOCH,
        seq: SEQ,
        standing: Standing::Primary,
        flags: Flags::TAKE_OVER.with(Flags::NEEDS_FULL),
        program: 0x41,
        schema: 0x51,
        input_digest: 0x7172_7374,
        echo: 0x61,
        held: (Epoch::new(0x20, NodeId(0)), 0x3130),
        heard_paths: Unhashed(3),
        part: Some(Part {
            kind: PartKind::Delta { base_seq: 0x3100 },
            total_len: 9,
            offset: 0,
            state_digest: 0x8182_8384,
            bytes: vec![1, 0, 0, 0, 1, 0, 0, 0, 0x99],
        }),
    }
}

fn bare_heartbeat() -> Heartbeat {
    Heartbeat {
        cluster: CLUSTER,
        node: NodeId(0),
        incarnation: INCARNATION,
        epoch: Epoch::NONE,
        seq: 7,
        standing: Standing::Init,
        flags: Flags::default(),
        program: 0x41,
        schema: 0x51,
        input_digest: 5,
        echo: 0,
        held: (Epoch::NONE, 0),
        heard_paths: Unhashed(0),
        part: None,
    }
}

fn fragment() -> Fragment {
    Fragment {
        cluster: CLUSTER,
        node: NODE,
        incarnation: INCARNATION,
        epoch: EPOCH,
        seq: SEQ,
        schema: 0x51,
        part: Part {
            kind: PartKind::Full,
            total_len: 3000,
            offset: 2400,
            state_digest: 0x8182_8384,
            bytes: vec![0xa1, 0xa2, 0xa3],
        },
    }
}

pub fn request() -> Request<f64> {
    Request {
        cluster: CLUSTER,
        node: NODE,
        incarnation: INCARNATION,
        epoch: EPOCH,
        seq: SEQ,
        actuator: 0x91,
        action: Action::Drive(2.5),
    }
}

fn grant() -> Reply {
    Reply {
        cluster: CLUSTER,
        node: NODE,
        incarnation: INCARNATION,
        actuator: 0x91,
        epoch: EPOCH,
        seq: SEQ,
        level: Epoch::new(0x20, NodeId(0)),
        last_seq: 0x3131,
        verdict: Verdict::Granted {
            epoch: Epoch::new(0x22, NODE),
            idle_ns: 1_000_000,
        },
    }
}

fn nack() -> Reply {
    Reply {
        verdict: Verdict::Nack(Refusal::Replayed),
        ..grant()
    }
}

pub fn sample() -> Sample<f64> {
    Sample {
        cluster: CLUSTER,
        actuator: 0x91,
        cycle: SEQ,
        value: 2.5,
    }
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .map(|digit| digit.to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}
