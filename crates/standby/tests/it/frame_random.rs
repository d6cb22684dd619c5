//! Frames of random values, and a million datagrams that nobody encoded.

use bumpless_standby::frame::{Frame, FrameError, VERSION, decode};
use bumpless_standby::message::{
    Action, Flags, Fragment, Heartbeat, Part, PartKind, Refusal, Reply, Request, Sample, Standing,
    Verdict,
};
use bumpless_standby::transfer::Receiver;
use bumpless_standby::{Epoch, NodeId, Unhashed};
use proptest::prelude::*;

use crate::golden;

fn epoch() -> impl Strategy<Value = Epoch> {
    (any::<u64>(), any::<u8>()).prop_map(|(counter, owner)| Epoch::new(counter, NodeId(owner)))
}

fn part() -> impl Strategy<Value = Part> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..100);
    (proptest::option::of(any::<u64>()), any::<[u32; 3]>(), bytes).prop_map(
        |(base_seq, [total_len, offset, state_digest], bytes)| Part {
            kind: base_seq.map_or(PartKind::Full, |base_seq| PartKind::Delta { base_seq }),
            total_len,
            offset,
            state_digest,
            bytes,
        },
    )
}

fn heartbeat() -> impl Strategy<Value = Heartbeat> {
    let standing = prop_oneof![
        Just(Standing::Init),
        Just(Standing::Syncing),
        Just(Standing::Qualified),
        Just(Standing::Primary),
        Just(Standing::Suspended),
        Just(Standing::Disqualified),
        Just(Standing::Maintenance),
    ];
    let part = proptest::option::of(part());
    let held = (epoch(), any::<u64>());
    (
        any::<[u64; 6]>(),
        any::<u8>(),
        epoch(),
        standing,
        0..=Flags::ALL.0,
        held,
        any::<(u32, u8)>(),
        part,
    )
        .prop_map(
            |(numbers, node, epoch, standing, flags, held, (input_digest, heard), part)| {
                let [cluster, incarnation, seq, program, schema, echo] = numbers;
                Heartbeat {
                    cluster,
                    node: NodeId(node),
                    incarnation,
                    epoch,
                    seq,
                    standing,
                    flags: Flags(flags),
                    program,
                    schema,
                    input_digest,
                    echo,
                    held,
                    heard_paths: Unhashed(heard),
                    part,
                }
            },
        )
}

fn fragment() -> impl Strategy<Value = Fragment> {
    (any::<[u64; 4]>(), any::<u8>(), epoch(), part()).prop_map(|(numbers, node, epoch, part)| {
        let [cluster, incarnation, seq, schema] = numbers;
        Fragment {
            cluster,
            node: NodeId(node),
            incarnation,
            epoch,
            seq,
            schema,
            part,
        }
    })
}

fn request() -> impl Strategy<Value = Request<f64>> {
    let action = prop_oneof![
        any::<f64>().prop_map(Action::Drive),
        Just(Action::Probe),
        Just(Action::Confirm),
        Just(Action::Reserve),
    ];
    (any::<[u64; 4]>(), any::<u8>(), epoch(), action).prop_map(|(numbers, node, epoch, action)| {
        let [cluster, incarnation, seq, actuator] = numbers;
        Request {
            cluster,
            node: NodeId(node),
            incarnation,
            epoch,
            seq,
            actuator,
            action,
        }
    })
}

fn reply() -> impl Strategy<Value = Reply> {
    let refusal = prop_oneof![
        Just(Refusal::Superseded),
        Just(Refusal::Replayed),
        Just(Refusal::NotOwner),
        Just(Refusal::EpochJump),
        Just(Refusal::Unclaimed),
        Just(Refusal::NotDurable),
        Just(Refusal::Restarted),
    ];
    let verdict = prop_oneof![
        Just(Verdict::Ack),
        refusal.prop_map(Verdict::Nack),
        (epoch(), any::<u64>()).prop_map(|(epoch, idle_ns)| Verdict::Granted { epoch, idle_ns }),
    ];
    (any::<[u64; 5]>(), any::<u8>(), epoch(), epoch(), verdict).prop_map(
        |([cluster, incarnation, actuator, seq, last_seq], node, epoch, level, verdict)| Reply {
            cluster,
            node: NodeId(node),
            incarnation,
            actuator,
            epoch,
            seq,
            level,
            last_seq,
            verdict,
        },
    )
}

fn frame() -> impl Strategy<Value = Frame<f64>> {
    prop_oneof![
        heartbeat().prop_map(Frame::Heartbeat),
        fragment().prop_map(Frame::Fragment),
        request().prop_map(Frame::Request),
        reply().prop_map(Frame::Reply),
        any::<u64>().prop_map(|cycle| Frame::Sample(Sample {
            cycle,
            ..golden::sample()
        })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn every_frame_comes_back_and_has_one_encoding(frame in frame()) {
        let bytes = golden::encode(&frame);
        let back = decode(&bytes)?;
        prop_assert_eq!(golden::encode(&back), bytes);
        if let (Frame::Heartbeat(back), Frame::Heartbeat(sent)) = (&back, &frame) {
            prop_assert_eq!(back.heard_paths.0, sent.heard_paths.0);
        }
        prop_assert_eq!(back, frame);
    }
}

/// A generator for the million: splitmix64, from a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// A golden frame with some bytes changed, cut or added; its CRC is made right in three of four.
fn mutated(random: &mut Random, golden: &[(Frame<f64>, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = golden[random.below(golden.len())].1.clone();
    for _ in 0..random.below(4) {
        let at = random.below(bytes.len());
        bytes[at] = random.next() as u8;
    }
    match random.below(8) {
        0 => bytes.truncate(random.below(bytes.len())),
        1 => bytes.resize(bytes.len() + random.below(40), random.next() as u8),
        2 => bytes[4..6].copy_from_slice(&(VERSION + 1).to_le_bytes()),
        _ => {}
    }
    if bytes.len() >= 52 && !random.next().is_multiple_of(4) {
        let covered = bytes.len() - 4;
        let payload_len = (covered - 48) as u32;
        bytes[44..48].copy_from_slice(&payload_len.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..covered]);
        bytes[covered..].copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

#[test]
fn a_million_datagrams_are_refused_or_mean_exactly_what_they_say() {
    let golden = golden::all();
    let mut random = Random(43);
    let mut receiver = Receiver::new(4096, 1200);
    let (mut accepted, mut other_version, mut encoded) = (0, 0, 0);
    for index in 0..1_000_000 {
        let bytes: Vec<u8> = if index % 4 == 0 {
            (0..random.below(80)).map(|_| random.next() as u8).collect()
        } else {
            mutated(&mut random, &golden)
        };
        match decode::<f64>(&bytes) {
            Ok(frame) => {
                accepted += 1;
                // What is accepted has one encoding; a sample, as it costs an allocation.
                if accepted % 16 == 0 {
                    assert_eq!(golden::encode(&frame), bytes);
                    encoded += 1;
                }
                if let Frame::Fragment(fragment) = frame {
                    let _ = receiver.accept(fragment.epoch, fragment.seq, &fragment.part);
                }
            }
            Err(FrameError::Version { .. }) => other_version += 1,
            Err(_) => {}
        }
    }
    // The test would see nothing if the mutations were all refused, or none.
    assert!(accepted > 100_000 && other_version > 50_000 && encoded > 5_000);
}
