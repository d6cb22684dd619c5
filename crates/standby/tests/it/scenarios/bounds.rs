//! What a healthy partner cannot have said is not believed.

use bumpless_standby::actuator::CommissionError;
use bumpless_standby::{Epoch, NodeId};

use super::{capture, pair};
use crate::sim::{A, B};

/// A heartbeat of A with a cycle far in the future would make every later one look old.
#[test]
fn a_cycle_number_beyond_belief_hides_nothing_that_follows() {
    let mut world = pair(60);
    let mut forged = capture(&mut world, 40);
    forged.seq = u64::MAX - 1;
    world.inject(B, 0, forged);
    world.run_to(100);
    assert_eq!(world.promotions(), 0);
    assert_eq!(world.node(B).status().counts.implausible, 1);
    assert_eq!(world.node(B).adopted().1, world.seq(98));
    world.crash(A);
    world.run_to(110);
    assert_eq!(world.first_accepted(B).unwrap().0, 103);
}

/// A mistyped level must not lock the plant for ever.
#[test]
fn an_actuator_is_not_commissioned_at_the_end_of_the_counter() {
    let mut world = pair(61);
    let found = Epoch::new(u64::MAX, NodeId(0));
    let level = world.actuator.level();
    let refused = world.actuator.commission(found, &mut world.actuator_disk);
    assert_eq!(refused, Err(CommissionError::NothingAbove { found }));
    assert_eq!(world.actuator.level(), level);
}
