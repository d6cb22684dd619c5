//! The primary dies, hangs, or leaves; a node was not run for a while.

use bumpless_standby::Command;
use bumpless_standby::event::{Alarm, Demotion, Event};
use bumpless_standby::node::State;

use super::pair;
use crate::sim::loops::{Plant, Tank};
use crate::sim::{A, B, Setup, World};

const LOST: Event = Event::AlarmRaised {
    alarm: Alarm::RedundancyLost,
};

fn expect_takeover_at_53<P: Plant>(mut world: World<P>) {
    let level = world.actuator.level();
    world.run_to(50);
    world.crash(A);
    world.run_to(100);
    let (cycle, first) = world.first_accepted(B).unwrap();
    assert_eq!((cycle, first.seq, first.bump), (53, world.seq(53), 0.0));
    assert_eq!(world.actuator.level().counter(), level.counter() + 1);
    assert_eq!(world.promotions(), 1);
    assert_eq!(world.first(B, |event| *event == LOST), Some(53));
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 2.
#[test]
fn a_killed_primary_is_replaced_three_cycles_later_with_the_ideal_output() {
    expect_takeover_at_53(pair(1));
}

/// 2, with a loop in floating point: equal to the last bit.
#[test]
fn a_pid_loop_is_taken_over_without_any_difference() {
    expect_takeover_at_53(World::settled(Tank::default(), Setup::new(2)));
}

/// 3.
#[test]
fn a_primary_that_leaves_is_replaced_in_the_next_cycle_and_no_output_is_missing() {
    let mut world = pair(1);
    let level = world.actuator.level();
    world.run_to(50);
    world.command(A, Command::Leave).unwrap();
    world.run_to(80);
    assert_eq!(world.first_accepted(B).unwrap().0, 51);
    assert_eq!(world.cycles_without_output(0..80), 0);
    assert_eq!(world.actuator.level().counter(), level.counter() + 1);
    assert_eq!(world.state(A), Some(State::Maintenance));
    let left = |event: &Event| {
        matches!(
            event,
            Event::Demoted {
                cause: Demotion::Left,
                ..
            }
        )
    };
    assert_eq!(world.first(A, left), Some(51));
}

/// 4. Its first tick after the pause hears its successor: it never even sends.
#[test]
fn a_primary_that_hung_is_replaced_and_stands_down_in_its_first_cycle_back() {
    let mut world = pair(1);
    world.run_to(50);
    world.pause(A);
    world.run_to(200);
    assert_eq!(world.first_accepted(B).unwrap().0, 53);
    world.resume(A);
    world.run_to(201);
    assert_eq!(world.primary(), Some(B));
    world.run_to(300);
    assert_eq!(world.accepted_by(A), 50);
    assert_eq!(world.primary(), Some(B));
    assert_eq!(world.state(A), Some(State::Qualified));
}

/// 5. Nothing but the actuator's answer tells it.
#[test]
fn a_primary_that_hung_and_hears_nobody_stands_down_by_the_actuators_answer_alone() {
    let mut world = pair(1);
    world.run_to(50);
    world.pause(A);
    world.links.each_sync_from(B, |link| link.is_cut = true);
    world.run_to(200);
    world.resume(A);
    world.run_to(202);
    let refused = |event: &Event| {
        matches!(
            event,
            Event::Demoted {
                cause: Demotion::Refused,
                ..
            }
        )
    };
    assert_eq!(world.first(A, refused), Some(201));
    world.run_to(300);
    assert_eq!(world.accepted_by(A), 50);
    assert_eq!(world.primary(), Some(B));
}

/// 47.
#[test]
fn a_standby_that_was_not_run_for_50_ms_takes_nothing_over() {
    let mut world = pair(1);
    world.run_to(50);
    world.pause(B);
    world.run_to(55);
    world.resume(B);
    world.run_to(200);
    assert_eq!(world.promotions(), 0);
    assert_eq!(world.state(B), Some(State::Qualified));
}

/// 47, and what it missed is lost: it listens for a whole timeout before it judges.
#[test]
fn a_standby_that_was_not_run_counts_silence_only_from_then_on() {
    let mut world = pair(1);
    world.run_to(50);
    world.pause(B);
    world.links.each_sync_from(A, |link| link.is_cut = true);
    world.run_to(55);
    world.resume(B);
    world.crash(A);
    world.run_to(100);
    assert_eq!(world.first_accepted(B).unwrap().0, 58);
    assert_eq!(world.ledger.false_takeovers, 0);
}

/// 51. The clock went on, or stood still while only the cycles went on.
#[test]
fn a_primary_whose_machine_was_suspended_for_10_s_sends_nothing_before_it_stands_down() {
    for does_clock_go_on in [true, false] {
        let mut world = pair(1);
        world.run_to(50);
        world.pause(A);
        world.run_to(1050);
        if !does_clock_go_on {
            world.seats[A].clock.offset_ns -= 10_000_000_000;
        }
        world.resume(A);
        world.run_to(1100);
        assert_eq!(world.accepted_by(A), 50);
        let refused = |event: &Event| matches!(event, Event::OutputRefused { .. });
        assert_eq!(world.first(A, refused), None);
        assert_eq!(world.primary(), Some(B));
    }
}
