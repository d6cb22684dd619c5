//! What an operator orders.

use bumpless_standby::event::{Alarm, Demotion, Event, Promotion};
use bumpless_standby::node::State;
use bumpless_standby::{Command, CommandError};

use super::{pair, raised};
use crate::sim::{A, B};

/// 45.
#[test]
fn a_switch_over_loses_no_cycle_and_both_say_that_it_is_done() {
    let mut world = pair(45);
    world.run_to(50);
    world.command(A, Command::SwitchOver).unwrap();
    assert_eq!(
        world.command(A, Command::SwitchOver),
        Err(CommandError::Busy)
    );
    world.run_to(100);
    assert_eq!(world.cycles_without_output(0..100), 0);
    let epoch = world.actuator.level();
    let promoted = Event::Promoted {
        epoch,
        cause: Promotion::SwitchOver,
    };
    assert_eq!(world.first(B, |event| *event == promoted), Some(51));
    let done = Event::SwitchOver { epoch };
    assert_eq!(world.first(A, |event| *event == done), Some(52));
    assert!(world.is_pair());
    assert_eq!(world.primary(), Some(B));
    assert_eq!(world.ledger.bump_max, 0.0);
}

/// 45.
#[test]
fn a_switch_over_is_refused_unless_the_standby_is_qualified() {
    let mut world = pair(45);
    assert!(matches!(
        world.command(B, Command::SwitchOver),
        Err(CommandError::NotPrimary { .. })
    ));
    world.crash(B);
    world.run_to(10);
    for command in [Command::SwitchOver, Command::Leave] {
        assert!(matches!(
            world.command(A, command),
            Err(CommandError::PartnerNotQualified { .. })
        ));
    }
    assert_eq!(
        world.command(A, Command::TestSwitch),
        Err(CommandError::NoSwitchTest)
    );
    world.run_to(20);
    assert_eq!(world.primary(), Some(A));
}

/// 45. The partner dies before it could hear of it.
#[test]
fn a_switch_over_to_a_partner_that_dies_ends_and_the_primary_drives_on() {
    let mut world = pair(45);
    world.run_to(50);
    world.command(A, Command::SwitchOver).unwrap();
    world.crash(B);
    world.run_to(100);
    let failed = |event: &Event| *event == Event::SwitchOverFailed;
    let cycle = world.first(A, failed);
    assert!(cycle.is_some_and(|cycle| cycle <= 60), "{cycle:?}");
    assert_eq!(world.cycles_without_output(0..100), 0);
    assert_eq!(world.primary(), Some(A));
    world.start(B);
    world.expect_pair_within(10);
    world.command(A, Command::SwitchOver).unwrap();
    world.run(10);
    assert_eq!(world.primary(), Some(B));
}

/// 45. It takes the role, and is not heard.
#[test]
fn a_switch_over_to_a_partner_that_is_not_heard_is_ended_by_the_actuator() {
    let mut world = pair(45);
    world.run_to(50);
    world.command(A, Command::SwitchOver).unwrap();
    world.links.each_sync_from(B, |link| link.is_cut = true);
    world.run_to(100);
    let refused = |event: &Event| {
        matches!(
            event,
            Event::Demoted {
                cause: Demotion::Refused,
                ..
            }
        )
    };
    assert_eq!(world.first(A, refused), Some(53));
    assert_eq!(world.primary(), Some(B));
    assert_eq!(world.cycles_without_output(0..100), 0);
}

#[test]
fn a_node_in_maintenance_takes_nothing_over_until_it_is_back() {
    let mut world = pair(60);
    world.run_to(50);
    let refused = CommandError::IsPrimary {
        command: Command::EnterMaintenance,
    };
    assert_eq!(world.command(A, Command::EnterMaintenance), Err(refused));
    assert!(matches!(
        world.command(B, Command::LeaveMaintenance),
        Err(CommandError::NotInMaintenance { .. })
    ));
    world.command(B, Command::EnterMaintenance).unwrap();
    world.run_to(60);
    assert_eq!(world.state(B), Some(State::Maintenance));
    assert_eq!(world.node(B).status().service_level, 0);
    assert_eq!(world.first(A, raised(Alarm::RedundancyLost)), Some(51));
    world.crash(A);
    world.run_to(200);
    assert_eq!(world.promotions(), 0);
    world.start(A);
    world.command(B, Command::LeaveMaintenance).unwrap();
    world.expect_pair_within(20);
}

/// The primary in a critical phase: who is qualified stays so, nobody else becomes it.
#[test]
fn while_synchronisation_is_held_nobody_becomes_qualified_and_who_is_stays_so() {
    let mut world = pair(61);
    world.command(A, Command::HoldSync(true)).unwrap();
    world.run_to(50);
    assert_eq!(world.state(B), Some(State::Qualified));
    world.crash(B);
    world.start(B);
    world.run_to(200);
    assert_eq!(world.state(B), Some(State::Syncing));
    assert_eq!(world.node(B).adopted().0, bumpless_standby::Epoch::NONE);
    world.command(A, Command::HoldSync(false)).unwrap();
    world.expect_pair_within(4);
    world.command(A, Command::HoldSync(true)).unwrap();
    world.run(10);
    world.crash(A);
    world.run(5);
    assert_eq!(world.primary(), Some(B));
    assert_eq!(world.ledger.bump_max, 0.0);
}

#[test]
fn an_operator_may_promote_a_standby_beside_a_primary_that_lives() {
    let mut world = pair(62);
    world.run_to(50);
    assert!(matches!(
        world.command(A, Command::Promote),
        Err(CommandError::IsPrimary { .. })
    ));
    world.command(B, Command::Promote).unwrap();
    world.run_to(60);
    let forced = |event: &Event| {
        matches!(
            event,
            Event::Promoted {
                cause: Promotion::Forced,
                ..
            }
        )
    };
    assert_eq!(world.first(B, forced), Some(50));
    assert_eq!(world.primary(), Some(B));
    assert!(world.is_pair());
    assert_eq!(world.cycles_without_output(0..60), 0);
}

/// A cause that is there stays an alarm, whoever clears it.
#[test]
fn clearing_alarms_ends_those_whose_cause_is_gone() {
    let mut world = pair(63);
    world.run_to(50);
    for link in &mut world.links.sync[0] {
        link.is_cut = true;
    }
    world.run_to(70);
    world.command(B, Command::ClearAlarms).unwrap();
    world.run_to(80);
    let latched = world.node(B).status().latched_alarms;
    assert!(latched.has(Alarm::Path0Degraded));
    for link in &mut world.links.sync[0] {
        link.is_cut = false;
    }
    world.run_to(90);
    let latched = world.node(B).status().latched_alarms;
    assert!(
        latched.has(Alarm::Path0Degraded),
        "latched until somebody looks"
    );
    world.command(B, Command::ClearAlarms).unwrap();
    assert!(world.node(B).status().latched_alarms.is_empty());
}

#[test]
fn a_hold_off_delays_the_takeover_by_as_many_cycles() {
    let mut world = pair(64);
    let node = world.seats[B].node.as_mut().unwrap();
    node.set_hold_off(5);
    world.run_to(50);
    world.crash(A);
    world.run_to(100);
    assert_eq!(world.first_accepted(B).unwrap().0, 58);
    assert_eq!(world.ledger.bump_max, 0.0);
}
