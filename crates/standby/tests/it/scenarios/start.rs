//! Nodes that start, together or beside a primary.

use bumpless_standby::event::{Event, Promotion};
use bumpless_standby::node::State;
use bumpless_standby::{Command, Epoch, NodeId};
use rand::RngExt;

use super::{is_promotion, pair};
use crate::sim::disk::Kind;
use crate::sim::loops::Ramp;
use crate::sim::{A, B, PERIOD_NS, Setup, World};

/// 24.
#[test]
fn two_that_start_without_hearing_each_other_wait_for_partner_authority_or_operator() {
    let mut world = World::new(Ramp::new(), Setup::new(24));
    world.commission();
    world.links.each_sync(|link| link.is_cut = true);
    world.run_to(10_000);
    assert_eq!(world.promotions(), 0);
    world.command(B, Command::Promote).unwrap();
    world.run_to(10_100);
    assert_eq!(world.promotions(), 1);
    assert_eq!(world.primary(), Some(B));
    world.links.each_sync(|link| link.is_cut = false);
    world.expect_pair_within(10);
    assert_eq!(world.promotions(), 1);
}

/// 24, with the actuator as authority: it lets one start, or orders the two.
#[test]
fn two_that_start_without_hearing_each_other_are_ordered_by_their_authority() {
    for phase_ns in [0, PERIOD_NS / 3, PERIOD_NS / 2] {
        let mut setup = Setup::new(24);
        setup.authority = Kind::Witness;
        setup.phase_ns = [0, phase_ns];
        let mut world = World::new(Ramp::new(), setup);
        world.commission();
        world.links.each_sync(|link| link.is_cut = true);
        world.run_to(1000);
        let primary = world.primary().expect("one of the two");
        assert_eq!(usize::from(world.actuator.level().owner().0), primary);
        assert!(world.promotions() <= 2);
    }
}

/// 25. 1e4 skews of up to 10 cycles.
#[test]
fn two_that_start_together_agree_on_the_lower_id_within_5_cycles_at_every_skew() {
    let mut rng = World::new(Ramp::new(), Setup::new(25)).rng;
    let mut latest = 0;
    for seed in 0..10_000 {
        let mut setup = Setup::new(seed);
        setup.phase_ns = [0, rng.random_range(0..10 * PERIOD_NS)];
        if rng.random_bool(0.5) {
            setup.phase_ns.swap(0, 1);
        }
        let last_start = setup.phase_ns[A].max(setup.phase_ns[B]) / PERIOD_NS;
        let mut world = World::new(Ramp::new(), setup);
        world.commission();
        world.run_to(last_start + 30);
        assert_eq!(world.promotions(), 1, "seed {seed}");
        let promoted = world.first(A, is_promotion).expect("the lower id");
        latest = latest.max(promoted - last_start);
        assert!(world.is_pair(), "seed {seed}: {:?}", world.state(B));
    }
    println!("cold start: at most {latest} cycles after the later node");
    assert!(latest <= 5, "{latest}");
}

/// 28.
#[test]
fn a_standby_that_starts_anew_without_hearing_the_primary_never_drives() {
    for authority in [Kind::LocalFile, Kind::Witness] {
        let mut setup = Setup::new(28);
        setup.authority = authority;
        let mut world = World::settled(Ramp::new(), setup);
        world.run_to(50);
        world.crash(B);
        world.links.each_sync(|link| link.is_cut = true);
        world.start(B);
        world.run_to(10_000);
        assert_eq!(world.accepted_by(B), 0);
        assert_eq!(world.promotions(), 0);
        assert_eq!(world.state(B), Some(State::Init));
        assert_eq!(world.ledger.bump_max, 0.0);
    }
}

/// 29. Its disk says 7, the level is 9 of B.
#[test]
fn a_node_with_an_old_epoch_on_its_disk_drives_only_under_a_new_one() {
    let mut world = World::new(Ramp::new(), Setup::new(29));
    world.crash(A);
    world.seats[A].disk.write(&7_u64.to_le_bytes());
    world
        .actuator
        .commission(Epoch::new(8, NodeId(0)), &mut world.actuator_disk)
        .unwrap();
    world.run(10);
    world.command(B, Command::Promote).unwrap();
    world.run(20);
    assert_eq!(world.actuator.level(), Epoch::new(9, NodeId(1)));
    world.start(A);
    world.settle(20);
    world.run_to(50);
    world.crash(B);
    world.run_to(60);
    let (cycle, first) = world.first_accepted(A).unwrap();
    assert_eq!((cycle, first.epoch), (53, Epoch::new(10, NodeId(0))));
    assert_eq!(world.promotions(), 1);
}

/// 30.
#[test]
fn a_node_with_an_empty_disk_is_a_new_life_and_drives_only_above_what_was_seen() {
    let mut world = pair(30);
    let life = world.node(A).incarnation();
    world.run_to(50);
    world.crash(A);
    world.seats[A].disk.erase();
    world.run_to(60);
    let level = world.actuator.level();
    world.start(A);
    assert_ne!(world.node(A).incarnation(), life);
    world.run_to(61);
    assert!(!matches!(world.state(A), Some(State::Qualified)));
    world.expect_pair_within(10);
    world.crash(B);
    world.run(10);
    let cause = |event: &Event| matches!(event, Event::Promoted { epoch, cause: Promotion::Takeover } if *epoch > level);
    assert!(world.first(A, cause).is_some());
    assert_eq!(world.last_accepted().unwrap().1.writer, A);
}

/// A node that was disqualified has let its partner start alone. When it recovers in that very cycle, it
/// listens first: it has the better claim, and must not use it any more.
#[test]
fn a_node_that_recovers_while_its_partner_starts_alone_lets_it() {
    for recovers_in in 75..95 {
        let mut world = pair(90);
        world.run_to(50);
        world.links.each_actuator(B, |link| link.is_cut = true);
        world.run_to(70);
        assert!(matches!(world.state(B), Some(State::Disqualified(_))));
        world.crash(A);
        world.run_to(75);
        for cycle in 75..120 {
            if cycle == recovers_in {
                world.links.each_actuator(B, |link| link.is_cut = false);
            }
            if cycle == 80 {
                world.start(A);
            }
            world.run_to(cycle + 1);
        }
        assert_eq!(world.promotions(), 1, "recovers in {recovers_in}");
        assert!(world.is_pair());
    }
}

/// A node that starts blank and hears nobody asks the authority; the standby that has the state, and is
/// about to take over, goes first.
#[test]
fn a_blank_node_that_starts_alone_lets_a_qualified_standby_take_over_first() {
    for starts_in in 50..60 {
        let mut setup = Setup::new(857);
        setup.authority = Kind::Witness;
        let mut world = World::settled(Ramp::new(), setup);
        world.run_to(50);
        world.crash(A);
        world.links.each_sync(|link| link.is_cut = true);
        world.run_to(starts_in);
        world.start(A);
        world.run_to(200);
        assert_eq!(world.accepted_by(A), 50, "starts in {starts_in}");
        assert_eq!(world.primary(), Some(B));
        assert_eq!(world.ledger.bump_max, 0.0);
    }
}
