//! States that are larger than a datagram, and states that travel as changes.

use std::cell::Cell;
use std::rc::Rc;

use bumpless_standby::event::{Event, Reason};
use bumpless_standby::message::{Flags, PartKind};
use bumpless_standby::node::State;

use crate::sim::loops::Ramp;
use crate::sim::{A, B, PERIOD_NS, Setup, World};

/// 40. 55 fragments a cycle on each path; they are lost, repeated, and mixed with those of the cycle after.
#[test]
fn a_state_of_64_kib_is_adopted_whole_or_not_at_all() {
    let plant = Ramp::of_len(64 * 1024, true);
    let mut world = World::settled(plant, Setup::new(40));
    world.links.each_sync(|link| {
        link.loss = 0.05;
        link.repeat = 0.1;
        link.jitter_ns = PERIOD_NS * 3 / 2;
    });
    world.run_to(300);
    let adopted = world.node(B).adopted().1;
    assert!(adopted + 10 >= world.seq(300), "{adopted}");
    let counts = world.node(B).status().counts;
    assert_eq!(counts.states_different, 0);
    assert!(counts.states_equal > 100, "{counts:?}");
    assert_eq!(world.state(B), Some(State::Qualified));
    world.crash(A);
    world.run_to(320);
    assert!(world.accepted_by(B) > 0);
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 40. No fragment comes, every heartbeat does: the primary lives, the standby's state grows old.
#[test]
fn a_primary_whose_fragments_are_lost_lives_and_its_standby_is_no_longer_qualified() {
    let plant = Ramp::of_len(64 * 1024, true);
    let mut world = World::settled(plant, Setup::new(40));
    world.run_to(50);
    world.links.each_sync(|link| link.fragment_loss = 1.0);
    world.run_to(200);
    assert_eq!(world.promotions(), 0);
    assert_eq!(world.state(B), Some(State::Syncing));
    let stale = Event::Disqualified {
        reason: Reason::StaleCheckpoint,
    };
    assert!(world.first(B, |event| *event == stale).is_some());
    world.links.each_sync(|link| link.fragment_loss = 0.0);
    world.expect_pair_within(5);
}

/// Full states of 4 fragments, changes that ride in the heartbeat.
fn pair_with_changes() -> World<Ramp> {
    World::settled(Ramp::of_len(4096, false), Setup::new(41))
}

/// 41. Our changes are against the last full state: one that is lost harms no other.
#[test]
fn a_lost_change_costs_one_cycle_and_nothing_is_asked_for() {
    let mut world = pair_with_changes();
    let (lost, asked) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (into_lost, into_asked) = (lost.clone(), asked.clone());
    world.tap = Some(Box::new(move |tapped| {
        let part = tapped.heartbeat.part.as_ref();
        let is_delta = part.is_some_and(|part| part.kind != PartKind::Full);
        if tapped.from == A && is_delta && tapped.cycle % 3 == 0 {
            into_lost.set(into_lost.get() + 1);
            return false;
        }
        if tapped.heartbeat.flags.has(Flags::NEEDS_FULL) {
            into_asked.set(into_asked.get() + 1);
        }
        true
    }));
    for cycle in 1..200 {
        world.run_to(cycle);
        assert!(world.node(B).adopted().1 + 3 >= world.seq(cycle));
    }
    assert!(lost.get() > 100, "{}", lost.get());
    assert_eq!(asked.get(), 0);
}

/// 41. Without the full state no change is usable: it is asked for, and comes.
#[test]
fn a_lost_full_state_is_asked_for_and_adopted_3_cycles_later() {
    let mut world = pair_with_changes();
    let full_in = Rc::new(Cell::new(0));
    let into = full_in.clone();
    world.tap = Some(Box::new(move |tapped| {
        if tapped.from == A && tapped.heartbeat.part.is_none() {
            into.set(tapped.cycle);
        }
        true
    }));
    world.run_to(50);
    world.links.each_sync(|link| link.fragment_loss = 1.0);
    while full_in.get() < 50 {
        world.run(1);
    }
    world.links.each_sync(|link| link.fragment_loss = 0.0);
    let lost_in = full_in.get();
    world.run_to(lost_in + 4);
    assert_eq!(world.node(B).adopted().1, world.seq(lost_in - 1));
    assert_eq!(full_in.get(), lost_in + 3);
    world.run_to(lost_in + 5);
    assert_eq!(world.node(B).adopted().1, world.seq(lost_in + 3));
    assert_eq!(world.state(B), Some(State::Qualified));
    assert_eq!(world.node(B).status().counts.states_different, 0);
}
