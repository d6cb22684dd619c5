//! A million cycles each.

use bumpless_standby::event::Event;

use crate::sim::loops::Ramp;
use crate::sim::{B, Setup, World};

/// 1.
#[test]
fn a_million_cycles_without_a_fault_bring_no_takeover_no_alarm_and_equal_states() {
    let mut world = World::settled(Ramp::new(), Setup::new(1));
    let equal = world.node(B).status().counts.states_equal;
    world.run_to(1_000_000);
    assert_eq!(world.promotions(), 0);
    assert_eq!(
        world.count(|event| matches!(event, Event::AlarmRaised { .. })),
        0
    );
    let counts = world.node(B).status().counts;
    assert_eq!(counts.states_equal - equal, 1_000_000);
    assert_eq!(counts.states_different, 0);
    assert_eq!(world.ledger.bump_max, 0.0);
    assert_eq!(world.ledger.accepted_count, 1_000_000);
}
