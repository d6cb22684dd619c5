//! The nodes live, and do not hear each other.

use bumpless_standby::event::{Alarm, Event};
use bumpless_standby::node::State;

use super::{capture, is_promotion, pair, raised};
use crate::sim::disk::Kind;
use crate::sim::loops::Ramp;
use crate::sim::{A, B, PERIOD_NS, Setup, World};

/// 7 and 8.
#[test]
fn a_pair_that_is_cut_apart_has_one_accepted_writer_and_heals_without_a_takeover() {
    let mut world = pair(3);
    world.run_to(50);
    world.links.each_sync(|link| link.is_cut = true);
    world.run_to(100);
    assert_eq!(world.first_accepted(B).unwrap().0, 53);
    let demoted = |event: &Event| matches!(event, Event::Demoted { .. });
    // Stale for at most the lease of 2 cycles.
    assert_eq!(world.first(A, demoted), Some(55));
    let overlap = world
        .ledger
        .accepted
        .iter()
        .filter(|one| one.writer == A && one.cycle >= world.seq(54));
    assert_eq!(overlap.count(), 0);
    assert_eq!(world.primary(), Some(B));

    world.links.each_sync(|link| link.is_cut = false);
    world.run_to(102);
    assert_eq!(world.primary(), Some(B));
    world.run_to(105);
    assert!(world.is_pair(), "{:?}", world.state(A));
    world.run_to(200);
    assert_eq!(world.promotions(), 1);
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 9.
#[test]
fn a_standby_that_alone_hears_nothing_takes_over_once_in_1e5_cycles() {
    let mut world = pair(3);
    world.run_to(50);
    world.links.each_sync_from(A, |link| link.is_cut = true);
    world.run_to(56);
    assert!(!matches!(
        world.state(A),
        Some(State::Primary | State::Solo)
    ));
    world.run_to(100_050);
    assert_eq!(world.promotions(), 1);
    assert_eq!(world.primary(), Some(B));
}

/// 10.
#[test]
fn a_primary_that_alone_hears_nothing_stays_and_both_sides_name_the_paths() {
    let mut world = pair(3);
    world.run_to(50);
    world.links.each_sync_from(B, |link| link.is_cut = true);
    world.run_to(1000);
    assert_eq!(world.promotions(), 0);
    for node in [A, B] {
        for alarm in [Alarm::Path0Degraded, Alarm::Path1Degraded] {
            let cycle = world.first(node, raised(alarm));
            assert!(
                cycle.is_some_and(|cycle| cycle <= 60),
                "node {node}: {cycle:?}"
            );
        }
    }
}

/// 11.
#[test]
fn a_dead_path_is_named_within_10_cycles_and_nothing_else_happens() {
    for path in [0, 1] {
        let mut world = pair(3);
        world.run_to(50);
        for link in &mut world.links.sync[path] {
            link.is_cut = true;
        }
        world.run_to(1000);
        assert_eq!(world.promotions(), 0);
        let alarms = [Alarm::Path0Degraded, Alarm::Path1Degraded];
        for node in [A, B] {
            let cycle = world.first(node, raised(alarms[path]));
            assert!(
                cycle.is_some_and(|cycle| cycle <= 60),
                "node {node}: {cycle:?}"
            );
            assert_eq!(world.first(node, raised(alarms[1 - path])), None);
        }
        assert!(world.is_pair());
    }
}

/// 12.
#[test]
fn a_path_that_delivers_100_ms_late_is_counted_and_its_states_are_not_adopted() {
    let mut world = pair(3);
    world.run_to(50);
    for link in &mut world.links.sync[0] {
        link.latency_ns = 100_000_000;
    }
    world.run_to(1000);
    assert_eq!(world.promotions(), 0);
    assert!(world.first(B, raised(Alarm::PathLate)).is_some());
    let paths = world.node(B).status().paths;
    assert!(paths[0].late > 900, "{paths:?}");
    assert_eq!(paths[1].late, 0);
    assert!(world.node(B).adopted().1 + 2 >= world.seq(1000));
    world.crash(A);
    world.run_to(1100);
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 15. An old heartbeat of the dead primary, every second cycle, is no life.
#[test]
fn old_heartbeats_of_a_dead_primary_do_not_delay_the_takeover() {
    let mut world = pair(3);
    let old = capture(&mut world, 40);
    world.run_to(50);
    world.crash(A);
    for cycle in 50..90 {
        if cycle % 2 == 0 {
            world.inject(B, 0, old.clone());
        }
        world.run_to(cycle + 1);
    }
    assert_eq!(world.first_accepted(B).unwrap().0, 53);
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 17. One path mixes up to 5 cycles, the other keeps the order.
#[test]
fn a_path_that_reorders_by_5_cycles_never_makes_a_state_go_back() {
    let mut world = pair(3);
    world.run_to(50);
    for link in &mut world.links.sync[0] {
        link.jitter_ns = 5 * PERIOD_NS;
    }
    world.run_to(10_000);
    assert_eq!(world.promotions(), 0);
    assert!(world.node(B).status().paths[0].reordered > 1000);
}

/// 17, on both paths: silence of 5 cycles is then normal, and the miss limit must say so.
#[test]
fn two_paths_that_reorder_by_5_cycles_need_a_miss_limit_of_6() {
    let mut world = World::settled(
        Ramp::new(),
        Setup::new(17).with(|config| config.miss_limit = 6),
    );
    world.links.each_sync(|link| link.jitter_ns = 5 * PERIOD_NS);
    world.run_to(10_000);
    assert_eq!(world.promotions(), 0);
}

/// 27. Both start by the authority's word, which knows of no output, in the same cycle.
#[test]
fn of_two_that_promote_in_the_same_cycle_the_higher_epoch_stays() {
    let mut setup = Setup::new(27);
    setup.authority = Kind::Witness;
    let mut world = World::new(Ramp::new(), setup);
    world.commission();
    world.links.each_sync(|link| link.is_cut = true);
    world.run_to(40);
    let first = [world.first(A, is_promotion), world.first(B, is_promotion)];
    assert!(first[A].is_some(), "nobody promoted");
    assert_eq!(first[A], first[B]);
    let writers = [world.accepted_by(A), world.accepted_by(B)];
    assert!(writers.iter().any(|count| *count <= 1), "{writers:?}");
    let primary = world.primary().expect("one stays");
    assert_eq!(usize::from(world.actuator.level().owner().0), primary);
    assert_eq!(world.promotions(), 2);
    world.links.each_sync(|link| link.is_cut = false);
    world.expect_pair_within(10);
}
