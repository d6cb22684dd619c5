//! A producer that stands still inside its push until its place belongs to a later record.

use std::sync::Arc;

use loom::thread;

use crate::memory::{Consumer, Memory};
use crate::seeing::check_seeing;

/// One place, so that the next record goes where the late one's belongs.
#[test]
fn a_late_producer_can_destroy_a_later_record_and_never_have_a_false_one_delivered() {
    let wanted = [
        "in time",
        "late, and the later record whole",
        "late, and the later record skipped",
        "before and after",
    ];
    check_seeing("ring, late producer", 3, &wanted, move |outcomes| {
        let memory = Memory::<1>::new();
        let late = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || memory.push(1))
        };
        let mut consumer = Consumer::default();
        consumer.drain_patiently(&memory);
        let (seen_before, skipped_before) = (consumer.seen.len(), consumer.skipped);
        let is_taken = memory.push(2);
        consumer.drain_patiently(&memory);
        let late_is_taken = late.join().unwrap();
        consumer.drain_patiently(&memory);
        consumer.check_counts(&memory, 2);
        assert_eq!(memory.counts().pending, 0);
        // Of each number one at most, and only of pushes that were taken.
        let times = |number: u64| consumer.seen.iter().filter(|seen| **seen == number).count();
        assert!(times(1) <= usize::from(late_is_taken) && times(2) <= usize::from(is_taken));
        assert_eq!(
            consumer.seen.len(),
            times(1) + times(2),
            "{:?}",
            consumer.seen
        );
        match (skipped_before, consumer.skipped) {
            (0, 0) if seen_before == 1 => outcomes.saw(wanted[0]),
            (1, 1) => outcomes.saw(wanted[1]),
            (1, 2) => outcomes.saw(wanted[2]),
            _ => outcomes.saw(wanted[3]),
        }
    });
}
