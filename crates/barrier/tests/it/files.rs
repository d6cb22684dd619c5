//! The barrier's file: its name, its length, who may open it.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};

use bumpless_barrier::{BarrierError, EpochBarrier, NAME_LEN_MAX};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::RegionError;

use crate::scene::{Scene, assert_refused, barrier, expect_whole, register};

#[test]
fn the_file_lies_beside_the_table_and_is_as_long_as_documented() {
    let scene = Scene::new();
    let table = scene.table(64);
    let barrier = barrier(&table);
    let name = format!("table.phase.{:016x}.barrier", table.creation_id());
    assert_eq!(barrier.path(), scene.path(&name));
    let file = fs::metadata(barrier.path()).unwrap();
    assert_eq!(
        (file.len(), file.permissions().mode() & 0o777),
        (640, 0o600)
    );
    EpochBarrier::remove(&table, "phase").unwrap();
    EpochBarrier::remove(&table, "phase").unwrap();
    assert!(!scene.path(&name).exists());
}

#[test]
fn a_name_that_is_none_is_refused_with_the_limit() {
    let scene = Scene::new();
    let table = scene.table(4);
    let long = "x".repeat(NAME_LEN_MAX + 1);
    for name in ["", "a/b", "..", "a.b", "a b", "ä", long.as_str()] {
        assert_refused!(
            EpochBarrier::create(&table, name),
            BarrierError::Name { ref found, limit: NAME_LEN_MAX } if found == name
        );
    }
    assert!(EpochBarrier::create(&table, &long[1..]).is_ok());
}

#[test]
fn what_is_no_barrier_is_refused() {
    let scene = Scene::new();
    let table = scene.table(4);
    let path = barrier(&table).path().to_owned();
    fs::write(&path, [7; 192]).unwrap();
    assert_refused!(
        EpochBarrier::create(&table, "phase"),
        BarrierError::Region(RegionError::Magic { .. })
    );
    fs::copy(scene.path("table"), &path).unwrap();
    assert_refused!(
        EpochBarrier::create(&table, "phase"),
        BarrierError::Region(RegionError::Kind { .. })
    );
}

#[test]
fn who_may_only_look_at_the_table_cannot_join() {
    let scene = Scene::new();
    let table = scene.table(4);
    let me = register(&table);
    let looking = HeartbeatTable::open_read_only(scene.path("table")).unwrap();
    let barrier = barrier(&looking);
    assert_refused!(barrier.join(me), BarrierError::Table(_));
}

#[test]
fn members_of_an_earlier_boot_are_forgotten() {
    /// Where a region's boot id lies.
    const BOOT_ID: u64 = 40;
    let scene = Scene::new();
    let table = scene.table(4);
    let path = {
        let barrier = barrier(&table);
        std::mem::forget(barrier.join(register(&table)).unwrap());
        barrier.path().to_owned()
    };
    let file = fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&[7; 16], BOOT_ID).unwrap();
    let barrier = barrier(&table);
    let mut member = barrier.join(register(&table)).unwrap();
    assert_eq!(expect_whole(member.wait()), 1);
}
