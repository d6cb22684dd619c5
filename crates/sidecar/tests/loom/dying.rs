//! A producer, or a consumer, that is killed before any of its changes.

use std::sync::Arc;

use bumpless_substrate::sync::die_before_change;
use loom::thread;

use crate::memory::{Consumer, Memory};
use crate::seeing::{DIED, check_each_death};

#[test]
fn a_dead_producers_place_is_skipped_and_counted_and_the_others_records_come() {
    let wanted = [DIED, "whole", "skipped", "never reserved"];
    check_each_death(
        "ring, dead producer",
        2,
        &wanted,
        move |outcomes, changes| {
            let memory = Memory::<2>::new();
            let consumer = {
                let memory = Arc::clone(&memory);
                thread::spawn(move || {
                    let mut consumer = Consumer::default();
                    consumer.drain(&memory, 0);
                    consumer
                })
            };
            let died = die_before_change(changes, || memory.push(1)).is_none();
            assert!(memory.push(2));
            let mut consumer = consumer.join().unwrap();
            consumer.drain_patiently(&memory);
            let reserved = memory.counts().pushed;
            consumer.check_counts(&memory, reserved);
            assert_eq!(memory.counts().pending, 0, "held up");
            assert_eq!(consumer.seen.last(), Some(&2));
            if died {
                outcomes.saw(DIED);
                assert_eq!(consumer.seen.len(), 1);
                outcomes.saw(if reserved == 2 { wanted[2] } else { wanted[3] });
            } else {
                outcomes.saw(wanted[1]);
                assert_eq!(consumer.seen, [1, 2]);
            }
        },
    );
}

/// A consumer dies while a producer pushes; what it was given before that it may be given again.
#[test]
fn the_next_consumer_goes_on_where_the_dead_one_stored_that_it_was() {
    let wanted = [DIED, "delivered again", "delivered once"];
    check_each_death(
        "ring, dead consumer",
        2,
        &wanted,
        move |outcomes, changes| {
            let memory = Memory::<2>::new();
            assert!(memory.push(1));
            let producer = {
                let memory = Arc::clone(&memory);
                thread::spawn(move || memory.push(2))
            };
            let mut first = Consumer::default();
            let died = die_before_change(changes, || first.drain(&memory, 0)).is_none();
            assert!(producer.join().unwrap());
            let mut second = Consumer::default();
            second.drain(&memory, 0);
            if died {
                outcomes.saw(DIED);
                assert_eq!(second.seen, [1, 2], "the dead one stored nothing");
                outcomes.saw(wanted[1]);
            } else {
                let all: Vec<u64> = first.seen.iter().chain(&second.seen).copied().collect();
                assert_eq!(all, [1, 2]);
                outcomes.saw(wanted[2]);
            }
            let counts = memory.counts();
            assert_eq!(
                (counts.delivered(), counts.skipped, counts.pending),
                (2, 0, 0)
            );
        },
    );
}
