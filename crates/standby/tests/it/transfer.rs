//! Parts on their way: lost, late, mixed, and made up.

use bumpless_standby::message::{Part, PartKind};
use bumpless_standby::transfer::{Complete, PATIENCE_CYCLES, PartError, Receiver, Sender};
use bumpless_standby::{Epoch, NodeId};

const EPOCH: Epoch = Epoch::new(1, NodeId(0));
const NEXT: Epoch = Epoch::new(2, NodeId(1));

const PART_LEN: u32 = 64;
const STATE_LEN: usize = 4 * PART_LEN as usize;

/// The state after this cycle: other cycles have others, in every part.
fn state_of(seq: u64) -> Vec<u8> {
    (0..STATE_LEN)
        .map(|n| (n as u64 ^ (seq * 31)) as u8)
        .collect()
}

fn parts_of(seq: u64) -> Vec<Part> {
    Sender::new(1, PART_LEN).parts(EPOCH, seq, &state_of(seq))
}

fn receiver() -> Receiver {
    Receiver::new(1024, PART_LEN)
}

fn accept(receiver: &mut Receiver, seq: u64, part: &Part) -> Option<Complete<'static>> {
    let complete = receiver.accept(EPOCH, seq, part).unwrap()?;
    Some(Complete {
        bytes: complete.bytes.into_owned().into(),
        ..complete
    })
}

/// Every part of a set, and what comes out with the last.
fn accept_all(receiver: &mut Receiver, seq: u64, parts: &[Part]) -> Option<Vec<u8>> {
    let mut last = None;
    for part in parts {
        last = accept(receiver, seq, part);
    }
    last.map(|complete| complete.bytes.into_owned())
}

fn check_state(complete: Option<Complete<'_>>, seq: u64) {
    let complete = complete.unwrap();
    assert_eq!((complete.epoch, complete.seq), (EPOCH, seq));
    assert_eq!(complete.bytes, state_of(seq));
}

#[test]
fn a_state_comes_out_with_its_last_part_in_any_order() {
    for order in [[0, 1, 2, 3], [3, 1, 0, 2]] {
        let (parts, mut receiver) = (parts_of(5), receiver());
        for index in &order[..3] {
            assert_eq!(accept(&mut receiver, 5, &parts[*index]), None);
        }
        check_state(accept(&mut receiver, 5, &parts[order[3]]), 5);
    }
}

#[test]
fn repeated_parts_are_harmless_before_and_after_the_state_came_out() {
    let (parts, mut receiver) = (parts_of(5), receiver());
    for part in &parts[..3] {
        assert_eq!(accept(&mut receiver, 5, part), None);
        assert_eq!(accept(&mut receiver, 5, part), None);
    }
    check_state(accept(&mut receiver, 5, &parts[3]), 5);
    let settled = receiver.clone();
    for part in &parts {
        assert_eq!(accept(&mut receiver, 5, part), None);
    }
    assert_eq!(receiver, settled);
}

#[test]
fn parts_of_two_cycles_never_mix() {
    let (older, newer, mut receiver) = (parts_of(5), parts_of(6), receiver());
    for part in &older[..2] {
        assert_eq!(accept(&mut receiver, 5, part), None);
    }
    for part in &newer[2..] {
        assert_eq!(accept(&mut receiver, 6, part), None);
    }
    assert_eq!(accept(&mut receiver, 5, &older[2]), None);
    assert_eq!(accept(&mut receiver, 6, &newer[0]), None);
    check_state(accept(&mut receiver, 6, &newer[1]), 6);
    assert_eq!(accept(&mut receiver, 5, &older[3]), None, "the past");
}

#[test]
fn a_large_state_gets_through_a_path_on_which_every_cycle_overlaps_the_next() {
    // The last part of each cycle always comes behind the first ones of three later cycles.
    let mut receiver = receiver();
    let mut came_out = Vec::new();
    for seq in 10..100 {
        for part in &parts_of(seq)[..3] {
            assert_eq!(accept(&mut receiver, seq, part), None);
        }
        let late = seq - 3;
        if let Some(complete) = accept(&mut receiver, late, &parts_of(late)[3]) {
            came_out.push(complete.seq);
            check_state(Some(complete), late);
        }
    }
    let longest = came_out.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert_eq!((came_out[0], longest), (10, Some(3)), "{came_out:?}");
}

#[test]
fn a_set_that_lost_a_part_delays_nothing_on_a_path_in_order() {
    let mut receiver = receiver();
    for part in &parts_of(5)[1..] {
        assert_eq!(accept(&mut receiver, 5, part), None);
    }
    let mut last = None;
    for part in &parts_of(6) {
        last = accept(&mut receiver, 6, part);
    }
    check_state(last, 6);
}

#[test]
fn a_set_that_lost_a_part_is_given_up_when_its_time_is_over() {
    let mut receiver = receiver();
    for part in &parts_of(5)[1..] {
        accept(&mut receiver, 5, part);
    }
    // No later set becomes complete: each has its last part three cycles late, and the receiver stays
    // with cycle 5 until its patience ends.
    let mut first = None;
    for seq in 6..30 {
        for part in &parts_of(seq)[..3] {
            assert_eq!(accept(&mut receiver, seq, part), None);
        }
        let late = accept(&mut receiver, seq - 3, &parts_of(seq - 3)[3]);
        first = first.or(late.map(|complete| (seq, complete.seq)));
    }
    let given_up = 5 + PATIENCE_CYCLES + 1;
    assert_eq!(first, Some((given_up + 2, given_up - 1)));
}

#[test]
fn a_lost_delta_harms_nothing_and_a_lost_full_state_is_asked_for_until_it_comes() {
    let mut sender = Sender::new(100, PART_LEN);
    let mut receiver = receiver();
    let mut state = vec![0; 200];
    let mut next = |seq: u64, sender: &mut Sender| {
        state[7] = seq as u8;
        (sender.parts(EPOCH, seq, &state), state.clone())
    };

    let (full, _) = next(0, &mut sender);
    assert!(accept_all(&mut receiver, 0, &full).is_some());
    let (_lost, _) = next(1, &mut sender);
    let (delta, whole) = next(2, &mut sender);
    assert_eq!(delta[0].kind, PartKind::Delta { base_seq: 0 });
    assert_eq!(accept_all(&mut receiver, 2, &delta), Some(whole));
    assert!(!receiver.needs_full());

    sender.request_full();
    let (_lost, _) = next(3, &mut sender);
    let (delta, _) = next(4, &mut sender);
    assert_eq!(accept_all(&mut receiver, 4, &delta), None);
    assert!(receiver.needs_full());

    sender.request_full();
    let (full, whole) = next(5, &mut sender);
    assert_eq!(accept_all(&mut receiver, 5, &full), Some(whole));
    assert!(!receiver.needs_full());
}

#[test]
fn deltas_do_not_displace_the_full_state_they_wait_for_and_ask_only_when_it_stalls() {
    let mut sender = Sender::new(100, PART_LEN);
    let mut receiver = receiver();
    let full = sender.parts(EPOCH, 0, &state_of(0));
    let delta = |sender: &mut Sender, seq: u64| {
        let mut state = state_of(0);
        state[9] = seq as u8;
        sender.parts(EPOCH, seq, &state).remove(0)
    };
    let mut seq = 0;
    for part in &full[..3] {
        assert_eq!(accept(&mut receiver, 0, part), None);
        for _ in 0..PATIENCE_CYCLES {
            seq += 1;
            assert_eq!(accept(&mut receiver, seq, &delta(&mut sender, seq)), None);
            assert!(!receiver.needs_full(), "it is on its way, cycle {seq}");
        }
    }
    let mut stalled = receiver.clone();
    check_state(accept(&mut receiver, 0, &full[3]), 0);
    let complete = accept(&mut receiver, seq + 1, &delta(&mut sender, seq + 1)).unwrap();
    assert_eq!(complete.bytes[9], (seq + 1) as u8);

    assert_eq!(
        accept(&mut stalled, seq + 1, &delta(&mut sender, seq + 1)),
        None
    );
    assert!(stalled.needs_full());
}

#[test]
fn a_higher_epoch_ends_the_sets_and_the_base_of_a_lower_one() {
    let mut receiver = receiver();
    let old = parts_of(500);
    for part in &old[..3] {
        accept(&mut receiver, 500, part);
    }
    let mut sender = Sender::new(16, PART_LEN);
    let full = sender.parts(NEXT, 3, &[1; 40]).remove(0);
    let complete = receiver.accept(NEXT, 3, &full).unwrap().unwrap();
    assert_eq!((complete.epoch, complete.seq), (NEXT, 3));
    assert_eq!(accept(&mut receiver, 500, &old[3]), None);

    let mut foreign = sender.parts(NEXT, 4, &[1; 40]).remove(0);
    foreign.kind = PartKind::Delta { base_seq: 500 };
    assert_eq!(receiver.accept(NEXT, 4, &foreign), Ok(None));
    assert!(receiver.needs_full());
}

#[test]
fn two_states_of_one_cycle_are_a_disagreement() {
    let disagrees = Err(PartError::Disagrees {
        epoch: EPOCH,
        seq: 5,
    });
    let (one, mut receiver) = (parts_of(5), receiver());
    let other = Sender::new(1, PART_LEN).parts(EPOCH, 5, &state_of(6));
    accept(&mut receiver, 5, &one[0]);
    assert_eq!(
        receiver.accept(EPOCH, 5, &other[1]),
        disagrees,
        "while it comes"
    );
    let mut forged = one[0].clone();
    forged.bytes[0] ^= 1;
    assert_eq!(
        receiver.accept(EPOCH, 5, &forged),
        disagrees,
        "other bytes at one place"
    );
    for part in &one[1..3] {
        accept(&mut receiver, 5, part);
    }
    check_state(accept(&mut receiver, 5, &one[3]), 5);
    assert_eq!(
        receiver.accept(EPOCH, 5, &other[0]),
        disagrees,
        "when it is there"
    );
}

#[test]
fn a_state_with_another_digest_is_refused_and_the_next_one_is_taken() {
    let mut receiver = receiver();
    let mut parts = parts_of(5);
    parts[2].bytes[1] ^= 0x10;
    for part in &parts[..3] {
        assert_eq!(accept(&mut receiver, 5, part), None);
    }
    let refused = receiver.accept(EPOCH, 5, &parts[3]);
    let wanted = parts[0].state_digest;
    assert!(
        matches!(refused, Err(PartError::Digest { seq: 5, wanted: w, found }) if w == wanted && found != w)
    );
    assert!(receiver.needs_full());
    let mut last = None;
    for part in &parts_of(6) {
        last = accept(&mut receiver, 6, part);
    }
    check_state(last, 6);
    assert!(!receiver.needs_full());
}

#[test]
fn a_delta_that_does_not_fit_its_base_is_refused() {
    let mut receiver = receiver();
    let mut sender = Sender::new(16, PART_LEN);
    let full = sender.parts(EPOCH, 0, &[0; 100]);
    assert!(accept_all(&mut receiver, 0, &full).is_some());
    let mut state = [0; 100];
    state[99] = 1;
    let mut delta = sender.parts(EPOCH, 1, &state).remove(0);
    delta.bytes[0] += 1;
    let refused = receiver.accept(EPOCH, 1, &delta);
    assert_eq!(
        refused,
        Err(PartError::Delta {
            seq: 1,
            base_seq: 0
        })
    );
    assert!(receiver.needs_full());
}

#[test]
fn parts_beyond_the_limits_or_off_their_places_are_refused_and_change_nothing() {
    let mut receiver = receiver();
    accept(&mut receiver, 5, &parts_of(5)[0]);
    let before = receiver.clone();
    let sound = &parts_of(6)[1];
    let with = |change: &dyn Fn(&mut Part)| {
        let mut part = sound.clone();
        change(&mut part);
        part
    };
    let too_long = with(&|part| part.total_len = u32::MAX);
    let limit = Err(PartError::TooLong {
        found: u32::MAX,
        limit: 1024,
    });
    assert_eq!(receiver.accept(NEXT, 6, &too_long), limit);
    for part in [
        with(&|part| part.offset += 1),
        with(&|part| part.offset = u32::MAX),
        with(&|part| part.offset = part.total_len),
        with(&|part| (part.offset, part.bytes) = (part.total_len, vec![])),
        with(&|part| part.bytes.clear()),
        with(&|part| part.bytes.push(0)),
        with(&|part| part.total_len = 100),
        with(&|part| (part.total_len, part.offset) = (0, 0)),
    ] {
        let refused = receiver.accept(NEXT, 6, &part);
        assert!(
            matches!(refused, Err(PartError::Misplaced { .. })),
            "{part:?}"
        );
    }
    assert_eq!(receiver, before);
}

#[test]
fn an_empty_state_and_an_unchanged_one_get_through() {
    let (mut sender, mut receiver) = (Sender::new(16, PART_LEN), receiver());
    for seq in 0..3 {
        let parts = sender.parts(EPOCH, seq, &[]);
        assert_eq!(accept_all(&mut receiver, seq, &parts), Some(vec![]));
    }
    for seq in 3..6 {
        let parts = sender.parts(EPOCH, seq, &[5; 100]);
        assert_eq!(accept_all(&mut receiver, seq, &parts), Some(vec![5; 100]));
    }
}
