//! A lane of two buffers: a reader takes a frame as it was written, or none.

use std::sync::Arc;

use bumpless_standby::link::lane::{BufferHead, Cursor, Found, Lane, LaneHead};
use bumpless_substrate::layout::Shared;
use bumpless_substrate::sync::{AtomicU64, die_before_change};
use loom::thread;

use crate::seeing::{DIED, check_each_death, check_seeing};

struct Memory {
    head: LaneHead,
    buffers: [BufferHead; 2],
    words: [AtomicU64; 2],
}

impl Memory {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            head: LaneHead::zeroed(),
            buffers: Shared::zeroed(),
            words: Shared::zeroed(),
        })
    }

    fn lane(&self) -> Lane<'_> {
        Lane::new(&self.head, &self.buffers, &self.words)
    }

    /// A frame whose length and bytes belong together.
    fn write(&self, number: u8) {
        assert!(self.lane().write(&vec![number; number.into()]));
    }

    /// The number of the next frame; 0: none.
    fn read(&self, cursor: &mut Cursor) -> u8 {
        let mut frame = Vec::new();
        check_whole(self.lane().read(cursor, &mut frame), &frame)
    }

    /// The number of the newest frame; 0: none.
    fn newest(&self) -> u8 {
        let mut frame = Vec::new();
        check_whole(self.lane().newest(&mut frame), &frame)
    }
}

fn check_whole(found: Found, frame: &[u8]) -> u8 {
    match found {
        Found::Nothing => 0,
        Found::Frame => {
            let number = frame.len() as u8;
            assert!(frame.iter().all(|byte| *byte == number), "torn: {frame:?}");
            number
        }
        Found::Damaged => panic!("damaged"),
    }
}

#[test]
fn a_frame_that_is_published_is_there() {
    let wanted = ["nothing yet", "the frame"];
    check_seeing("mailbox, 1 frame", 3, &wanted, move |outcomes| {
        let memory = Memory::new();
        let reader = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                let mut cursor = Cursor::default();
                (memory.read(&mut cursor), cursor.overtaken)
            })
        };
        memory.write(3);
        let (number, overtaken) = reader.join().unwrap();
        assert!(matches!(number, 0 | 3), "{number}");
        assert_eq!(overtaken, 0, "told of a frame that was not there");
        outcomes.saw(wanted[usize::from(number != 0)]);
    });
}

/// The third frame goes where the first one is read.
#[test]
fn a_reader_that_is_overtaken_takes_the_next_frame_whole() {
    let wanted = ["nothing yet", "first", "second", "third", "overtaken"];
    check_seeing("mailbox, a lap", 3, &wanted, move |outcomes| {
        let memory = Memory::new();
        memory.write(1);
        let reader = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                let mut cursor = Cursor::default();
                let read = [memory.read(&mut cursor), memory.read(&mut cursor)];
                (read, cursor.overtaken)
            })
        };
        memory.write(2);
        memory.write(3);
        let (read, overtaken) = reader.join().unwrap();
        assert!(read[0] > 0, "the first was there before");
        assert!(read[1] == 0 || read[1] > read[0], "{read:?}: back");
        let last = u64::from(read[0].max(read[1]));
        let taken = read.iter().filter(|number| **number != 0).count() as u64;
        assert_eq!(
            last,
            taken + overtaken,
            "{read:?}: a frame is not accounted for"
        );
        read.iter()
            .for_each(|number| outcomes.saw(wanted[usize::from(*number)]));
        if overtaken > 0 {
            outcomes.saw(wanted[4]);
        }
    });
}

/// The writer dies inside its second or third frame, and its successor writes another of the same number.
/// Between them lies what the lock of the end does: the successor sees all that was written before.
#[test]
fn a_dead_writers_half_is_never_read_and_the_next_one_goes_on() {
    let wanted = [
        DIED,
        "nothing yet",
        "old",
        "the dead one's",
        "the successor's",
    ];
    check_each_death("mailbox, death", 2, &wanted, move |outcomes, changes| {
        let memory = Memory::new();
        memory.write(1);
        let reader = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                let mut cursor = Cursor::default();
                let read = [memory.read(&mut cursor), memory.read(&mut cursor)];
                (read, cursor)
            })
        };
        let died = die_before_change(changes, || {
            memory.write(2);
            memory.write(3);
        });
        if died.is_none() {
            outcomes.saw(DIED);
        }
        memory.write(4);
        let (read, mut cursor) = reader.join().unwrap();
        assert!(read[1] == 0 || read[1] > read[0], "{read:?}: back");
        let rest = memory.read(&mut cursor);
        assert!(
            read.contains(&4) || rest == 4,
            "{read:?} {rest}: not gone on"
        );
        for number in read {
            outcomes.saw(match number {
                0 => wanted[1],
                1 => wanted[2],
                4 => wanted[4],
                _ => wanted[3],
            });
        }
    });
}

/// Also when the writer dies: a tag is read after its node's end.
#[test]
fn the_newest_frame_is_there_at_any_time() {
    let wanted = [DIED, "first", "second", "third"];
    check_each_death("tag, newest", 3, &wanted, move |outcomes, changes| {
        let memory = Memory::new();
        memory.write(1);
        let reader = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || memory.newest())
        };
        let died = die_before_change(changes, || {
            memory.write(2);
            memory.write(3);
        });
        let number = reader.join().unwrap();
        assert!(number > 0, "nothing, and one was there before");
        outcomes.saw(wanted[usize::from(number)]);
        let rest = memory.newest();
        assert!(rest >= number, "{number}, then {rest}");
        match died {
            None => outcomes.saw(DIED),
            Some(()) => assert_eq!(rest, 3),
        }
    });
}
