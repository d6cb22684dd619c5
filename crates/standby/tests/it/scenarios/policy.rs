//! Who shall be primary, how often, and whether the way there is known to work.

use bumpless_standby::Command;
use bumpless_standby::config::{FlapBudget, Preempt, SwitchTest};
use bumpless_standby::event::{Alarm, Event};

use super::raised;
use crate::sim::loops::Ramp;
use crate::sim::{A, B, PERIOD_NS, Setup, World};

fn preferring_a(preempt: Option<Preempt>) -> Setup {
    let mut setup = Setup::new(44).with(|config| config.preempt = preempt);
    setup.configs[A].preferred = true;
    setup
}

/// A dies and comes back every second, 100 times.
fn crash_loop(world: &mut World<Ramp>) {
    for round in 0..100 {
        world.run_to(50 + 100 * round);
        world.crash(A);
        world.run_to(100 + 100 * round);
        world.start(A);
    }
}

/// 44.
#[test]
fn a_preferred_node_that_dies_again_and_again_changes_the_role_once() {
    let mut world = World::settled(Ramp::new(), preferring_a(None));
    crash_loop(&mut world);
    world.run(10_000);
    assert_eq!(world.promotions(), 1);
    assert_eq!(world.primary(), Some(B));
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 44.
#[test]
fn a_preferred_node_gets_the_role_back_after_its_delay_and_not_before() {
    let delay_ns = 5_000_000_000;
    let mut world = World::settled(Ramp::new(), preferring_a(Some(Preempt { delay_ns })));
    crash_loop(&mut world);
    assert_eq!(world.promotions(), 1);
    let since = world.now();
    world.run(490);
    assert_eq!(world.promotions(), 1);
    world.run(30);
    assert_eq!(world.promotions(), 2);
    assert_eq!(world.primary(), Some(A));
    assert_eq!(world.cycles_without_output(since..world.now()), 0);
    world.run(10_000);
    assert_eq!(world.promotions(), 2);
}

/// At a start the preferred node is it, whatever the ids.
#[test]
fn of_two_that_start_together_the_preferred_one_drives() {
    let mut setup = Setup::new(44);
    setup.configs[B].preferred = true;
    let mut world = World::new(Ramp::new(), setup);
    world.commission();
    world.expect_pair_within(10);
    assert_eq!(world.primary(), Some(B));
}

#[test]
fn beyond_its_budget_a_node_takes_over_later_and_alarms() {
    let budget = FlapBudget {
        promotions: 2,
        window_ns: 3_600_000_000_000,
        hold_off_cycles: 10,
    };
    let setup = Setup::new(65).with(|config| config.flap_budget = Some(budget));
    let mut world = World::settled(Ramp::new(), setup);
    for takeover in 1..=3 {
        let since = world.now();
        world.crash(A);
        world.run(30);
        assert_eq!(world.primary(), Some(B));
        let driven = world.ledger.accepted.iter();
        let first = driven
            .filter(|one| one.writer == B)
            .map(|one| one.seq)
            .find(|seq| *seq >= world.seq(since))
            .unwrap();
        let waited = if takeover <= 2 { 3 } else { 13 };
        assert_eq!(first, world.seq(since + waited), "takeover {takeover}");
        let is_flapping = world.node(B).status().active_alarms.has(Alarm::Flapping);
        assert_eq!(is_flapping, takeover >= 2);
        world.start(A);
        world.expect_pair_within(10);
        world.command(B, Command::SwitchOver).unwrap();
        world.run(10);
        assert_eq!(world.primary(), Some(A));
    }
    assert_eq!(world.ledger.bump_max, 0.0);
}

fn tested(every_ns: u64) -> World<Ramp> {
    let test = SwitchTest {
        every_ns,
        dwell_cycles: 20,
    };
    let setup = Setup::new(46).with(|config| config.switch_test = Some(test));
    World::settled(Ramp::new(), setup)
}

/// 46. Every hour.
#[test]
fn a_switch_test_goes_there_and_back_every_hour_and_says_so() {
    const HOUR: u64 = 3_600_000_000_000 / PERIOD_NS;
    let mut world = tested(HOUR * PERIOD_NS);
    world.run_to(HOUR - 10);
    assert_eq!(world.promotions(), 0);
    world.run_to(HOUR + 100);
    assert_eq!(world.promotions(), 2);
    assert_eq!(world.cycles_without_output(HOUR - 100..HOUR + 100), 0);
    let passed = |event: &Event| *event == Event::SwitchTestPassed;
    assert_eq!(world.count(passed), 1);
    assert!(world.first(A, passed).is_some());
    assert!(world.is_pair());
    assert_eq!(world.primary(), Some(A));
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 46, by order: there and back at once.
#[test]
fn a_switch_test_by_order_returns_after_its_dwell_time() {
    let mut world = tested(10_000_000_000);
    world.run_to(50);
    world.command(A, Command::TestSwitch).unwrap();
    world.run_to(60);
    assert_eq!(world.primary(), Some(B));
    world.run_to(100);
    assert_eq!(world.primary(), Some(A));
    let passed = |event: &Event| *event == Event::SwitchTestPassed;
    assert_eq!(world.count(passed), 1);
}

/// 46. The partner dies while it is tested; no further test until somebody has looked.
#[test]
fn a_switch_test_that_fails_is_an_alarm_and_the_next_ones_are_left_out() {
    let mut world = tested(1_000_000_000);
    world.run_to(50);
    world.command(A, Command::TestSwitch).unwrap();
    world.run_to(60);
    assert_eq!(world.primary(), Some(B));
    world.crash(B);
    world.run_to(80);
    assert_eq!(world.primary(), Some(A));
    let failed = |event: &Event| *event == Event::SwitchTestFailed;
    assert!(world.first(A, failed).is_some());
    assert!(world.first(A, raised(Alarm::SwitchTestFailed)).is_some());
    world.start(B);
    world.expect_pair_within(10);
    let before = world.promotions();
    world.run(300);
    let skipped =
        |after_failure| move |event: &Event| *event == Event::SwitchTestSkipped { after_failure };
    assert!(world.count(skipped(true)) >= 2);
    assert_eq!(world.promotions(), before);

    world.command(A, Command::ClearAlarms).unwrap();
    world.run(200);
    assert_eq!(world.promotions(), before + 2);
    assert_eq!(world.primary(), Some(A));
}

/// 46.
#[test]
fn a_switch_test_without_a_qualified_standby_is_left_out() {
    let mut world = tested(1_000_000_000);
    world.run_to(50);
    world.crash(B);
    world.run_to(150);
    let skipped = Event::SwitchTestSkipped {
        after_failure: false,
    };
    assert!(world.first(A, |event| *event == skipped).is_some());
    assert_eq!(world.cycles_without_output(0..150), 0);
}
