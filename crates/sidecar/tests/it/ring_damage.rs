//! Any bytes in a ring's file: every call returns, and nothing false is made of them by us.

use std::os::unix::fs::FileExt;
use std::path::Path;

use bumpless_sidecar::ring::PATIENCE_NS;
use bumpless_sidecar::{BlackBox, BlackBoxReader, Event, EventKind, Observation, ObservationRing};
use bumpless_substrate::region::Access;
use proptest::prelude::*;

use crate::scene::Scene;

const PREAMBLE_LEN: u64 = 64;
const LINES_LEN: usize = 192;
const CAPACITY: u32 = 8;
/// Where the lines have tail, mode and head.
const TAIL: usize = 0;
const MODE: usize = 8;
const HEAD: usize = 64;

/// Noise, or the same byte everywhere, with words that may be close to each other or to an end.
fn any_bytes(slot_len: usize) -> impl Strategy<Value = Vec<u8>> {
    let len = LINES_LEN + CAPACITY as usize * slot_len;
    let noise = prop_oneof![
        4 => proptest::collection::vec(any::<u8>(), len),
        1 => any::<u8>().prop_map(move |byte| vec![byte; len]),
    ];
    let close = prop_oneof![0..40_u64, Just(u64::MAX), any::<u64>()];
    (noise, proptest::option::of(close), -20..20_i64, 0..4_u64).prop_map(
        |(mut bytes, tail, distance, mode)| {
            let mut set =
                |at: usize, word: u64| bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
            if let Some(tail) = tail {
                set(TAIL, tail);
                let head = (tail >> 1).wrapping_add_signed(distance);
                set(HEAD, head & u64::from(u32::MAX));
            }
            if mode < 2 {
                set(MODE, mode);
            }
            bytes
        },
    )
}

fn scribble(path: &Path, bytes: &[u8]) {
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("a file");
    file.write_all_at(bytes, PREAMBLE_LEN).expect("written");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_the_bytes_of_a_ring_every_call_returns(bytes in any_bytes(32)) {
        let scene = Scene::new();
        let path = scene.path("ring");
        // One was there before the damage; others come after it.
        let before = ObservationRing::create_in_region(&path, CAPACITY, Access::Private).expect("a ring");
        scribble(&path, &bytes);
        let after = ObservationRing::open(&path).ok();
        let mut lost = 0;
        for ring in std::iter::once(&before).chain(&after) {
            for round in 0..3 {
                let _ = ring.push(Observation { value: 7, ..Observation::default() });
                let drained = ring.drain(round * PATIENCE_NS, &mut |_| lost += 1);
                prop_assert!(drained.taken <= u64::from(CAPACITY));
                let _ = (ring.counts(), ring.fall_asleep(), ring.sample_due());
            }
        }
        // Whoever drains on comes to the end, and then it is a ring again.
        for round in 0..=u64::from(CAPACITY) {
            before.drain((round + 3) * PATIENCE_NS, &mut |_| ());
        }
        let mut seen = Vec::new();
        let is_taken = before.push(Observation { value: 9, ..Observation::default() });
        before.drain(0, &mut |found| seen.push(found.value));
        prop_assert!(is_taken, "still full: {:?}", before.counts());
        prop_assert_eq!(seen, [9]);
        if let Ok(reader) = ObservationRing::open_read_only(&path) {
            let mut cursor = reader.from_the_start();
            let read = std::iter::from_fn(|| reader.next(&mut cursor, 0, 0)).take(100).count();
            prop_assert!(read <= CAPACITY as usize);
        }
    }

    #[test]
    fn whatever_the_bytes_of_a_black_box_every_call_returns(bytes in any_bytes(128)) {
        let scene = Scene::new();
        let path = scene.path("events");
        let black_box = BlackBox::create(&path, CAPACITY, Access::Private).expect("a black box");
        scribble(&path, &bytes);
        black_box.record(Event::new(EventKind::Died, 9));
        let Ok(reader) = BlackBoxReader::open_read_only(&path) else {
            return Ok(());
        };
        let history = reader.read_all();
        prop_assert!(history.events.len() <= CAPACITY as usize);
        for found in &history.events {
            prop_assert!(!found.event.to_string().is_empty());
        }
        let last = history.events.last().map(|found| found.event);
        // The position 2^63 is 0 again; nothing but damage ever comes there.
        let has_begun_again = reader.header().recorded == 0;
        prop_assert!(has_begun_again || last == Some(Event::new(EventKind::Died, 9)));
        prop_assert_eq!(reader.header().capacity, CAPACITY);
    }
}

/// A ring that has been in use for so long.
fn age(path: &Path, position: u64) {
    let file = std::fs::File::options()
        .write(true)
        .open(path)
        .expect("a file");
    let set = |at: usize, word: u64| {
        file.write_all_at(&word.to_ne_bytes(), PREAMBLE_LEN + at as u64)
            .expect("written");
    };
    set(TAIL, position << 1);
    set(HEAD, position & u64::from(u32::MAX));
}

#[test]
fn where_halves_of_positions_begin_again_nothing_is_lost_or_twice_at_any_capacity() {
    for (capacity, start) in [1, 4].into_iter().flat_map(|capacity| {
        [u64::from(u32::MAX) - 2, (7 << 32) - 1, (1 << 62) - 3].map(|start| (capacity, start))
    }) {
        let scene = Scene::new();
        let path = scene.path("ring");
        let ring = ObservationRing::create_in_region(&path, capacity, Access::Private);
        let ring = ring.expect("a ring");
        age(&path, start);
        let mut seen = Vec::new();
        for value in 0..8 {
            assert!(ring.push(Observation {
                value,
                ..Observation::default()
            }));
            // Full with one, or drained by twos.
            if capacity == 1 || value % 2 == 1 {
                ring.drain(0, &mut |found| seen.push(found.value));
                assert!(ring.fall_asleep());
            }
        }
        assert!(
            seen.iter().copied().eq(0..8),
            "{capacity} {start}: {seen:?}"
        );
        let counts = ring.counts();
        assert_eq!((counts.pushed, counts.pending), (start + 8, 0));
        assert_eq!((counts.delivered(), counts.dropped), (start + 8, 0));

        let path = scene.path("events");
        let black_box = BlackBox::create(&path, capacity, Access::Private).expect("a black box");
        age(&path, start);
        (0..8).for_each(|number| black_box.record(Event::new(EventKind::Died, number)));
        let history = BlackBoxReader::open_read_only(&path)
            .expect("there")
            .read_all();
        let times = history.events.iter().map(|found| found.event.time_ns);
        let left = u64::from(capacity);
        assert!(times.eq(8 - left..8), "{capacity} {start}: {history:?}");
        assert_eq!((history.overtaken, history.skipped), (start + 8 - left, 0));
    }
}
