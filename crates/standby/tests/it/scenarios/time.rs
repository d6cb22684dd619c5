//! Clocks, and what they must not do; alarms in time.

use bumpless_standby::event::{Alarm, Event};
use bumpless_standby::node::{Redundancy, State};
use bumpless_standby::{Config, ConfigError, Node, NodeId};

use super::{pair, raised};
use crate::sim::loops::{Plant, Ramp};
use crate::sim::{A, B, Clock, PERIOD_NS, Setup, World};

/// All events of a run in which A dies and comes back.
fn events_of_a_failure(clocks: [Clock; 2]) -> Vec<(u64, usize, Event)> {
    let mut setup = Setup::new(49);
    setup.clocks = clocks;
    // Away from the edge of the input's cycle.
    setup.phase_ns = [PERIOD_NS / 2; 2];
    let mut world = World::settled(Ramp::new(), setup);
    world.run_to(50);
    world.crash(A);
    world.run_to(70);
    world.start(A);
    world.run_to(300);
    assert!(world.is_pair());
    let events = world.ledger.events.iter();
    let mut events: Vec<_> = events
        .map(|logged| (logged.cycle, logged.node, logged.event.clone()))
        .collect();
    // Which of the two ticks first in a cycle is up to their clocks.
    events.sort_by_key(|(cycle, node, _)| (*cycle, *node));
    events
}

/// 49. Only differences on one clock count: its zero may be anywhere, and its rate a little off.
#[test]
fn clocks_an_hour_apart_and_slewed_by_500_ppm_change_nothing() {
    const HOUR_NS: i64 = 3_600_000_000_000;
    let exact = events_of_a_failure([Clock::default(); 2]);
    for (offset_ns, fast_ppm) in [
        (HOUR_NS, 0),
        (-HOUR_NS, 0),
        (HOUR_NS, 500),
        (-HOUR_NS, -500),
    ] {
        let clock = Clock {
            offset_ns,
            fast_ppm,
        };
        assert_eq!(events_of_a_failure([Clock::default(), clock]), exact);
        assert_eq!(events_of_a_failure([clock, Clock::default()]), exact);
    }
}

/// 50. One clock is 1 % fast, the other 1 % slow.
#[test]
fn a_drift_of_2_percent_brings_no_takeover_and_the_lease_ends_first() {
    let fast = Clock {
        fast_ppm: 10_000,
        ..Clock::default()
    };
    let slow = Clock {
        fast_ppm: -10_000,
        ..Clock::default()
    };
    let mut closest_ns = u64::MAX;
    for clocks in [[fast, slow], [slow, fast]] {
        for phase in 0..10 {
            let mut setup = Setup::new(50);
            setup.clocks = clocks;
            setup.phase_ns = [0, phase * PERIOD_NS / 10];
            let mut world = World::settled(Ramp::new(), setup);
            world.run_to(2_000 + 13 * phase);
            assert_eq!(world.promotions(), 0);
            world.links.each_sync_from(A, |link| link.is_cut = true);
            world.links.each_actuator(A, |link| link.is_cut = true);
            world.run(20);
            assert!(world.accepted_by(B) > 0);
            let (stopped_ns, began_ns) = (world.drove_at_ns[A], world.began_at_ns[B]);
            assert!(stopped_ns < began_ns, "{stopped_ns} {began_ns}");
            closest_ns = closest_ns.min(began_ns - stopped_ns);
        }
    }
    println!(
        "the last output of a cut-off primary is sent {closest_ns} ns or more before the takeover"
    );
}

/// 53.
#[test]
fn settings_that_would_make_every_pause_a_takeover_are_refused_when_a_node_is_made() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::new(1, NodeId(0), NodeId(1), PERIOD_NS);
        change(&mut config);
        Node::new(config, 1, Ramp::new().controller()).err()
    };
    assert_eq!(
        refused(|config| config.longest_pause_ns = 3 * PERIOD_NS),
        Some(ConfigError::TimeoutInsidePause {
            timeout_ns: 3 * PERIOD_NS,
            longest_pause_ns: 3 * PERIOD_NS
        })
    );
    let too_low = |found| {
        Some(ConfigError::TooLow {
            what: "miss_limit",
            found,
            limit: 2,
        })
    };
    assert_eq!(refused(|config| config.miss_limit = 0), too_low(0));
    assert_eq!(refused(|config| config.miss_limit = 1), too_low(1));
}

/// 55. The standby dies, and comes back.
#[test]
fn the_alarm_of_lost_redundancy_stays_until_the_standby_is_qualified_again() {
    let mut world = pair(55);
    world.run_to(50);
    world.crash(B);
    world.run_to(100);
    // The cause: 3 cycles without a word of it.
    assert_eq!(world.first(A, raised(Alarm::RedundancyLost)), Some(53));
    assert_eq!(world.state(A), Some(State::Solo));
    world.start(B);
    let mut was_qualified = false;
    for cycle in 101..120 {
        world.run_to(cycle);
        let status = world.node(A).status();
        let is_on = status.latched_alarms.has(Alarm::RedundancyLost);
        assert_eq!(is_on, status.redundancy != Redundancy::Full);
        assert!(is_on || was_qualified, "cycle {cycle}");
        was_qualified |= world.state(B) == Some(State::Qualified);
    }
    assert!(was_qualified);
    let restored = |event: &Event| *event == Event::RedundancyRestored;
    assert!(world.first(A, restored).is_some());
}

/// 55. The standby says in its next heartbeat that it is not qualified any more.
#[test]
fn a_standby_that_is_disqualified_is_an_alarm_of_the_primary_in_the_next_cycle() {
    let setup = Setup::new(55).with(|config| config.input_mismatch_disqualifies = true);
    let mut world = World::settled(Ramp::new(), setup);
    world.run_to(50);
    world.seats[B].sensor = Some(|input| input - 3);
    world.run_to(60);
    let disqualified = |event: &Event| matches!(event, Event::Disqualified { .. });
    let cause = world.first(B, disqualified).unwrap();
    let alarm = world.first(A, raised(Alarm::RedundancyLost)).unwrap();
    assert!(alarm <= cause + 1, "{cause} {alarm}");
}
