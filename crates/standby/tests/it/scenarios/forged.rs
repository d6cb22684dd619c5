//! Messages that are not what they seem.

use bumpless_standby::event::{Alarm, Event};
use bumpless_standby::message::{Action, Heartbeat, Request};
use bumpless_standby::{Epoch, NodeId};

use super::{capture, pair, raised};
use crate::sim::{A, B, CLUSTER};

/// 13. Each path delivers a whole, well-formed heartbeat of the same cycle; one of the states is a lie.
#[test]
fn of_two_different_states_for_one_cycle_neither_is_adopted() {
    let mut world = pair(13);
    world.tap = Some(Box::new(|tapped| {
        let is_lie = tapped.from == A && tapped.path == 1 && (50..60).contains(&tapped.cycle);
        if is_lie && let Some(part) = &mut tapped.heartbeat.part {
            part.state_digest ^= 1;
        }
        true
    }));
    world.run_to(50);
    assert_eq!(world.node(B).adopted().1, world.seq(48));
    world.run_to(61);
    assert_eq!(world.node(B).adopted().1, world.seq(49));
    assert!(world.first(B, raised(Alarm::Disagree)).is_some());
    world.run_to(100);
    assert_eq!(world.node(B).adopted().1, world.seq(98));
    assert_eq!(world.promotions(), 0);
}

/// 18. Both nodes get everything back that they send; then A dies.
#[test]
fn own_heartbeats_that_come_back_are_no_partner() {
    let mut world = pair(18);
    let echo = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let into = echo.clone();
    world.tap = Some(Box::new(move |tapped| {
        into.borrow_mut()
            .push((tapped.from, tapped.heartbeat.clone()));
        true
    }));
    for cycle in 0..100 {
        if cycle == 50 {
            world.crash(A);
        }
        world.run_to(cycle + 1);
        for (from, heartbeat) in echo.borrow_mut().drain(..) {
            world.inject(from, 0, heartbeat);
        }
    }
    assert!(world.first(A, raised(Alarm::Loopback)).is_some());
    assert!(world.first(B, raised(Alarm::Loopback)).is_some());
    assert_eq!(world.first_accepted(B).unwrap().0, 53);
    assert!(world.node(B).status().counts.looped_back > 100);
}

/// 19.
#[test]
fn heartbeats_of_a_third_node_or_of_another_cluster_are_counted_and_nothing_else() {
    let changes: [fn(&mut Heartbeat); 2] = [
        |heartbeat| {
            heartbeat.node = NodeId(7);
            heartbeat.epoch = Epoch::new(heartbeat.epoch.counter() + 1, NodeId(7));
        },
        |heartbeat| heartbeat.cluster = CLUSTER + 1,
    ];
    for change in changes {
        let mut world = pair(19);
        let mut foreign = capture(&mut world, 40);
        change(&mut foreign);
        for cycle in 41..100 {
            if cycle == 50 {
                world.crash(A);
            }
            foreign.seq = world.seq(cycle + 1);
            world.inject(B, 0, foreign.clone());
            world.run_to(cycle + 1);
        }
        assert_eq!(world.first_accepted(B).unwrap().0, 53);
        assert_eq!(world.node(B).status().counts.foreign, 58);
    }
}

/// 22.
#[test]
fn an_epoch_2_to_the_31_ahead_is_not_believed_and_poisons_nobody() {
    let mut world = pair(22);
    let mut forged = capture(&mut world, 40);
    let level = world.node(B).status().epoch;
    let far = Epoch::new(level.counter() + (1 << 31), NodeId(0));
    forged.epoch = far;
    forged.seq = world.seq(45);
    world.inject(B, 0, forged);
    world.inject_request(Request {
        cluster: CLUSTER,
        node: NodeId(0),
        incarnation: 1,
        epoch: far,
        seq: world.seq(45),
        actuator: world.actuator.incarnation(),
        action: Action::Drive(7),
    });
    world.run_to(50);
    assert!(world.first(B, raised(Alarm::EpochJump)).is_some());
    assert_eq!(world.node(B).status().counts.implausible, 1);
    assert_eq!(world.actuator.counts().refused, 1);
    assert_eq!(world.actuator.level(), level);
    assert_eq!(world.node(B).adopted(), (level, world.seq(48)));
    world.crash(A);
    world.run_to(60);
    let (cycle, first) = world.first_accepted(B).unwrap();
    assert_eq!((cycle, first.epoch.counter()), (53, level.counter() + 1));
}

/// 18 and 22, and no more than that: what is forged raises the alarm once, not in every cycle.
#[test]
fn an_alarm_of_forged_messages_is_raised_once_until_it_is_cleared() {
    let mut world = pair(23);
    let mut forged = capture(&mut world, 40);
    forged.epoch = Epoch::new(forged.epoch.counter() + (1 << 31), NodeId(0));
    for cycle in 41..60 {
        forged.seq = world.seq(cycle);
        world.inject(B, 0, forged.clone());
        world.run_to(cycle + 1);
    }
    let jumps = |event: &Event| {
        *event
            == Event::AlarmRaised {
                alarm: Alarm::EpochJump,
            }
    };
    assert_eq!(world.count(jumps), 1);
    assert!(world.node(B).status().latched_alarms.has(Alarm::EpochJump));
    world.run_to(70);
    world
        .command(B, bumpless_standby::Command::ClearAlarms)
        .unwrap();
    world.run_to(71);
    assert!(world.node(B).status().latched_alarms.is_empty());
}
