//! Power, disks and memory are lost.

use bumpless_standby::authority::AuthorityError;
use bumpless_standby::event::{Alarm, Event, Reason};
use bumpless_standby::message::{Action, Request};
use bumpless_standby::node::State;
use bumpless_standby::{Command, Epoch, NodeId};

use super::{pair, raised};
use crate::sim::disk::{Central, Kind};
use crate::sim::loops::Ramp;
use crate::sim::{A, B, CLUSTER, Setup, World};

/// 23. The counter of B's disk is at its end.
#[test]
fn at_the_end_of_the_counter_a_node_alarms_and_never_takes_over() {
    let mut world = pair(23);
    world.run_to(50);
    world.crash(B);
    world.seats[B].disk.write(&(u64::MAX - 1).to_le_bytes());
    world.start(B);
    world.run_to(100);
    let exhausted = |event: &Event| {
        matches!(
            event,
            Event::NoBallot {
                error: AuthorityError::Exhausted { .. }
            }
        )
    };
    assert!(world.first(B, exhausted).is_some());
    assert!(world.first(B, raised(Alarm::NoBallot)).is_some());
    assert_eq!(world.state(B), Some(State::Syncing));
    world.crash(A);
    world.run_to(1000);
    assert_eq!(world.promotions(), 0);
    assert_eq!(world.accepted_by(B), 0);
}

/// 31.
#[test]
fn a_standby_that_cannot_save_its_epoch_takes_nothing_over_and_alarms() {
    for error in ["No space left on device", "Input/output error"] {
        let mut world = pair(31);
        world.run_to(50);
        world.crash(B);
        world.seats[B].disk.fail(Some(error));
        world.start(B);
        world.run_to(100);
        assert!(world.first(B, raised(Alarm::NoBallot)).is_some());
        assert_eq!(world.state(B), Some(State::Syncing));
        world.seats[B].disk.fail(None);
        world.expect_pair_within(4);
        assert!(!world.node(B).status().active_alarms.has(Alarm::NoBallot));

        world.crash(B);
        world.seats[B].disk.fail(Some(error));
        world.start(B);
        world.run(20);
        world.crash(A);
        world.run(1000);
        assert_eq!(world.promotions(), 0);
    }
}

/// 31, of the actuator as the authority.
#[test]
fn a_standby_whose_authority_cannot_save_its_epoch_alarms_until_it_can() {
    let mut setup = Setup::new(31);
    setup.authority = Kind::Witness;
    let mut world = World::settled(Ramp::new(), setup);
    world.run_to(50);
    world.actuator_disk.fail(Some("No space left on device"));
    world.crash(B);
    world.start(B);
    world.run_to(100);
    assert!(world.first(B, raised(Alarm::NoBallot)).is_some());
    assert!(world.node(B).status().active_alarms.has(Alarm::NoBallot));
    assert_eq!(world.promotions(), 0);
    world.actuator_disk.fail(None);
    world.expect_pair_within(4);
    assert!(!world.node(B).status().active_alarms.has(Alarm::NoBallot));
}

/// 31, of the actuator: an output whose epoch cannot be made durable is not applied.
#[test]
fn an_actuator_that_cannot_save_the_new_level_does_not_apply_the_output() {
    let mut world = pair(31);
    world.run_to(50);
    world.actuator_disk.fail(Some("No space left on device"));
    world.crash(A);
    world.run_to(60);
    assert_eq!(world.accepted_by(B), 0);
    assert!(world.actuator.counts().not_durable > 0);
    world.actuator_disk.fail(None);
    world.run_to(64);
    assert!(world.accepted_by(B) > 0);
    assert_eq!(world.primary(), Some(B));
}

/// A successor whose first outputs do not get through has an epoch that the actuator does not know yet.
#[test]
fn a_takeover_without_a_link_to_the_actuator_goes_on_when_the_link_is_back() {
    let mut world = pair(32);
    world.run_to(50);
    world.links.each_actuator(B, |link| link.is_cut = true);
    world.crash(A);
    world.run_to(60);
    assert_eq!(
        world.state(B),
        Some(State::Disqualified(Reason::ActuatorUnreachable))
    );
    world.links.each_actuator(B, |link| link.is_cut = false);
    world.run_to(63);
    assert_eq!(world.primary(), Some(B));
    assert!(world.accepted_by(B) > 0);
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 33. The level is known before the first output: none is refused.
#[test]
fn a_pair_that_lost_power_drives_again_above_the_actuators_level() {
    for keeps_disks in [true, false] {
        let mut world = pair(33);
        let level = Epoch::new(5, NodeId(1));
        world
            .actuator
            .commission(level, &mut world.actuator_disk)
            .unwrap();
        world.run_to(50);
        for node in [A, B] {
            world.crash(node);
            if !keeps_disks {
                world.seats[node].disk.erase();
            }
        }
        world.run_to(100);
        world.start(A);
        world.start(B);
        world.ledger.clear();
        world.run_to(107);
        let (cycle, first) = world.first_accepted(A).unwrap();
        assert!(cycle <= 105, "{cycle}");
        assert!(first.epoch > level);
        let refused = |event: &Event| matches!(event, Event::OutputRefused { .. });
        assert_eq!(world.count(refused), 0);
        assert!(world.is_pair());
    }
}

/// A request of A, as it was sent in this cycle under this epoch.
fn stale_output(world: &World<Ramp>, epoch: Epoch, cycle: u64) -> Request<i64> {
    Request {
        cluster: CLUSTER,
        node: NodeId(0),
        incarnation: 1,
        epoch,
        seq: world.seq(cycle),
        actuator: world.actuator.incarnation(),
        action: Action::Drive(-1),
    }
}

/// 34.
#[test]
fn an_actuator_with_its_memory_refuses_the_superseded_from_the_first_frame() {
    let mut world = pair(34);
    let old = world.actuator.level();
    world.run_to(50);
    world.crash(A);
    world.run_to(100);
    let request = stale_output(&world, old, 52);
    world.restart_actuator();
    world.inject_request(request);
    world.run_to(101);
    assert_eq!(world.actuator.counts().stale, 1);
    world.run_to(200);
    assert_eq!(world.accepted_by(A), 50);
    assert_eq!(world.primary(), Some(B));
    // The restart costs the outputs until the primary has heard the new actuator.
    assert!(world.cycles_without_output(100..200) <= 2);
}

/// 35. Both nodes confirm, and the primary goes on.
#[test]
fn an_actuator_without_memory_holds_until_both_nodes_confirm() {
    let mut world = pair(35);
    world.run_to(50);
    world.actuator_disk.erase();
    world.restart_actuator();
    world.run_to(51);
    assert!(world.actuator.held().is_none());
    world.run_to(60);
    assert!(world.actuator.is_claimed());
    assert!(world.first(A, raised(Alarm::ActuatorUnclaimed)).is_some());
    assert!(world.cycles_without_output(50..60) <= 5);
    world.run_to(100);
    assert_eq!(world.primary(), Some(A));
    assert!(world.is_pair());
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 35, and one node is dead: nobody but the operator can vouch.
#[test]
fn an_actuator_without_memory_takes_no_stale_output_while_one_node_is_dead() {
    let mut world = pair(35);
    let old = world.actuator.level();
    world.run_to(50);
    world.crash(A);
    world.run_to(60);
    world.actuator_disk.erase();
    world.restart_actuator();
    for cycle in 60..200 {
        let request = stale_output(&world, old, cycle);
        world.inject_request(request);
        world.run_to(cycle + 1);
    }
    assert!(world.actuator.held().is_none());
    let level = world.node(B).status().epoch;
    world
        .actuator
        .commission(level, &mut world.actuator_disk)
        .unwrap();
    world.run_to(210);
    let (_, last) = world.last_accepted().unwrap();
    assert_eq!((last.writer, last.seq), (B, world.seq(209)));
}

/// 59.
#[test]
fn without_its_authority_a_primary_goes_on_and_nobody_new_can_follow() {
    let central = Central::default();
    let mut setup = Setup::new(59);
    setup.authority = Kind::Central(central.clone());
    let mut world = World::settled(Ramp::new(), setup);
    world.run_to(50);
    central.set_down(true);
    world.crash(B);
    world.start(B);
    world.run_to(150);
    assert_eq!(world.cycles_without_output(0..150), 0);
    assert_eq!(world.state(B), Some(State::Syncing));
    assert!(world.first(B, raised(Alarm::NoBallot)).is_some());
    central.set_down(false);
    world.expect_pair_within(3);

    world.crash(A);
    world.run(20);
    assert_eq!(world.primary(), Some(B));
}

/// 59. Restored from an old snapshot, it grants what was granted before.
#[test]
fn an_authority_that_was_rolled_back_gives_nobody_an_epoch_below_the_actuators() {
    let central = Central::default();
    let mut setup = Setup::new(60);
    setup.authority = Kind::Central(central.clone());
    let mut world = World::settled(Ramp::new(), setup);
    for _ in 0..3 {
        world.run(20);
        let primary = world.primary().unwrap();
        world.command(primary, Command::SwitchOver).unwrap();
        world.run(20);
        assert!(world.is_pair());
    }
    let (level, counter) = (world.actuator.level(), central.counter());
    central.roll_back_to(0);
    world.crash(A);
    world.run(10);
    world.start(A);
    world.run(counter + 20);
    assert!(world.is_pair());
    assert!(world.actuator.level() >= level);
    world.crash(B);
    world.run(10);
    assert_eq!(world.last_accepted().unwrap().1.writer, A);
}
