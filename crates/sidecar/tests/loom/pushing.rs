//! Two producers and a consumer.

use std::sync::Arc;

use loom::thread;

use crate::memory::{Consumer, Memory};
use crate::seeing::check_seeing;

#[test]
fn what_two_push_at_once_is_delivered_whole_and_once() {
    let wanted = ["nothing yet", "one", "both", "one behind an unfinished one"];
    check_seeing("ring, 2 producers", 2, &wanted, move |outcomes| {
        let memory = Memory::<2>::new();
        let producer = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || assert!(memory.push(2)))
        };
        let consumer = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                let mut consumer = Consumer::default();
                consumer.drain(&memory, 0);
                let is_held_up = consumer.seen.is_empty() && memory.counts().pushed == 2;
                (consumer, is_held_up)
            })
        };
        assert!(memory.push(1));
        producer.join().unwrap();
        let (mut consumer, is_held_up) = consumer.join().unwrap();
        outcomes.saw(wanted[consumer.seen.len()]);
        if is_held_up {
            outcomes.saw(wanted[3]);
        }
        consumer.drain(&memory, 0);
        consumer.seen.sort_unstable();
        assert_eq!(consumer.seen, [1, 2]);
        consumer.check_counts(&memory, 2);
    });
}

/// One place: a producer takes it again as soon as the consumer gives it back, or is counted.
#[test]
fn what_finds_no_place_is_counted() {
    let wanted = ["taken", "dropped"];
    check_seeing("ring, full", 3, &wanted, move |outcomes| {
        let memory = Memory::<1>::new();
        assert!(memory.push(1));
        let producer = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || memory.push(2))
        };
        let mut consumer = Consumer::default();
        consumer.drain(&memory, 0);
        let is_taken = producer.join().unwrap();
        outcomes.saw(wanted[usize::from(!is_taken)]);
        consumer.drain(&memory, 0);
        let all: &[u64] = if is_taken { &[1, 2] } else { &[1] };
        assert_eq!(consumer.seen, all);
        consumer.check_counts(&memory, 2);
    });
}
