//! The transitions of VRRPv3, as far as a hot-standby pair has them, as a table.
//!
//! V1 to V20 are the rows of the table in `docs/standby.md`, which also says which rows have no
//! counterpart here, and why.

use bumpless_standby::event::Event;
use bumpless_standby::message::{Heartbeat, Standing};
use bumpless_standby::{Command, Epoch, NodeId};

use super::{capture, pair};
use crate::sim::loops::Ramp;
use crate::sim::{A, B, CLUSTER, World};

struct Row {
    name: &'static str,
    /// Happens at c50 to a pair in which A drives.
    event: fn(&mut World<Ramp>),
    /// Looked at after so many cycles more.
    cycles: u64,
    primary: Option<usize>,
    promotions: usize,
}

const fn row(
    name: &'static str,
    event: fn(&mut World<Ramp>),
    cycles: u64,
    primary: Option<usize>,
    promotions: usize,
) -> Row {
    Row {
        name,
        event,
        cycles,
        primary,
        promotions,
    }
}

const ROWS: [Row; 17] = [
    row("V2 start beside a primary", start_anew, 3, Some(A), 0),
    row("V3 backup leaves", backup_leaves, 100, Some(A), 0),
    row("V4 before the timeout", primary_dies, 3, None, 0),
    row("V4 at the timeout", primary_dies, 4, Some(B), 1),
    row(
        "V5 primary says that it leaves",
        primary_leaves,
        2,
        Some(B),
        1,
    ),
    row(
        "V6 one heartbeat of three",
        two_of_three_lost,
        100,
        Some(A),
        0,
    ),
    row("V7 a heartbeat of the past", old_heartbeat, 4, Some(B), 1),
    row("V10 nothing", |_| {}, 100, Some(A), 0),
    row("V11 backup leaves", backup_leaves, 10, Some(A), 0),
    row("V12 higher epoch", |world| claim(world, 1, B), 2, None, 0),
    row(
        "V13 equal, from the higher id",
        |world| claim(world, 0, B),
        2,
        Some(A),
        0,
    ),
    row(
        "V13 equal, from the lower id",
        equal_from_lower_id,
        2,
        None,
        1,
    ),
    row(
        "V14 lower epoch",
        |world| claim(world, -1, B),
        2,
        Some(A),
        0,
    ),
    row("V15 primary leaves", primary_leaves, 100, Some(B), 1),
    row("V16 another cluster", foreign_heartbeat, 4, Some(B), 1),
    row(
        "V20 primary cut off",
        |world| cut_off(world, A),
        20,
        Some(B),
        1,
    ),
    row(
        "V20 backup cut off",
        |world| cut_off(world, B),
        100,
        Some(A),
        0,
    ),
];

#[test]
fn each_transition_of_vrrp_that_a_pair_has_comes_as_in_the_table() {
    for row in &ROWS {
        let mut world = pair(98);
        world.run_to(50);
        (row.event)(&mut world);
        let from = world.now();
        world.run_to(from + row.cycles);
        let found = (world.primary(), world.promotions());
        assert_eq!(found, (row.primary, row.promotions), "{}", row.name);
    }
}

/// V19. Each change of role is told once, by the node that changes; the winner of a time with two primaries
/// hears of the end of it.
#[test]
fn each_change_of_role_is_told_once() {
    let mut world = pair(99);
    world.run_to(50);
    world.links.each_sync(|link| link.is_cut = true);
    world.run_to(100);
    world.links.each_sync(|link| link.is_cut = false);
    world.run_to(200);
    let told = |wanted: fn(&Event) -> bool| {
        let events = world.ledger.events.iter();
        let of = events.filter(|logged| wanted(&logged.event));
        of.map(|logged| logged.node).collect::<Vec<_>>()
    };
    assert_eq!(told(|event| matches!(event, Event::Promoted { .. })), [B]);
    assert_eq!(told(|event| matches!(event, Event::Demoted { .. })), [A]);
    assert_eq!(told(|event| matches!(event, Event::Qualified { .. })), [A]);
    assert_eq!(told(|event| *event == Event::RedundancyRestored), [A, B]);
}

fn start_anew(world: &mut World<Ramp>) {
    world.crash(B);
    world.start(B);
}

fn primary_dies(world: &mut World<Ramp>) {
    world.crash(A);
}

fn primary_leaves(world: &mut World<Ramp>) {
    let left = world.command(A, Command::Leave);
    assert_eq!(left, Ok(()));
}

fn backup_leaves(world: &mut World<Ramp>) {
    let left = world.command(B, Command::EnterMaintenance);
    assert_eq!(left, Ok(()));
}

fn two_of_three_lost(world: &mut World<Ramp>) {
    world.tap = Some(Box::new(|tapped| {
        tapped.from == B || tapped.cycle.is_multiple_of(3)
    }));
}

fn old_heartbeat(world: &mut World<Ramp>) {
    let mut old = capture(world, world.now());
    old.seq -= 10;
    world.crash(A);
    // It was heard in the cycle that it was captured in: the timeout runs from there.
    world.inject(B, 0, old);
}

fn foreign_heartbeat(world: &mut World<Ramp>) {
    let mut foreign = capture(world, world.now());
    foreign.seq += 1;
    foreign.cluster = CLUSTER + 1;
    world.crash(A);
    world.inject(B, 0, foreign);
}

fn cut_off(world: &mut World<Ramp>, node: usize) {
    world.links.each_actuator(node, |link| link.is_cut = true);
}

/// A heartbeat of `from`, which says that it is primary, so many counters above the level; `from` is dead.
fn claim(world: &mut World<Ramp>, above: i64, from: usize) {
    let level = world.actuator.level();
    let epoch = Epoch::new(
        level.counter().wrapping_add_signed(above),
        NodeId(from as u8),
    );
    let claimed = Heartbeat {
        node: NodeId(from as u8),
        incarnation: world.node(from).incarnation(),
        echo: world.node(1 - from).incarnation(),
        epoch,
        seq: world.seq(world.now()),
        standing: Standing::Primary,
        part: None,
        ..capture_own(world, 1 - from)
    };
    world.crash(from);
    world.inject(1 - from, 0, claimed);
}

/// Any heartbeat, to be changed.
fn capture_own(world: &mut World<Ramp>, from: usize) -> Heartbeat {
    let captured = std::rc::Rc::new(std::cell::RefCell::new(None));
    let into = captured.clone();
    world.tap = Some(Box::new(move |tapped| {
        if tapped.from == from {
            *into.borrow_mut() = Some(tapped.heartbeat.clone());
        }
        true
    }));
    world.run(1);
    world.tap = None;
    captured.take().expect("it sends in every cycle")
}

fn equal_from_lower_id(world: &mut World<Ramp>) {
    world.crash(A);
    world.run(4);
    assert_eq!(world.primary(), Some(B));
    world.start(A);
    claim(world, 0, A);
}
