//! A flight recorder and a reader that may be overtaken.

use std::sync::Arc;

use bumpless_sidecar::ring::cursor::Cursor;
use bumpless_substrate::sync::die_before_change;
use loom::thread;

use crate::memory::Memory;
use crate::seeing::{DIED, check_each_death, check_seeing};

/// The second record goes where the first one is read.
#[test]
fn a_reader_gets_whole_records_and_knows_how_many_were_overwritten() {
    let wanted = ["nothing yet", "first", "second", "third", "overtaken"];
    check_seeing("recorder, a turn", 2, &wanted, move |outcomes| {
        let memory = Memory::<2>::new();
        let reader = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                let mut cursor = Cursor::at(0);
                let seen = memory.follow(&mut cursor, 2);
                (seen, cursor)
            })
        };
        for number in 1..=3 {
            assert!(memory.record(number));
        }
        let (mut seen, mut cursor) = reader.join().unwrap();
        if seen.is_empty() {
            outcomes.saw(wanted[0]);
        }
        seen.iter()
            .for_each(|number| outcomes.saw(wanted[*number as usize]));
        if cursor.overtaken > 0 {
            outcomes.saw(wanted[4]);
        }
        seen.extend(memory.follow(&mut cursor, 3));
        assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
        assert_eq!(cursor.skipped, 0, "nobody died, and nobody was late");
        assert_eq!(seen.len() as u64 + cursor.overtaken, 3, "{seen:?}");
    });
}

/// A recorder dies inside its record, and whoever reads afterwards waits for nothing.
#[test]
fn what_a_dead_recorder_had_recorded_is_read_and_its_half_is_skipped() {
    let wanted = [DIED, "skipped", "whole"];
    check_each_death("recorder, death", 2, &wanted, move |outcomes, changes| {
        let memory = Memory::<4>::new();
        let other = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || assert!(memory.record(9)))
        };
        let died = die_before_change(changes, || {
            memory.record(1);
            memory.record(2);
        });
        other.join().unwrap();
        let mut cursor = Cursor::at(0);
        let mut seen = Vec::new();
        while let Some((_, [number, _])) = memory.ring().read(&mut cursor, 0, 0) {
            seen.push(number);
        }
        assert!(seen.contains(&9));
        assert_eq!(cursor.position(), memory.ring().reserved());
        assert_eq!(seen.len() as u64 + cursor.skipped, cursor.position());
        match died {
            Some(()) => assert_eq!((seen.len(), cursor.skipped), (3, 0)),
            None => outcomes.saw(DIED),
        }
        outcomes.saw(wanted[if cursor.skipped > 0 { 1 } else { 2 }]);
    });
}
