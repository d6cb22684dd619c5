//! Any bytes in the region: every call returns.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use bumpless_barrier::BarrierError;
use proptest::prelude::*;

use crate::scene::{Scene, barrier, register};

const SLOTS: usize = 8;
const PREAMBLE_LEN: usize = 64;
/// Preamble, gate, and a line of words.
const BARRIER_LEN: usize = 192;

/// Noise, or the same byte everywhere.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let len = BARRIER_LEN - PREAMBLE_LEN;
    prop_oneof![
        8 => proptest::collection::vec(any::<u8>(), len),
        1 => any::<u8>().prop_map(move |byte| vec![byte; len]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_the_bytes_every_call_returns(bytes in any_bytes(), owners in 1..SLOTS) {
        let scene = Scene::new();
        let table = scene.table(SLOTS);
        let barrier = barrier(&table);
        let mut member = barrier.join(register(&table)).unwrap();
        let others: Vec<_> = (1..owners).map(|_| register(&table)).collect();
        let file = std::fs::File::options().write(true).open(barrier.path()).unwrap();
        file.write_all_at(&bytes, PREAMBLE_LEN as u64).unwrap();
        for round in 0..4 {
            let waited = if round % 2 == 0 {
                member.wait_timeout(Duration::ZERO)
            } else {
                member.wait_quorum_timeout(2, Duration::from_micros(50))
            };
            let is_told = matches!(
                waited,
                Ok(_) | Err(BarrierError::TimedOut { .. } | BarrierError::NotMember { .. })
            );
            prop_assert!(is_told, "{waited:?}");
            let _ = format!("{waited:?} {}", barrier.epoch());
        }
        for other in others {
            // Its own word may say anything.
            drop(barrier.join(other));
        }
        member.leave();
        prop_assert_eq!(std::fs::metadata(barrier.path()).unwrap().len(), BARRIER_LEN as u64);
    }
}
