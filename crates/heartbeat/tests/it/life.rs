//! From register to unregister, and what others see of it.

use bumpless_heartbeat::slot::FenceOutcome;
use bumpless_heartbeat::{
    Certificate, HeartbeatError, HeartbeatTable, Label, Profile, SlotRole, UnitSet, Worker,
};
use bumpless_substrate::locks::LockState;

use crate::scene::{Scene, assert_refused, register, units};

#[test]
fn a_registered_slot_shows_its_owner_its_units_and_its_last_beat() {
    let scene = Scene::new();
    let table = scene.table(4);
    let handle = register(&table);
    for unit in [0_u8, 31, 32, 127] {
        table.mark_in_flight(handle, unit).unwrap();
    }
    table.clear_in_flight(handle, 32_u8).unwrap();
    table.tick_global_epoch().unwrap();
    table.beat(handle).unwrap();
    let seen = table.snapshot(handle).unwrap();
    assert_eq!((seen.pid, seen.generation), (std::process::id(), 1));
    assert_eq!(seen.last_seen_epoch, 1);
    assert_eq!(seen.in_flight_bitmap, units(&[0, 31, 127]));
    assert_eq!((seen.role, seen.grace_epochs), (SlotRole::Worker, 0));
    let (certificate, lock) = if cfg!(bumpless_portable) {
        (Certificate::None, LockState::Unknown)
    } else {
        (Certificate::Armed, LockState::Held)
    };
    assert_eq!((seen.is_fenced, seen.certificate), (false, certificate));
    assert_eq!(table.lock_state(0).unwrap(), lock);
}

#[test]
fn a_slot_that_was_given_back_empty_is_taken_again_in_the_next_generation() {
    let scene = Scene::new();
    let table = scene.table(1);
    for generation in 1..=5 {
        let handle = register(&table);
        assert_eq!((handle.slot(), handle.generation()), (0, generation));
        table.mark_in_flight(handle, 9_u8).unwrap();
        table.clear_in_flight(handle, 9_u8).unwrap();
        table.unregister(handle).unwrap();
        assert_ne!(table.lock_state(0).unwrap(), LockState::Held);
        assert_eq!(table.snapshot(0_usize), None);
    }
}

#[test]
fn a_slot_that_was_given_back_with_units_is_given_to_nobody_until_they_are_acknowledged() {
    let scene = Scene::new();
    let table = scene.table(1);
    let handle = register(&table);
    table.mark_in_flight(handle, 9_u8).unwrap();
    table.unregister(handle).unwrap();
    let error = table.register(std::process::id()).unwrap_err();
    assert!(
        error.to_string().contains("1 units not acknowledged"),
        "{error}"
    );
    let slot = table.cells(0).unwrap().slot;
    let taken = slot.acknowledge(handle.generation(), units(&[9]));
    assert_eq!(taken.units, units(&[9]));
    assert_eq!(register(&table).generation(), 2);
}

#[test]
fn a_fenced_owner_is_told_by_every_call_and_may_register_anew() {
    let scene = Scene::new();
    let table = scene.table(1);
    let handle = register(&table);
    table.mark_in_flight(handle, 1_u8).unwrap();
    let slot = table.cells(0).unwrap().slot;
    assert_eq!(slot.fence(1), FenceOutcome::Fenced(units(&[1])));
    assert_refused!(
        table.beat(handle),
        HeartbeatError::Fenced {
            slot: 0,
            generation: 1
        }
    );
    assert_refused!(
        table.mark_in_flight(handle, 2_u8),
        HeartbeatError::Fenced { .. }
    );
    assert_refused!(
        table.clear_in_flight(handle, 1_u8),
        HeartbeatError::Fenced { .. }
    );
    assert!(table.snapshot(handle).unwrap().is_fenced);
    slot.acknowledge(1, units(&[1]));
    table.unregister(handle).unwrap();
    let handle = register(&table);
    table.beat(handle).unwrap();
    assert!(!table.snapshot(handle).unwrap().is_fenced);
}

#[test]
fn two_openings_in_one_process_exclude_each_other() {
    let scene = Scene::new();
    let (first, second) = (scene.table(1), scene.table(1));
    let handle = register(&first);
    assert_refused!(
        second.register(std::process::id()),
        HeartbeatError::TableFull { .. }
    );
    // It is the same table, so the handle is good for it; but the lock is the other opening's.
    second.beat(handle).unwrap();
    assert_refused!(
        second.unregister(handle),
        HeartbeatError::StaleHandle { .. }
    );
    first.unregister(handle).unwrap();
    assert_eq!(register(&second).generation(), 2);
}

#[test]
fn closing_a_table_gives_its_slots_back() {
    let scene = Scene::new();
    let table = scene.table(4);
    let handle = register(&table);
    register(&table);
    table.mark_in_flight(handle, 3_u8).unwrap();
    drop(table);
    let table = scene.table(4);
    assert_eq!(table.iter_live().count(), 0);
    let left = table.cells(handle.slot()).unwrap().slot.units(1);
    assert_eq!(left, units(&[3]), "to be handed back");
}

#[test]
fn a_worker_that_panics_leaves_its_units_to_be_handed_back() {
    let scene = Scene::new();
    let table = scene.table(1);
    let panicked = std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let worker = Worker::register(&table, Profile::default()).unwrap();
            worker.mark(7_u8).unwrap();
            worker.mark(8_u8).unwrap();
            worker.complete(8_u8).unwrap();
            worker.beat().unwrap();
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        worker.join()
    });
    assert!(panicked.is_err());
    assert_eq!(table.snapshot(0_usize), None);
    assert_eq!(table.cells(0).unwrap().slot.units(1), units(&[7]));
}

#[test]
fn role_grace_and_label_are_seen_and_can_be_changed() {
    let scene = Scene::new();
    let table = scene.table(4);
    let profile = Profile {
        role: SlotRole::Other(77),
        grace_epochs: 9,
        label: Label::new("first").unwrap(),
    };
    let handle = table.register_as(std::process::id(), profile).unwrap();
    assert_eq!(table.find_by_label("first"), Some(handle.slot()));
    table.set_role(handle, SlotRole::Coordinator).unwrap();
    table.set_grace(handle, u16::MAX).unwrap();
    table
        .set_label(handle, Label::new("second").unwrap())
        .unwrap();
    let seen = table.snapshot(handle).unwrap();
    assert_eq!(
        (seen.role, seen.grace_epochs),
        (SlotRole::Coordinator, u16::MAX)
    );
    assert_eq!(table.find_by_label("first"), None);
    assert_eq!(table.find_by_label("second"), Some(handle.slot()));
    let identity = table.identity(handle).unwrap();
    assert_eq!(identity.registration.profile.label.to_string(), "second");
    table.unregister(handle).unwrap();
    assert_eq!(table.identity(handle.slot()), None);
}

#[test]
fn the_threads_of_one_owner_share_its_units_without_losing_any() {
    let scene = Scene::new();
    let table = scene.table(1);
    let handle = register(&table);
    std::thread::scope(|scope| {
        for first in 0..4_u8 {
            let table = &table;
            scope.spawn(move || {
                for _ in 0..2_000 {
                    for unit in (first..128).step_by(4) {
                        table.mark_in_flight(handle, unit).unwrap();
                    }
                    for unit in (first + 4..128).step_by(4) {
                        table.clear_in_flight(handle, unit).unwrap();
                    }
                    table.beat(handle).unwrap();
                    table.clear_in_flight(handle, first).unwrap();
                }
            });
        }
    });
    assert_eq!(
        table.snapshot(handle).unwrap().in_flight_bitmap,
        UnitSet::EMPTY
    );
}

#[test]
fn reset_puts_an_empty_table_in_place_and_tells_the_old_one() {
    let scene = Scene::new();
    let old = scene.table(2);
    let handle = register(&old);
    let new = HeartbeatTable::reset(scene.path("table"), 3).unwrap();
    assert_eq!((new.capacity(), new.iter_live().count()), (3, 0));
    assert_refused!(old.beat(handle), HeartbeatError::Superseded { .. });
    assert_refused!(
        old.register(std::process::id()),
        HeartbeatError::Superseded { .. }
    );
    assert_refused!(new.beat(handle), HeartbeatError::StaleHandle { .. });
    old.unregister(handle).unwrap();
    assert_eq!(new.iter_live().count(), 0);
}
