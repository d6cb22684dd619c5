//! What the nodes read and compute is not the same.

use bumpless_standby::Command;
use bumpless_standby::event::{Alarm, Event, Reason};
use bumpless_standby::node::State;

use super::{pair, raised};
use crate::sim::loops::{Plant, Ramp, Tank};
use crate::sim::{A, B, PERIOD_NS, Setup, World};

fn expect_no_takeover_for_1000_cycles<P: Plant>(mut world: World<P>) {
    world.crash(A);
    world.run(1000);
    assert_eq!(world.promotions(), 0);
    assert_eq!(world.accepted_by(B), 0);
}

/// 21. The state is whole and well-formed, and no healthy controller is ever in it.
#[test]
fn a_state_with_a_number_that_is_none_is_not_adopted_and_disqualifies() {
    let mut world = World::settled(Tank::default(), Setup::new(21));
    world.run_to(50);
    world.seats[A].sensor = Some(|[_, setpoint]| [f64::NAN, setpoint]);
    world.run_to(60);
    assert_eq!(world.node(B).adopted().1, world.seq(49));
    assert_eq!(
        world.state(B),
        Some(State::Disqualified(Reason::BadCheckpoint))
    );
    assert_eq!(world.first(B, raised(Alarm::BadCheckpoint)), Some(51));
    assert!(world.first(A, raised(Alarm::RedundancyLost)).is_some());
    expect_no_takeover_for_1000_cycles(world);
}

/// 21, out of its band instead of no number.
#[test]
fn a_state_outside_its_band_is_not_adopted_and_disqualifies() {
    let mut world = pair(21);
    world.run_to(50);
    world.seats[A].sensor = Some(|input| input + 10_000_000_000_000);
    world.run_to(60);
    assert_eq!(world.node(B).adopted().1, world.seq(49));
    assert_eq!(
        world.state(B),
        Some(State::Disqualified(Reason::BadCheckpoint))
    );
    expect_no_takeover_for_1000_cycles(world);
}

/// 38. What B reads is always a cycle old.
#[test]
fn a_standby_whose_inputs_are_a_cycle_late_alarms_and_takes_over_within_one_step() {
    let mut world = pair(38);
    world.seats[B].input_age_cycles = 1;
    world.run_to(50);
    assert!(world.first(B, raised(Alarm::InputMismatch)).is_some());
    assert!(world.first(B, raised(Alarm::StateMismatch)).is_some());
    world.crash(A);
    world.run_to(100);
    assert_eq!(world.first_accepted(B).unwrap().0, 53);
    assert!(world.ledger.bump_max <= 1.0, "{}", world.ledger.bump_max);
    println!("inputs late by 1 cycle: bump {}", world.ledger.bump_max);
}

/// The largest distance from the ideal when A is killed while checkpoints take so many cycles.
fn bump_at_latency<P: Plant>(plant: P, latency_cycles: u64) -> f64 {
    let mut setup = Setup::new(38);
    setup.latency_ns = 0;
    let mut world = World::new(plant, setup);
    world
        .links
        .each_sync(|link| link.latency_ns = latency_cycles * PERIOD_NS);
    world.commission();
    world.settle(20);
    world.run_to(50);
    assert_eq!(world.promotions(), 0);
    world.crash(A);
    world.run_to(100);
    let (cycle, _) = world.first_accepted(B).unwrap();
    assert_eq!(cycle, 52 + latency_cycles);
    world.ledger.bump_max
}

/// 38. The cycle's number pays for its way: no step twice, none left out, and no takeover either.
#[test]
fn the_latency_of_checkpoints_makes_no_bump() {
    for latency_cycles in 0..=3 {
        let bumps = [
            bump_at_latency(Ramp::new(), latency_cycles),
            bump_at_latency(Tank::default(), latency_cycles),
        ];
        println!("latency {latency_cycles}: bump {bumps:?} input steps");
        assert_eq!(bumps, [0.0, 0.0]);
    }
}

/// 39.
#[test]
fn inputs_that_differ_for_good_are_an_alarm_within_2_cycles() {
    let mut world = pair(39);
    world.run_to(50);
    world.seats[B].sensor = Some(|input| input + 1);
    world.run_to(100);
    let cycle = world.first(B, raised(Alarm::InputMismatch));
    assert!(cycle.is_some_and(|cycle| cycle <= 52), "{cycle:?}");
    assert_eq!(world.state(B), Some(State::Qualified));
    world.seats[B].sensor = None;
    world.run_to(110);
    let active = world.node(B).status().active_alarms;
    assert!(!active.has(Alarm::InputMismatch));
}

/// 39, where that is not acceptable.
#[test]
fn inputs_that_differ_for_good_disqualify_where_that_is_configured() {
    let setup = Setup::new(39).with(|config| config.input_mismatch_disqualifies = true);
    let mut world = World::settled(Ramp::new(), setup);
    world.run_to(50);
    world.seats[B].sensor = Some(|input| input + 1);
    world.run_to(53);
    assert_eq!(
        world.state(B),
        Some(State::Disqualified(Reason::InputMismatch))
    );
    expect_no_takeover_for_1000_cycles(world);
}

/// 42.
#[test]
fn a_standby_with_another_program_is_disqualified_and_only_an_operator_promotes_it() {
    let mut world = pair(42);
    world.run_to(50);
    world.crash(B);
    world.seats[B].config.program = 2;
    world.start(B);
    world.run_to(70);
    assert_eq!(
        world.state(B),
        Some(State::Disqualified(Reason::ProgramMismatch))
    );
    assert!(world.first(B, raised(Alarm::ProgramMismatch)).is_some());
    world.crash(A);
    world.run_to(1000);
    assert_eq!(world.promotions(), 0);
    world.command(B, Command::Promote).unwrap();
    world.run_to(1010);
    assert_eq!(world.primary(), Some(B));
    assert!(world.accepted_by(B) > 0);
}

/// 42, of the state.
#[test]
fn a_state_of_another_encoding_is_never_adopted() {
    let mut world = pair(42);
    world.run_to(50);
    world.crash(B);
    world.plant.schema = 2;
    world.start(B);
    world.run_to(500);
    assert_eq!(
        world.state(B),
        Some(State::Disqualified(Reason::SchemaMismatch))
    );
    assert!(world.first(B, raised(Alarm::SchemaMismatch)).is_some());
    assert_eq!(world.node(B).adopted().0, bumpless_standby::Epoch::NONE);
    let refused = |event: &Event| matches!(event, Event::CheckpointRefused { .. });
    assert_eq!(world.count(refused), 0);
    expect_no_takeover_for_1000_cycles(world);
}
