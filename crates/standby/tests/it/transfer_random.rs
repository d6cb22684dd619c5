//! Parts on a path that loses, repeats, delays and mixes them: what comes out was sent.

use std::collections::HashMap;

use bumpless_standby::message::{Part, PartKind};
use bumpless_standby::transfer::{Receiver, Sender};
use bumpless_standby::{Epoch, NodeId};
use proptest::prelude::*;

const STATE_LEN_MAX: u32 = 700;

/// What the path does with one part, and what happens to the state before the next cycle.
#[derive(Debug, Clone, Copy)]
struct Fate {
    is_lost: bool,
    is_repeated: bool,
    delay: usize,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = (0..4, 0..6, 0..40_usize).prop_map(|(loss, copy, delay)| Fate {
        is_lost: loss == 0,
        is_repeated: copy == 0,
        delay,
    });
    proptest::collection::vec(fate, 1..200)
}

#[derive(Debug, Clone)]
struct Cycle {
    len: usize,
    changes: Vec<(usize, u8)>,
    is_takeover: bool,
    is_full_requested: bool,
}

fn cycles() -> impl Strategy<Value = Vec<Cycle>> {
    let changes = proptest::collection::vec((0..700_usize, any::<u8>()), 0..4);
    // Mostly of one length: a change of it is a full state.
    let len = prop_oneof![8 => Just(500_usize), 1 => 0..700_usize];
    let cycle = (len, changes, 0..15, 0..8).prop_map(|(len, changes, takeover, full)| Cycle {
        len,
        changes,
        is_takeover: takeover == 0,
        is_full_requested: full == 0,
    });
    proptest::collection::vec(cycle, 1..40)
}

/// Every part of every cycle, with its epoch and cycle, in the order in which it was sent; and the states.
struct Sent {
    parts: Vec<(Epoch, u64, Part)>,
    states: HashMap<(u64, u64), Vec<u8>>,
}

fn send(cycles: &[Cycle], full_every: u32, part_len_max: u32) -> Sent {
    let mut sender = Sender::new(full_every, part_len_max);
    let (mut state, mut epoch) = (vec![0; STATE_LEN_MAX as usize], 1);
    let (mut parts, mut states) = (vec![], HashMap::new());
    for (seq, cycle) in (10..).zip(cycles) {
        for (at, byte) in &cycle.changes {
            state[*at] = *byte;
        }
        epoch += u64::from(cycle.is_takeover);
        if cycle.is_full_requested {
            sender.request_full();
        }
        let now = Epoch::new(epoch, NodeId((epoch % 2) as u8));
        for part in sender.parts(now, seq, &state[..cycle.len]) {
            parts.push((now, seq, part));
        }
        states.insert((epoch, seq), state[..cycle.len].to_vec());
    }
    Sent { parts, states }
}

fn deliver(sent: &Sent, fates: &[Fate]) -> Vec<(Epoch, u64, Part)> {
    let mut arrivals = vec![];
    for (index, (part, fate)) in sent.parts.iter().zip(fates.iter().cycle()).enumerate() {
        if !fate.is_lost {
            arrivals.push((index + fate.delay, part.clone()));
        }
        if fate.is_repeated {
            arrivals.push((index + 2 * fate.delay, part.clone()));
        }
    }
    arrivals.sort_by_key(|(at, _)| *at);
    arrivals.into_iter().map(|(_, part)| part).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn whatever_the_path_does_only_states_that_were_sent_come_out_and_never_backwards(
        cycles in cycles(),
        fates in fates(),
        full_every in 1..6_u32,
        part_len_max in 1..200_u32,
    ) {
        let sent = send(&cycles, full_every, part_len_max);
        let mut receiver = Receiver::new(STATE_LEN_MAX, part_len_max);
        let mut last = None;
        for (epoch, seq, part) in deliver(&sent, &fates) {
            let Some(complete) = receiver.accept(epoch, seq, &part)? else { continue };
            let wanted = &sent.states[&(complete.epoch.counter(), complete.seq)];
            prop_assert_eq!(&complete.bytes, wanted);
            prop_assert_eq!(complete.digest, crc32c::crc32c(wanted));
            let now = Some((complete.epoch.counter(), complete.seq));
            prop_assert!(now > last, "{:?} behind {:?}", now, last);
            last = now;
        }
    }

    #[test]
    fn on_a_path_in_order_without_loss_every_state_comes_out(
        cycles in cycles(),
        full_every in 1..6_u32,
        part_len_max in 1..200_u32,
    ) {
        let sent = send(&cycles, full_every, part_len_max);
        let mut receiver = Receiver::new(STATE_LEN_MAX, part_len_max);
        let mut came_out = 0;
        for (epoch, seq, part) in &sent.parts {
            came_out += usize::from(receiver.accept(*epoch, *seq, part)?.is_some());
            prop_assert!(!receiver.needs_full());
        }
        prop_assert_eq!(came_out, cycles.len());
    }

    #[test]
    fn parts_that_nobody_sent_are_refused_or_dropped(
        parts in proptest::collection::vec(part(), 1..80),
        sound in cycles(),
    ) {
        let mut receiver = Receiver::new(STATE_LEN_MAX, 16);
        let sent = send(&sound, 3, 16);
        let made_up = parts.into_iter().map(|(counter, seq, part)| {
            (Epoch::new(counter, NodeId((counter % 2) as u8)), seq, part)
        });
        // Made up and sound ones in turn, so that the made up ones meet every state of the receiver.
        let mut sound = sent.parts.into_iter();
        for (epoch, seq, part) in made_up.flat_map(|part| [Some(part), sound.next()]).flatten() {
            if let Ok(Some(complete)) = receiver.accept(epoch, seq, &part) {
                prop_assert_eq!(complete.digest, crc32c::crc32c(&complete.bytes));
                prop_assert!(complete.bytes.len() <= STATE_LEN_MAX as usize);
            }
        }
    }
}

/// A part of lengths and places that are often sound.
fn part() -> impl Strategy<Value = (u64, u64, Part)> {
    let number = prop_oneof![8 => 0..60_u32, 1 => any::<u32>()];
    let place = prop_oneof![4 => (0..4_u32).prop_map(|n| n * 16), 1 => number.clone()];
    let bytes = proptest::collection::vec(any::<u8>(), 0..17);
    (
        1..3_u64,
        9..30_u64,
        proptest::option::of(9..30_u64),
        number,
        place,
        0..3_u32,
        bytes,
    )
        .prop_map(
            |(counter, seq, base_seq, total_len, offset, digest, bytes)| {
                let kind = base_seq.map_or(PartKind::Full, |base_seq| PartKind::Delta { base_seq });
                let state_digest = if digest == 0 {
                    crc32c::crc32c(&bytes)
                } else {
                    digest
                };
                (
                    counter,
                    seq,
                    Part {
                        kind,
                        total_len,
                        offset,
                        state_digest,
                        bytes,
                    },
                )
            },
        )
}
