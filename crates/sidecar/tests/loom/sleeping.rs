//! A consumer that falls asleep while somebody pushes.

use std::sync::Arc;

use bumpless_sidecar::ring::Mode;
use bumpless_substrate::sync::Ordering;
use loom::thread;

use crate::memory::{Consumer, Memory};
use crate::seeing::check_seeing;

#[test]
fn nobody_sleeps_while_something_is_there() {
    let wanted = ["slept, and was rung", "did not sleep", "one ring for two"];
    check_seeing("ring, sleep", 3, &wanted, move |outcomes| {
        let memory = Memory::<2>::new();
        let consumer = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                let mut consumer = Consumer::default();
                consumer.drain(&memory, 0);
                let bell = memory.lines.doorbell.load(Ordering::Acquire);
                let sleeps_at = memory.ring().fall_asleep().then_some(bell);
                (consumer, sleeps_at)
            })
        };
        let push = |number| {
            assert!(memory.ring().push(Mode::Lossless, &[number; 2], || {
                memory.lines.doorbell.fetch_add(1, Ordering::Release);
            }));
        };
        push(1);
        push(2);
        let (consumer, sleeps_at) = consumer.join().unwrap();
        let bell = memory.lines.doorbell.load(Ordering::Acquire);
        let is_there = memory.counts().pending > 0;
        match sleeps_at {
            Some(value) if is_there => {
                assert_ne!(value, bell, "asleep, and a record is there");
                outcomes.saw(wanted[0]);
                if consumer.seen.is_empty() {
                    outcomes.saw(wanted[2]);
                }
                assert_eq!(bell, 1, "one push rings");
            }
            Some(_) => assert_eq!(consumer.seen, [1, 2]),
            None => outcomes.saw(wanted[1]),
        }
    });
}
