//! What a standby of each mode begins with.

use bumpless_standby::{Epoch, Mode};

use crate::sim::loops::Ramp;
use crate::sim::{A, B, Setup, World};

/// Kills A at c50, and tells how far B's first output is from the ideal; unit: input steps.
fn first_bump(mode: Mode) -> (World<Ramp>, f64) {
    let setup = Setup::new(70).with(|config| config.mode = mode);
    let mut world = World::settled(Ramp::new(), setup);
    world.run_to(50);
    world.crash(A);
    world.run_to(60);
    let (cycle, first) = world.first_accepted(B).unwrap();
    assert_eq!(cycle, 53);
    (world, first.bump)
}

#[test]
fn a_hot_standby_goes_on_as_if_nothing_had_happened() {
    let (world, bump) = first_bump(Mode::Hot);
    assert_eq!(bump, 0.0);
    assert_eq!(world.node(B).status().redundancy_support, 3);
}

/// What A read after its last checkpoint was never run: three cycles.
#[test]
fn a_warm_standby_goes_on_from_the_last_checkpoint() {
    let (world, bump) = first_bump(Mode::Warm);
    assert!((2.4..=3.0).contains(&bump), "{bump}");
    assert_eq!(world.node(B).status().redundancy_support, 2);
}

#[test]
fn a_cold_standby_adopts_nothing_and_starts_from_the_initial_state() {
    let setup = Setup::new(70).with(|config| config.mode = Mode::Cold);
    let mut world = World::settled(Ramp::new(), setup);
    world.run_to(50);
    assert_eq!(world.node(B).adopted().0, Epoch::NONE);
    assert_eq!(world.node(B).controller().value, 0);
    world.crash(A);
    world.run_to(54);
    let held = world.actuator.held().unwrap();
    assert!((1..=10).contains(&held.value), "{}", held.value);
    assert_eq!(world.node(B).status().redundancy_support, 1);
}
