//! The fence: every refusal, an actuator that lost its memory, and the epochs that it grants.

use bumpless_standby::actuator::{ActuatorCounts, Held};
use bumpless_standby::message::{Action, Refusal, Reply, Request, Verdict};
use bumpless_standby::{Actuator, Epoch, NodeId};

use crate::plant::{A, B, CONFIG, JUMP_MAX, Memory, Plant, epoch, request};

const NACK_UNCLAIMED: Verdict = Verdict::Nack(Refusal::Unclaimed);

#[test]
fn outputs_of_the_owner_are_applied_answered_and_held() {
    let mut plant = Plant::at(Epoch::NONE);
    assert_eq!(plant.actuator.held(), None);
    let request = request(A, epoch(1, A), 41, Action::Drive(5));
    let reply = plant.send(&request).unwrap();
    assert_eq!(
        reply,
        Reply {
            cluster: 7,
            node: A,
            incarnation: 100,
            actuator: 1,
            epoch: epoch(1, A),
            seq: 41,
            level: epoch(1, A),
            last_seq: 41,
            verdict: Verdict::Ack,
        }
    );
    let held = Held {
        value: 5,
        epoch: epoch(1, A),
        seq: 41,
        at_ns: 10,
    };
    assert_eq!(plant.actuator.held(), Some(&held));
    assert_eq!(plant.drive(epoch(2, B), 3), Verdict::Ack);
    assert_eq!(plant.actuator.held().unwrap().epoch, epoch(2, B));
}

#[test]
fn requests_of_another_pair_or_another_node_are_not_answered() {
    let mut plant = Plant::at(Epoch::NONE);
    let sound = request(A, epoch(1, A), 1, Action::Drive(5));
    assert_eq!(
        plant.send(&Request {
            cluster: 8,
            ..sound.clone()
        }),
        None
    );
    let third = NodeId(2);
    assert_eq!(
        plant.send(&request(third, epoch(1, third), 1, Action::Drive(5))),
        None
    );
    assert_eq!(plant.actuator.counts().foreign, 2);
    assert_eq!(plant.actuator.held(), None);
    assert_eq!(plant.actuator.level(), Epoch::NONE);
}

/// Drives, and checks that the refusal left level and value alone.
fn check_refused(plant: &mut Plant, node: NodeId, epoch: Epoch, seq: u64, refusal: Refusal) {
    let (level, held) = (plant.actuator.level(), plant.actuator.held().cloned());
    let verdict = plant.ask(node, epoch, seq, Action::Drive(-1));
    assert_eq!(verdict, Verdict::Nack(refusal), "{epoch}, cycle {seq}");
    assert_eq!(plant.actuator.level(), level);
    assert_eq!(plant.actuator.held(), held.as_ref());
}

#[test]
fn superseded_replayed_foreign_and_absurd_outputs_are_refused_and_change_nothing() {
    let mut plant = Plant::at(epoch(5, A));
    assert_eq!(plant.drive(epoch(5, A), 10), Verdict::Ack);
    check_refused(&mut plant, A, epoch(4, A), 11, Refusal::Superseded);
    // Of equal counters the lower id ranks higher.
    check_refused(&mut plant, B, epoch(5, B), 11, Refusal::Superseded);
    check_refused(&mut plant, A, epoch(5, A), 10, Refusal::Replayed);
    check_refused(&mut plant, A, epoch(5, A), 9, Refusal::Replayed);
    check_refused(&mut plant, B, epoch(5, A), 11, Refusal::NotOwner);
    check_refused(&mut plant, B, epoch(6, A), 11, Refusal::NotOwner);
    let counts = ActuatorCounts {
        accepted: 1,
        refused: 6,
        stale: 2,
        ..Default::default()
    };
    assert_eq!(plant.actuator.counts(), counts);
}

#[test]
fn an_epoch_further_than_the_jump_bound_poisons_nothing_unless_it_was_granted_here() {
    let mut plant = Plant::at(epoch(5, A));
    for counter in [5 + JUMP_MAX + 1, 5 + (1 << 31), u64::MAX - 1, u64::MAX] {
        check_refused(&mut plant, B, epoch(counter, B), 1, Refusal::EpochJump);
        let refused = Verdict::Nack(Refusal::EpochJump);
        assert_eq!(plant.reserve(B, epoch(counter, B)), refused, "{counter}");
    }
    assert_eq!(plant.drive(epoch(6, B), 1), Verdict::Ack);
    assert_eq!(plant.drive(epoch(6 + JUMP_MAX, A), 1), Verdict::Ack);

    // Granted step by step, and far above the level by then.
    let mut above = plant.actuator.level();
    for _ in 0..3 {
        above = plant.granted(B, epoch(above.counter() + JUMP_MAX, B));
    }
    assert!(above.counter() > plant.actuator.level().counter() + 2 * JUMP_MAX);
    assert_eq!(plant.drive(above, 1), Verdict::Ack);
}

#[test]
fn at_the_end_of_the_counter_nothing_is_granted_and_nothing_wraps() {
    let last = Epoch::COUNTER_MAX;
    let mut plant = Plant::at(epoch(last - 1, A));
    assert_eq!(plant.granted(B, Epoch::NONE), epoch(last, B));
    assert_eq!(plant.drive(epoch(last, B), 1), Verdict::Ack);
    for node in [A, B] {
        assert_eq!(
            plant.reserve(node, Epoch::NONE),
            Verdict::Nack(Refusal::EpochJump)
        );
    }
    check_refused(&mut plant, A, epoch(last + 1, A), 1, Refusal::EpochJump);
    assert_eq!(plant.drive(epoch(last, B), 2), Verdict::Ack);
}

#[test]
fn a_level_that_cannot_be_made_durable_is_not_in_force() {
    let mut plant = Plant::at(epoch(5, A));
    assert_eq!(plant.drive(epoch(5, A), 1), Verdict::Ack);
    plant.memory.is_full = true;
    check_refused(&mut plant, B, epoch(6, B), 1, Refusal::NotDurable);
    assert_eq!(
        plant.reserve(B, Epoch::NONE),
        Verdict::Nack(Refusal::NotDurable)
    );
    // The level that is durable goes on.
    assert_eq!(plant.drive(epoch(5, A), 2), Verdict::Ack);
    assert_eq!(plant.actuator.counts().not_durable, 2);
    plant.memory.is_full = false;
    assert_eq!(plant.drive(epoch(6, B), 1), Verdict::Ack);
}

#[test]
fn after_a_restart_a_stale_writer_is_refused_from_its_first_frame() {
    let mut plant = Plant::at(epoch(5, A));
    assert_eq!(plant.drive(epoch(6, B), 50), Verdict::Ack);
    plant.restart();
    assert_eq!(plant.actuator.held(), None);
    check_refused(&mut plant, A, epoch(5, A), 90, Refusal::Superseded);
    // What the owner sent before it heard of the restart may be older than what was applied.
    let delayed = request(B, epoch(6, B), 49, Action::Drive(-1));
    for life in [0, 1] {
        let reply = plant
            .send(&Request {
                actuator: life,
                ..delayed.clone()
            })
            .unwrap();
        assert_eq!(reply.verdict, Verdict::Nack(Refusal::Restarted));
        assert_eq!((reply.level, reply.actuator), (epoch(6, B), 2));
    }
    assert_eq!(plant.drive(epoch(6, B), 51), Verdict::Ack);
    check_refused(&mut plant, B, epoch(6, B), 51, Refusal::Replayed);
    // A higher epoch has driven nothing yet: it needs no answer first.
    plant.restart();
    let takeover = request(A, epoch(7, A), 1, Action::Drive(1));
    assert_eq!(plant.send(&takeover).unwrap().verdict, Verdict::Ack);
}

#[test]
fn a_pair_that_was_repowered_learns_the_level_from_one_nack_and_drives_again() {
    let mut plant = Plant::at(epoch(5, A));
    let refused = plant
        .send(&request(B, epoch(1, B), 1, Action::Drive(1)))
        .unwrap();
    assert_eq!(refused.verdict, Verdict::Nack(Refusal::Superseded));
    assert_eq!(refused.level, epoch(5, A));
    let granted = plant.granted(B, refused.level);
    assert_eq!(granted, epoch(6, B));
    assert_eq!(plant.drive(granted, 2), Verdict::Ack);
}

#[test]
fn an_actuator_without_memory_holds_until_both_nodes_have_confirmed() {
    let mut plant = Plant::at(epoch(5, A));
    assert_eq!(plant.drive(epoch(6, B), 50), Verdict::Ack);
    plant.lose_memory();
    for stale in [epoch(5, A), epoch(6, B), epoch(7, A)] {
        check_refused(&mut plant, stale.owner(), stale, 51, Refusal::Unclaimed);
    }
    let probe = |plant: &mut Plant, node| plant.ask(node, Epoch::NONE, 0, Action::Probe);
    assert_eq!(probe(&mut plant, A), NACK_UNCLAIMED);
    assert_eq!(plant.reserve(A, Epoch::NONE), NACK_UNCLAIMED);

    let confirm = |plant: &mut Plant, node, epoch| plant.ask(node, epoch, 0, Action::Confirm);
    assert_eq!(confirm(&mut plant, A, epoch(5, A)), NACK_UNCLAIMED);
    assert_eq!(
        confirm(&mut plant, A, epoch(5, A)),
        NACK_UNCLAIMED,
        "one alone, twice"
    );
    // A confirmation from before the loss, and one of no epoch that there can be.
    let early = request(B, epoch(6, B), 0, Action::Confirm);
    assert_eq!(plant.send(&early).unwrap().verdict, NACK_UNCLAIMED);
    assert_eq!(confirm(&mut plant, B, epoch(u64::MAX, B)), NACK_UNCLAIMED);
    plant.memory.is_full = true;
    let not_durable = Verdict::Nack(Refusal::NotDurable);
    assert_eq!(confirm(&mut plant, B, epoch(6, B)), not_durable);
    assert!(!plant.actuator.is_claimed());
    check_refused(&mut plant, B, epoch(6, B), 52, Refusal::Unclaimed);
    plant.memory.is_full = false;
    assert_eq!(confirm(&mut plant, B, epoch(6, B)), Verdict::Ack);

    assert_eq!(plant.actuator.level(), epoch(6, B));
    check_refused(&mut plant, A, epoch(5, A), 53, Refusal::Superseded);
    assert_eq!(plant.drive(epoch(6, B), 53), Verdict::Ack);
    assert_eq!(probe(&mut plant, A), Verdict::Ack);
    assert_eq!(
        confirm(&mut plant, A, epoch(9, A)),
        Verdict::Ack,
        "changes nothing now"
    );
    assert_eq!(plant.actuator.level(), epoch(6, B));
    assert_eq!(plant.granted(A, Epoch::NONE), epoch(7, A));
    plant.restart();
    assert!(plant.actuator.is_claimed());
}

#[test]
fn a_confirmation_of_an_earlier_life_does_not_count_in_the_next() {
    let mut plant = Plant::blank();
    plant.ask(A, epoch(5, A), 0, Action::Confirm);
    plant.restart();
    assert_eq!(
        plant.ask(B, epoch(2, B), 0, Action::Confirm),
        NACK_UNCLAIMED
    );
    assert!(!plant.actuator.is_claimed());
}

#[test]
fn an_operator_claims_an_actuator_without_memory_and_never_lowers_its_level() {
    let mut plant = Plant::blank();
    plant.memory.is_full = true;
    let failed = plant.actuator.commission(epoch(3, A), &mut plant.memory);
    assert_eq!(failed.unwrap_err().to_string(), "cannot save: no space");
    assert!(!plant.actuator.is_claimed());
    plant.memory.is_full = false;
    plant
        .actuator
        .commission(epoch(3, A), &mut plant.memory)
        .unwrap();
    assert_eq!(plant.drive(epoch(4, B), 1), Verdict::Ack);
    plant
        .actuator
        .commission(epoch(2, A), &mut plant.memory)
        .unwrap();
    assert_eq!(plant.actuator.level(), epoch(4, B));
    check_refused(&mut plant, B, epoch(4, B), 1, Refusal::Replayed);
}

#[test]
fn grants_are_the_same_for_one_life_of_a_node_and_differ_for_everything_else() {
    let mut plant = Plant::at(epoch(5, A));
    let first = plant.granted(A, Epoch::NONE);
    assert_eq!(first, epoch(6, A));
    assert_eq!(
        plant.granted(A, Epoch::NONE),
        first,
        "asked again, as the reply was lost"
    );
    let other = plant.granted(B, Epoch::NONE);
    assert_eq!(other, epoch(7, B));
    let reborn = Request {
        incarnation: 101,
        ..request(A, Epoch::NONE, 0, Action::Reserve)
    };
    let verdict = plant.send(&reborn).unwrap().verdict;
    assert!(matches!(verdict, Verdict::Granted { epoch: e, .. } if e == epoch(8, A)));
    plant.restart();
    assert_eq!(
        plant.granted(B, Epoch::NONE),
        epoch(9, B),
        "what was granted is remembered"
    );
    // Used, so the next question gets another one.
    assert_eq!(plant.drive(epoch(9, B), 1), Verdict::Ack);
    assert_eq!(plant.granted(B, Epoch::NONE), epoch(10, B));
}

#[test]
fn a_grant_tells_for_how_long_no_output_was_accepted() {
    let idle = |plant: &mut Plant| match plant.reserve(B, Epoch::NONE) {
        Verdict::Granted { idle_ns, .. } => idle_ns,
        other => panic!("no grant: {other:?}"),
    };
    let mut plant = Plant::at(Epoch::NONE);
    assert_eq!(plant.drive(epoch(1, A), 1), Verdict::Ack);
    plant.now_ns += 500;
    assert_eq!(idle(&mut plant), 510);
    // A refused output does not count, nor does a clock that went back.
    check_refused(&mut plant, A, epoch(1, A), 1, Refusal::Replayed);
    assert_eq!(idle(&mut plant), 530);
    plant.now_ns = 0;
    assert_eq!(idle(&mut plant), 0);
    // A life knows nothing of the outputs before it.
    plant.now_ns = 9000;
    plant.restart();
    assert_eq!(idle(&mut plant), 10);
}

#[test]
fn a_memory_of_something_else_is_refused() {
    for len in [0, 16, 18] {
        let mut memory = Memory {
            bytes: Some(vec![1; len]),
            is_full: false,
        };
        let error = Actuator::<i64>::start(CONFIG, 1, 0, &mut memory).unwrap_err();
        let wanted = format!("cannot read what was saved: {len} bytes found, 17 wanted");
        assert_eq!(error.to_string(), wanted);
    }
}
