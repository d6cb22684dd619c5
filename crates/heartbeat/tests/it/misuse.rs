//! Bad input: a typed error each, and nothing written.

use bumpless_heartbeat::{CAPACITY_MAX, HeartbeatError, HeartbeatTable, Label, SlotRole};
use bumpless_substrate::region::RegionError;

use crate::scene::{Scene, assert_refused, register};

#[test]
fn a_process_registers_itself_and_nobody_else() {
    let scene = Scene::new();
    let table = scene.table(1);
    let us = std::process::id();
    assert_refused!(table.register(0), HeartbeatError::ZeroPid);
    for other in [us + 1, 1, u32::MAX] {
        assert_refused!(table.register(other), HeartbeatError::ForeignPid { found, wanted }
            if found == other && wanted == us);
    }
    assert_eq!(table.iter_live().count(), 0);
}

#[test]
fn a_number_that_is_no_unit_is_refused_with_the_number() {
    let scene = Scene::new();
    let table = scene.table(1);
    let handle = register(&table);
    for number in [128_i32, -1, i32::MAX, i32::MIN] {
        let error = table.mark_in_flight(handle, number).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("unit {number}: the limit is 127")
        );
        assert_refused!(
            table.clear_in_flight(handle, number),
            HeartbeatError::UnitOutOfRange { .. }
        );
    }
    let error = table.mark_in_flight(handle, u64::MAX).unwrap_err();
    assert!(error.to_string().contains(&u64::MAX.to_string()), "{error}");
    assert!(table.snapshot(handle).unwrap().in_flight_bitmap.is_empty());
}

#[test]
fn marking_twice_and_completing_what_is_not_marked_are_errors_that_name_the_unit() {
    let scene = Scene::new();
    let table = scene.table(1);
    let handle = register(&table);
    table.mark_in_flight(handle, 64_u8).unwrap();
    assert_refused!(
        table.mark_in_flight(handle, 64_u8),
        HeartbeatError::AlreadyMarked { slot: 0, unit: 64 }
    );
    assert_refused!(
        table.clear_in_flight(handle, 65_u8),
        HeartbeatError::NotMarked { slot: 0, unit: 65 }
    );
    table.clear_in_flight(handle, 64_u8).unwrap();
    assert_refused!(
        table.clear_in_flight(handle, 64_u8),
        HeartbeatError::NotMarked { .. }
    );
}

#[test]
fn a_stale_handle_writes_nothing_into_the_next_owners_slot() {
    let scene = Scene::new();
    let table = scene.table(1);
    let stale = register(&table);
    table.unregister(stale).unwrap();
    let owner = register(&table);
    table.mark_in_flight(owner, 1_u8).unwrap();
    let before = scene.bytes();
    let label = Label::new("stale").unwrap();
    let refused = [
        table.beat(stale),
        table.mark_in_flight(stale, 2_u8),
        table.clear_in_flight(stale, 1_u8),
        table.set_role(stale, SlotRole::Coordinator),
        table.set_grace(stale, 1),
        table.set_label(stale, label),
        table.unregister(stale),
    ];
    for result in refused {
        assert_refused!(
            result,
            HeartbeatError::StaleHandle {
                slot: 0,
                generation: 1,
                ..
            }
        );
    }
    assert!(scene.bytes() == before, "something was written");
}

#[test]
fn a_handle_of_another_table_is_stale_or_out_of_range() {
    let scene = Scene::new();
    let table = scene.table(1);
    register(&table);
    let other = HeartbeatTable::create(scene.path("other"), 2).unwrap();
    let (inside, beyond) = (register(&other), register(&other));
    let error = table.beat(inside).unwrap_err();
    assert!(error.to_string().contains("another table"), "{error}");
    assert_refused!(
        table.beat(beyond),
        HeartbeatError::SlotOutOfRange {
            slot: 1,
            capacity: 1
        }
    );
}

#[test]
fn a_capacity_out_of_range_is_refused_with_the_limit() {
    let scene = Scene::new();
    let path = scene.path("table");
    for capacity in [0, CAPACITY_MAX + 1, 1 << 58, usize::MAX] {
        assert_refused!(HeartbeatTable::create(&path, capacity),
            HeartbeatError::Capacity { found, limit: CAPACITY_MAX, .. } if found == capacity);
        assert_refused!(
            HeartbeatTable::reset(&path, capacity),
            HeartbeatError::Capacity { .. }
        );
    }
    assert!(!path.exists());
}

#[test]
fn another_capacity_than_the_tables_is_refused_with_both() {
    let scene = Scene::new();
    let _table = scene.table(4);
    let create = HeartbeatTable::create(scene.path("table"), 5);
    assert_refused!(
        create,
        HeartbeatError::Region(RegionError::CapacityDiffers {
            found: 4,
            wanted: 5,
            ..
        })
    );
    let open = HeartbeatTable::open(scene.path("table"), 5);
    assert_refused!(open, HeartbeatError::Capacity { .. });
    assert_eq!(
        HeartbeatTable::open(scene.path("table"), 4)
            .unwrap()
            .capacity(),
        4
    );
}

#[test]
fn a_full_table_names_its_capacity_and_its_owners() {
    let scene = Scene::new();
    let table = scene.table(3);
    for _ in 0..3 {
        register(&table);
    }
    let text = table.register(std::process::id()).unwrap_err().to_string();
    let owner = format!("slot 2: pid {}", std::process::id());
    assert!(
        text.contains("all 3 slots are taken") && text.contains(&owner),
        "{text}"
    );
}

#[test]
fn a_check_tells_what_the_next_beat_would_be_told_and_stores_nothing() {
    let scene = Scene::new();
    let table = scene.table(2);
    let [late, gone] = [(); 2].map(|()| register(&table));
    let before = scene.bytes();
    table.check(late).unwrap();
    assert_eq!(scene.bytes(), before);
    table.unregister(gone).unwrap();
    assert_refused!(
        table.check(gone),
        HeartbeatError::StaleHandle { slot: 1, .. }
    );
    let other = HeartbeatTable::create(scene.path("other"), 2).unwrap();
    assert_refused!(
        other.check(late),
        HeartbeatError::StaleHandle { slot: 0, .. }
    );
    let _ = table.cells(0).unwrap().slot.fence(late.generation());
    assert_refused!(table.check(late), HeartbeatError::Fenced { slot: 0, .. });
    let next = register(&table);
    HeartbeatTable::reset(scene.path("table"), 2).unwrap();
    assert_refused!(table.check(next), HeartbeatError::Superseded { .. });
}
