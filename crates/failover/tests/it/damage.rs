//! Any bytes in the region: a watchdog neither panics nor hangs, and acknowledges what it showed once.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use bumpless_failover::FailoverWatchdog;
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
    fn whatever_the_bytes_a_watchdog_returns_and_takes_nothing_twice(bytes in any_bytes()) {
        let scene = Scene::new();
        let table = scene.table(SLOTS);
        register(&table, &[1, 2]);
        let file = std::fs::File::options().write(true).open(scene.path("table")).unwrap();
        let (damaged, other) = (
            FailoverWatchdog::with_grace(&table, 1),
            FailoverWatchdog::with_grace(&table, 1),
        );
        prop_assert!(damaged.scan().is_empty());
        file.write_all_at(&bytes, PREAMBLE_LEN as u64).unwrap();
        for scan in 0..12 {
            let watchdog = if scan % 2 == 0 { &damaged } else { &other };
            let report = watchdog.scan();
            for (slot, seen) in &report.dead_slots {
                prop_assert!((slot.slot as usize) < SLOTS);
                let _ = format!("{slot} {seen:?}");
                if let Ok(taken) = watchdog.clear_dead_bitmap(*slot) {
                    prop_assert_eq!(taken.units.bits() & !slot.units.bits(), 0);
                }
                prop_assert!(watchdog.clear_dead_bitmap(*slot).is_err(), "twice: {}", slot);
            }
            watchdog.wait_for_change(Duration::ZERO);
        }
        let after = std::fs::read(scene.path("table")).unwrap();
        prop_assert_eq!(after.len(), TABLE_LEN);
    }
}
