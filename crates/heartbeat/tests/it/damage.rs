//! Any bytes in the region: no call panics, hangs, or writes where it should not.

use std::os::unix::fs::FileExt;

use bumpless_heartbeat::{HeartbeatTable, Label};
use proptest::prelude::*;

use crate::scene::{Scene, register};

const SLOTS: usize = 8;
const PREAMBLE_LEN: usize = 64;
/// Header, two lines of occupancy, and 256 bytes for each slot.
const TABLE_LEN: usize = 384 + 256 * SLOTS;

/// Noise, or the same byte everywhere.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let len = TABLE_LEN - PREAMBLE_LEN;
    prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), len),
        1 => any::<u8>().prop_map(move |byte| vec![byte; len]),
        1 => Just(vec![0xff; len]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_the_bytes_every_call_returns_and_writes_nothing_outside(bytes in any_bytes()) {
        let scene = Scene::new();
        let table = scene.table(SLOTS);
        let handles = [register(&table), register(&table)];
        let before = scene.bytes();
        prop_assert_eq!(before.len(), TABLE_LEN);
        let file = std::fs::File::options().write(true).open(scene.path("table")).unwrap();
        file.write_all_at(&bytes, PREAMBLE_LEN as u64).unwrap();
        let label = Label::new("x").unwrap();
        for handle in handles {
            // Errors are as right as successes here.
            let _ = table.beat(handle);
            for unit in [0_u8, 31, 32, 127] {
                let _ = table.mark_in_flight(handle, unit);
                let _ = table.clear_in_flight(handle, unit);
            }
            let _ = table.set_grace(handle, 3);
            let _ = table.set_label(handle, label);
        }
        let observer = HeartbeatTable::open_read_only(scene.path("table")).unwrap();
        for looking in [&table, &observer] {
            for slot in 0..=SLOTS {
                let _ = format!("{:?} {:?}", looking.observe(slot), looking.identity(slot));
                if let Some(cells) = looking.cells(slot) {
                    let _ = looking.examine(slot, cells.slot.claimed_by());
                }
            }
            prop_assert!(looking.iter_live().count() <= SLOTS);
            let _ = looking.find_by_label("x");
        }
        let _ = table.tick_global_epoch();
        let _ = table.check_path();
        for slot in 0..SLOTS {
            let cells = table.cells(slot).unwrap();
            let claim = cells.slot.claimed_by();
            table.record_death(cells, claim);
            let _ = cells.verdict.acknowledge(cells.verdict.deaths().recorded());
            let _ = cells.slot.fence(claim.generation());
            let _ = cells.slot.acknowledge(claim.generation(), cells.slot.units(claim.generation()));
        }
        match table.register(std::process::id()) {
            Ok(handle) => {
                let _ = table.unregister(handle);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
        for handle in handles {
            let _ = table.unregister(handle);
        }
        let after = scene.bytes();
        prop_assert_eq!(after.len(), before.len());
        prop_assert_eq!(&after[..PREAMBLE_LEN], &before[..PREAMBLE_LEN]);
    }
}
