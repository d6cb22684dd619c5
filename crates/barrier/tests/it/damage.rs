//! Any bytes in the region: every call returns.

use std::os::unix::fs::FileExt;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use bumpless_barrier::BarrierError;
use proptest::prelude::*;

use crate::scene::{LONG, Scene, barrier, register};

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

#[test]
fn an_epoch_that_is_set_far_back_under_a_waiter_is_damage_and_no_way_to_go_again() {
    let scene = Scene::new();
    let table = Box::leak(Box::new(scene.table(SLOTS)));
    let barrier = Box::leak(Box::new(barrier(table)));
    let (me, other) = (register(table), register(table));
    let mut member = barrier.join(me).unwrap();
    let _absent = Box::leak(Box::new(barrier.join(other).unwrap()));
    let (sender, told) = channel();
    // Left alone when it goes on for ever.
    std::thread::spawn(move || sender.send(member.wait()));
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(barrier.path())
        .unwrap();
    await_arrival(&file);
    // The stand, half of the half circle behind.
    file.write_all_at(
        &((1_u64 << 35) - (1 << 33)).to_ne_bytes(),
        PREAMBLE_LEN as u64,
    )
    .unwrap();
    let waited = told.recv_timeout(LONG).expect("the wait returns");
    assert!(
        matches!(waited, Err(BarrierError::NotMember { .. })),
        "{waited:?}"
    );
}

/// Ten thousand times as long as it takes.
const ARRIVES_WITHIN: Duration = Duration::from_secs(60);

/// Until the member in slot 0 has arrived.
fn await_arrival(file: &std::fs::File) {
    const ARRIVED: u64 = 1 << 35;
    let mut word = [0; 8];
    let began = Instant::now();
    while u64::from_ne_bytes(word) & ARRIVED == 0 {
        assert!(began.elapsed() < ARRIVES_WITHIN, "nobody has arrived");
        std::thread::sleep(Duration::from_millis(1));
        file.read_exact_at(&mut word, PREAMBLE_LEN as u64 + 64)
            .unwrap();
    }
}
