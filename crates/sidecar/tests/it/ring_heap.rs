//! Rings in the heap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bumpless_sidecar::{Doorbell, Drained, Observation, ObservationRing};

fn numbered(value: u32) -> Observation {
    Observation {
        value,
        ..Observation::default()
    }
}

/// By default a tenth of what is promised; all with `BUMPLESS_RING_PUSHES=20000000`.
fn pushes() -> u32 {
    let asked = std::env::var("BUMPLESS_RING_PUSHES").ok();
    asked
        .and_then(|text| text.parse().ok())
        .unwrap_or(2_000_000)
}

#[test]
fn every_push_of_two_threads_is_delivered_or_counted_as_dropped() {
    let ring = ObservationRing::with_capacity(4096);
    let each = pushes() / 2;
    let is_over = AtomicBool::new(false);
    let mut sums = [0_u64; 2];
    let mut taken = [0_u64; 2];
    let accepted = std::thread::scope(|scope| {
        let producers = [0, 1].map(|instance_id| {
            let ring = &ring;
            scope.spawn(move || {
                let mut accepted = (0_u64, 0_u64);
                for value in 0..each {
                    if ring.push(Observation {
                        instance_id,
                        ..numbered(value)
                    }) {
                        accepted.0 += 1;
                        accepted.1 += u64::from(value);
                    }
                }
                accepted
            })
        });
        let consumer = scope.spawn(|| {
            let (mut last, mut drained) = ([None; 2], Drained::default());
            loop {
                let ends = is_over.load(Ordering::SeqCst);
                let now = ring.drain(0, &mut |seen| {
                    let of = seen.instance_id as usize;
                    assert!(
                        last[of].is_none_or(|last| last < seen.value),
                        "out of order"
                    );
                    last[of] = Some(seen.value);
                    sums[of] += u64::from(seen.value);
                    taken[of] += 1;
                });
                drained.taken += now.taken;
                drained.skipped += now.skipped;
                if ends && now.taken == 0 {
                    return drained;
                }
            }
        });
        let accepted = producers.map(|producer| producer.join().unwrap());
        is_over.store(true, Ordering::SeqCst);
        let drained = consumer.join().unwrap();
        assert_eq!(drained.taken, taken_of(accepted));
        assert_eq!(drained.skipped, 0);
        accepted
    });
    assert_eq!(accepted, [(taken[0], sums[0]), (taken[1], sums[1])]);
    let counts = ring.counts();
    assert_eq!(counts.pushed + counts.dropped, 2 * u64::from(each));
    assert_eq!(
        (counts.delivered(), counts.pending),
        (taken_of(accepted), 0)
    );
    assert!(counts.delivered() > 0);
}

fn taken_of(accepted: [(u64, u64); 2]) -> u64 {
    accepted[0].0 + accepted[1].0
}

#[test]
fn a_full_ring_drops_and_counts_and_a_drained_one_takes_again() {
    let ring = ObservationRing::with_capacity(3);
    assert_eq!(ring.capacity(), 4);
    for turn in 0..3_u64 {
        let taken: Vec<bool> = (0..6).map(|value| ring.push(numbered(value))).collect();
        assert_eq!(taken, [true, true, true, true, false, false]);
        let counts = ring.counts();
        assert_eq!((counts.pending, counts.dropped), (4, 2 * (turn + 1)));
        let mut seen = Vec::new();
        assert_eq!(ring.drain(0, &mut |o| seen.push(o.value)).taken, 4);
        assert_eq!(seen, [0, 1, 2, 3]);
    }
}

#[test]
fn a_drain_inside_a_drain_delivers_nothing_twice() {
    let ring = ObservationRing::with_capacity(8);
    assert!(ring.push(numbered(1)) && ring.push(numbered(2)));
    let mut inner = Vec::new();
    let drained = ring.drain(0, &mut |_| {
        inner.push(ring.drain(0, &mut |_| panic!("delivered twice")));
    });
    assert_eq!(drained.taken, 2);
    assert!(
        inner
            .iter()
            .all(|drained| drained.is_elsewhere && drained.taken == 0)
    );
}

#[test]
fn what_a_panic_interrupts_counts_as_delivered_and_the_rest_comes_later() {
    let ring = ObservationRing::with_capacity(8);
    (0..3).for_each(|value| assert!(ring.push(numbered(value))));
    let panicked = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
        ring.drain(0, &mut |seen| assert!(seen.value < 1, "planted"));
    }));
    assert!(panicked.is_err());
    assert_eq!(ring.counts().delivered(), 2);
    let mut rest = Vec::new();
    ring.drain(0, &mut |seen| rest.push(seen.value));
    assert_eq!(rest, [2]);
}

#[test]
fn one_operation_in_256_is_due_for_timing() {
    let ring = ObservationRing::with_capacity(4096);
    let due = (0..2560).filter(|value| {
        let is_due = ring.sample_due();
        assert!(ring.push(numbered(*value)));
        is_due
    });
    assert_eq!(due.count(), 10);
    assert_ne!(ring.producer_id(), 0);
    assert_eq!(ring.producer_id(), ring.producer_id());
}

#[test]
fn a_ring_wakes_every_consumer_that_sleeps_on_it_and_forgets_those_that_are_gone() {
    let ring = ObservationRing::with_capacity(8);
    let bells = [0, 1].map(|_| Arc::new(Doorbell::new()));
    bells.iter().for_each(|bell| ring.add_doorbell(bell));
    let values = || [bells[0].value(), bells[1].value()];
    let before = values();
    assert!(ring.fall_asleep());
    assert!(ring.push(numbered(1)));
    assert_ne!(values()[0], before[0]);
    assert_ne!(values()[1], before[1]);
    let [first, second] = bells;
    drop(second);
    ring.add_doorbell(&first);
    assert_eq!(Arc::strong_count(&first), 2, "once in the ring");
}
