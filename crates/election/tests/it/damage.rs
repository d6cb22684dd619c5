//! Any bytes in the region: every call returns, and writes nothing outside.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use proptest::prelude::*;

use crate::scene::{Scene, open, register};

const SLOTS: usize = 8;
const PREAMBLE_LEN: usize = 64;
/// The leader's line, and a line of candidacies.
const ELECTION_LEN: usize = 64 + 64 + 64;

/// Noise, the same byte everywhere, or a seat of somebody in small numbers.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let len = ELECTION_LEN - PREAMBLE_LEN;
    prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), len),
        1 => any::<u8>().prop_map(move |byte| vec![byte; len]),
        4 => (proptest::collection::vec(0..3_u8, len), 0..3_u64, any::<u64>()).prop_map(
            |(mut bytes, holder, half_laps)| {
                let seat = holder << 48 | 1 << 20 | holder;
                bytes[..8].copy_from_slice(&seat.to_ne_bytes());
                bytes[8..16].copy_from_slice(&half_laps.to_ne_bytes());
                bytes
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_the_bytes_every_call_returns_and_writes_nothing_outside(
        bytes in any_bytes(),
        preempts: bool,
    ) {
        let scene = Scene::new();
        let table = scene.table(SLOTS);
        let handles = [(); 3].map(|()| register(&table));
        let election = open(&table);
        let election = if preempts { election.preempting() } else { election };
        let path = scene.path("table.job.election");
        let before = std::fs::read(&path).unwrap();
        prop_assert_eq!(before.len(), ELECTION_LEN);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.write_all_at(&bytes, PREAMBLE_LEN as u64).unwrap();
        for handle in handles {
            // Errors are as right as successes here.
            let claimed = election.try_claim_leadership(handle);
            let _ = format!("{claimed:?}");
            let _ = election.am_i_leader(handle);
            let _ = election.beat_as_leader(handle);
            if let Some(leader) = election.current_leader() {
                prop_assert!((leader.slot as usize) < SLOTS);
                prop_assert_eq!(leader.pid, std::process::id());
            }
            let _ = election.wait_for_change(election.current_leader(), Duration::ZERO);
            let _ = election.step_down(handle);
            let _ = election.election_term();
        }
        let after = std::fs::read(&path).unwrap();
        prop_assert_eq!(after.len(), before.len());
        prop_assert_eq!(&after[..PREAMBLE_LEN], &before[..PREAMBLE_LEN]);
        open(&table);
    }
}
