//! The sequence lock: a reader takes a whole or nothing.

use std::sync::Arc;

use bumpless_substrate::layout::Shared;
use bumpless_substrate::seqlock::SeqLock;
use bumpless_substrate::sync::{AtomicU64, Ordering, die_before_change};
use loom::thread;

use crate::seeing::{DIED, check_each_death, check_seeing};

bumpless_substrate::shared_struct! {
    /// Two numbers that are always equal at rest.
    struct Pair[size = 24, align = 8] {
        /// Version.
        0 => lock: SeqLock,
        /// One number.
        8 => left: AtomicU64,
        /// The same number.
        16 => right: AtomicU64,
    }
}

impl Pair {
    fn store(&self, number: u64) {
        // Relaxed: what the sequence lock is for.
        self.left.store(number, Ordering::Relaxed);
        self.right.store(number, Ordering::Relaxed);
    }

    fn write(&self, number: u64) {
        self.lock.write(|| self.store(number));
    }

    /// The number at rest, if there was a rest.
    fn read(&self, tries: u32) -> Option<u64> {
        let pair = self.lock.read(tries, || {
            // Relaxed: as above.
            (
                self.left.load(Ordering::Relaxed),
                self.right.load(Ordering::Relaxed),
            )
        });
        let (left, right) = pair?;
        assert_eq!(left, right, "torn");
        Some(left)
    }
}

fn name(read: Option<u64>) -> &'static str {
    match read {
        None => "a writer inside",
        Some(0) => "at rest before",
        Some(1) => "after the first",
        Some(_) => "after the second",
    }
}

#[test]
fn one_write_is_seen_whole_or_not_at_all() {
    let wanted = ["a writer inside", "at rest before", "after the first"];
    check_seeing("seqlock, 1 write", 3, &wanted, |outcomes| {
        let pair = Arc::new(Pair::zeroed());
        let reader = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.read(1))
        };
        pair.write(1);
        outcomes.saw(name(reader.join().unwrap()));
    });
}

#[test]
fn of_two_writes_a_reader_sees_each_whole_or_not_at_all() {
    let wanted = [
        "a writer inside",
        "at rest before",
        "after the first",
        "after the second",
    ];
    check_seeing("seqlock, 2 writes", 2, &wanted, |outcomes| {
        let pair = Arc::new(Pair::zeroed());
        let reader = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.read(2))
        };
        pair.write(1);
        pair.write(2);
        outcomes.saw(name(reader.join().unwrap()));
    });
}

/// The predecessor has written 1 and dies while it writes 2; its successor writes 3. Between them
/// lies what a claim word does: the successor sees all that the predecessor wrote.
#[test]
fn no_reader_takes_a_dead_writers_half_for_a_whole() {
    let wanted = [
        DIED,
        "a writer inside",
        "after the first",
        "after the second",
    ];
    check_each_death("seqlock, repair", 3, &wanted, |outcomes, changes| {
        let pair = Arc::new(Pair::zeroed());
        pair.write(1);
        let reader = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.read(1))
        };
        if die_before_change(changes, || pair.write(2)).is_none() {
            outcomes.saw(DIED);
            let rest = pair.read(1);
            assert!(
                rest.is_none_or(|number| number == 1),
                "{rest:?} of a dead writer"
            );
        }
        pair.write(3);
        assert_eq!(pair.read(1), Some(3), "not repaired");
        outcomes.saw(name(reader.join().unwrap()));
    });
}
