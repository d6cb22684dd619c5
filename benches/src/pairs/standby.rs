//! The standby pair: ticks, frames, states on their way, and the tick of a takeover.
//!
//! The floor of a tick is what no cycle of a pair can be without: a step, an encoding, its CRC-32C and a
//! buffer to send. That of a frame is a copy and the CRC-32C of as many bytes.

use std::hint::black_box;

use anyhow::{Context, Result, ensure};
use bumpless_standby::frame::{Frame, decode, encode_fragment, encode_heartbeat};
use bumpless_standby::message::{Fragment, Heartbeat};
use bumpless_standby::rehearsal::Integrators;
use bumpless_standby::transfer::{Receiver, Sender};
use bumpless_standby::{Checkpoint, Controller, Epoch, NodeId};

use crate::conversation::{Side, converse};
use crate::pair::{Pair, Stage, in_a_row};
use crate::values::Values;

/// Bytes in one part, as a pair has it by default.
const PART_LEN: u32 = 1_200;
const STATE_LEN_MAX: u32 = 1 << 20;
const HALF_A_PAGE: usize = 2_048;

pub const PAIRS: &[Pair] = &[
    Pair::told("tick of the primary, 64 B", ONE_STEP, |stage| {
        let [primary, _] = converse()?;
        tick(stage, &primary)
    }),
    Pair::told("tick of the standby, 64 B", ONE_STEP, |stage| {
        let [_, standby] = converse()?;
        tick(stage, &standby)
    }),
    Pair::told(
        "tick that takes over, 64 B",
        "tick of the standby, 64 B",
        |stage| {
            let [_, standby] = converse()?;
            stage.compare(
                &mut |times| (0..times).map(|_| standby.take_over()).sum(),
                &mut |times| standby.ticks(times),
            )
        },
    ),
    Pair::told("heartbeat to frame, 64 B of state", COPIED, encoding),
    Pair::told("frame to heartbeat, 64 B of state", COPIED, decoding),
    Pair::told(
        "checkpoint of 64 B, sent and adopted",
        "one copy",
        |stage| checkpoint(stage, 64),
    ),
    Pair::told(
        "checkpoint of 4 KiB, sent and adopted",
        "one copy",
        |stage| checkpoint(stage, 4 << 10),
    ),
    Pair::told(
        "checkpoint of 1 MiB, sent and adopted",
        "one copy",
        |stage| checkpoint(stage, 1 << 20),
    ),
];

const ONE_STEP: &str = "a step, an encoding, a CRC, a buffer";
const COPIED: &str = "a copy and a CRC of as many bytes";

fn tick(stage: &mut dyn Stage, side: &Side) -> Result<()> {
    let mut state = Integrators::default();
    let mut encoded = Vec::with_capacity(64);
    stage.compare(
        &mut |times| side.ticks(times),
        &mut in_a_row(|| {
            state.step(black_box(&1.0));
            encoded.clear();
            state.encode(&mut encoded);
            black_box(crc32c::crc32c(&encoded));
            black_box(encoded.clone());
        }),
    )
}

/// A heartbeat with a state in it, as the primary says it, and its frame.
fn sample() -> Result<(Heartbeat, Vec<u8>)> {
    let [_, standby] = converse()?;
    let heartbeat = standby.heartbeat().context("a heartbeat")?.clone();
    ensure!(
        heartbeat
            .part
            .as_ref()
            .is_some_and(|part| part.bytes.len() == 64),
        "a heartbeat without its state: {heartbeat:?}"
    );
    let mut frame = Vec::new();
    encode_heartbeat(&heartbeat, &mut frame);
    Ok((heartbeat, frame))
}

fn encoding(stage: &mut dyn Stage) -> Result<()> {
    let (heartbeat, frame) = sample()?;
    let (mut encoded, mut copied) = (Vec::new(), Vec::new());
    stage.compare(
        &mut in_a_row(|| {
            encoded.clear();
            encode_heartbeat(black_box(&heartbeat), &mut encoded);
            black_box(&encoded);
        }),
        &mut in_a_row(|| copy(&frame, &mut copied)),
    )
}

fn decoding(stage: &mut dyn Stage) -> Result<()> {
    let (heartbeat, frame) = sample()?;
    ensure!(
        decode::<f64>(&frame)? == Frame::Heartbeat(heartbeat),
        "another heartbeat"
    );
    let mut copied = Vec::new();
    stage.compare(
        &mut in_a_row(|| {
            black_box(decode::<f64>(black_box(&frame)).is_ok());
        }),
        &mut in_a_row(|| copy(&frame, &mut copied)),
    )
}

fn copy(frame: &[u8], copied: &mut Vec<u8>) {
    copied.clear();
    copied.extend_from_slice(black_box(frame));
    black_box(crc32c::crc32c(copied));
}

/// A state is encoded, cut in parts, each a frame that is decoded again, put together, judged and adopted.
/// Always in full, as after a takeover.
pub fn checkpoint(stage: &mut dyn Stage, len: usize) -> Result<()> {
    let mut sent = Values(vec![0.0; len / 8]);
    let mut adopted = sent.clone();
    let mut sender = Sender::new(1, PART_LEN);
    let mut receiver = Receiver::new(STATE_LEN_MAX, PART_LEN);
    let (mut seq, mut state, mut frame) = (0, Vec::new(), Vec::new());
    let mut all_adopted = true;
    let epoch = Epoch::new(1, NodeId(0));
    // Half a page apart: where both have the same place in a page, a copy waits for its own stores.
    let mut lines = vec![1_u8; 2 * len + HALF_A_PAGE];
    let (from, to) = lines.split_at_mut(len + HALF_A_PAGE);
    stage.compare(
        &mut in_a_row(|| {
            seq += 1;
            if let Some(value) = sent.0.first_mut() {
                *value = seq as f64;
            }
            state.clear();
            sent.encode(&mut state);
            let mut is_adopted = false;
            for part in sender.parts(epoch, seq, &state) {
                let fragment = Fragment {
                    cluster: 1,
                    node: NodeId(0),
                    incarnation: 10,
                    epoch,
                    seq,
                    schema: sent.schema(),
                    part,
                };
                frame.clear();
                encode_fragment(&fragment, &mut frame);
                let Ok(Frame::Fragment(heard)) = decode::<f64>(black_box(&frame)) else {
                    continue;
                };
                let Ok(Some(whole)) = receiver.accept(heard.epoch, heard.seq, &heard.part) else {
                    continue;
                };
                if let Ok(state) = adopted.decode(&whole.bytes)
                    && state.check().is_ok()
                {
                    adopted = state;
                    is_adopted = true;
                }
            }
            all_adopted &= is_adopted;
        }),
        &mut in_a_row(|| {
            to.copy_from_slice(black_box(&from[..len]));
            black_box(&to);
        }),
    )?;
    ensure!(all_adopted, "a state was not adopted");
    ensure!(adopted == sent, "another state was adopted");
    Ok(())
}
