//! Looking at a table: also through a mapping that may not be written.

use bumpless_heartbeat::{HeartbeatError, HeartbeatTable, Observed, SlotRole};

use crate::scene::{Scene, assert_refused, register, units};

#[test]
fn an_observer_sees_every_owner_in_rising_order() {
    let scene = Scene::new();
    let table = scene.table(200);
    let handles: Vec<_> = (0..200).map(|_| register(&table)).collect();
    for handle in handles.iter().filter(|handle| handle.slot() % 3 != 0) {
        table.unregister(*handle).unwrap();
    }
    let observer = HeartbeatTable::open_read_only(scene.path("table")).unwrap();
    let live: Vec<usize> = observer.iter_live().map(|(slot, _)| slot).collect();
    assert!(live.iter().copied().eq((0..200).step_by(3)), "{live:?}");
    for slot in 0..=200_usize {
        assert_eq!(observer.observe(slot), table.observe(slot));
    }
    assert_eq!(observer.observe(200_usize), Observed::Vacant);
}

#[test]
fn an_observer_may_change_nothing_and_writes_nothing() {
    let scene = Scene::new();
    let table = scene.table(4);
    let handle = register(&table);
    table.mark_in_flight(handle, 5_u8).unwrap();
    let before = scene.bytes();
    let observer = HeartbeatTable::open_read_only(scene.path("table")).unwrap();
    assert!(observer.is_read_only());
    assert_refused!(
        observer.register(std::process::id()),
        HeartbeatError::ReadOnly { .. }
    );
    assert_refused!(
        observer.tick_global_epoch(),
        HeartbeatError::ReadOnly { .. }
    );
    assert_refused!(observer.check_path(), HeartbeatError::ReadOnly { .. });
    assert_refused!(observer.lock_state(0), HeartbeatError::ReadOnly { .. });
    observer.record_death(
        observer.cells(0).unwrap(),
        observer.cells(0).unwrap().slot.claimed_by(),
    );
    assert!(scene.bytes() == before, "something was written");
}

#[test]
fn a_handle_of_another_opening_is_refused_by_an_observer() {
    let scene = Scene::new();
    let table = scene.table(4);
    let handle = register(&table);
    table.mark_in_flight(handle, 5_u8).unwrap();
    let before = scene.bytes();
    let observer = HeartbeatTable::open_read_only(scene.path("table")).unwrap();
    let refused = [
        observer.beat(handle),
        observer.mark_in_flight(handle, 6_u8),
        observer.clear_in_flight(handle, 5_u8),
        observer.set_role(handle, SlotRole::Coordinator),
        observer.set_grace(handle, 5),
        observer.unregister(handle),
    ];
    for result in refused {
        assert_refused!(result, HeartbeatError::ReadOnly { .. });
    }
    let seen = observer.snapshot(handle).unwrap();
    assert_eq!(seen.in_flight_bitmap, units(&[5]));
    assert!(scene.bytes() == before, "something was written");
}
