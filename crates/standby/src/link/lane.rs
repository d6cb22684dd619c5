//! One direction of a mailbox: a few buffers, written in turn, and the number of frames that are whole.
//!
//! Contract: a frame is read as it was written or not at all. The writer never waits, not for a reader
//! and not for a writer that died: the newest frame wins, and a reader that is too far behind is told how
//! many it lost. A reader never waits either. One writer at a time; any number of readers.
//!
//! ```text
//!   write n:  mark of buffer n mod N := n + 1 ── release fence ── bytes, relaxed ── published := n + 1, release
//!   read n:   n < published ── acquire fence ── bytes, relaxed ── acquire fence ── mark still n + 1?
//!
//!   published = 5, N = 4:   frame 5 may be half written     frames 2, 3, 4 are whole
//!                           │  5  │  2  │  3  │  4  │
//! ```
//! What `published` counts is whole before it counts it. A reader that sees a byte of a later frame passes
//! its own fence behind the writer's, and so sees the later mark. A writer that is killed leaves a mark
//! and some bytes of a frame that nobody was told of; the next one writes the same number over it.
//!
//! Whoever writes other values into the memory makes frames that nobody sent, or loses some: the frame's
//! own check is for that. No value makes a reader wait, loop or leave the buffers.

use bumpless_substrate::sync::{AtomicU64, Ordering, fence};

bumpless_substrate::shared_struct! {
    /// What is whole. Writer: the direction's sender. Reader: its receiver.
    pub struct LaneHead[size = 64, align = 64] {
        /// Frames that were written whole since the region was made; wraps.
        0 => published: AtomicU64,
        /// Zero.
        8 => spare: [AtomicU64; 7],
    }
}

bumpless_substrate::shared_struct! {
    /// What a buffer holds. Writer: the direction's sender. Reader: its receiver.
    pub struct BufferHead[size = 16, align = 8] {
        /// 1 + the number of the frame that is in it, or is being written; 0: none yet.
        0 => mark: AtomicU64,
        /// Length of the frame; unit: bytes.
        8 => len: AtomicU64,
    }
}

impl LaneHead {
    /// Forgets all frames; while nobody reads or writes.
    pub fn forget(&self) {
        // Relaxed: nobody reads beside this.
        self.published.store(0, Ordering::Relaxed);
    }
}

const WORD_LEN: usize = size_of::<u64>();

/// A direction, wherever it lies.
#[derive(Debug, Clone, Copy)]
pub struct Lane<'m> {
    head: &'m LaneHead,
    buffers: &'m [BufferHead],
    words: &'m [AtomicU64],
}

/// Where a reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    next: u64,
    /// Frames that were overwritten before they were read.
    pub overtaken: u64,
}

/// What a reader found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No frame that was not read, for now.
    Nothing,
    /// The next one.
    Frame,
    /// One with a length that no frame has: somebody else wrote there.
    Damaged,
}

impl<'m> Lane<'m> {
    /// How often a reader that is overtaken while it reads tries the next frame, in one call.
    pub const TRIES: u32 = 4;

    /// `words` is divided evenly among the buffers, of which there are two at least: one is always being
    /// written.
    #[must_use]
    pub fn new(head: &'m LaneHead, buffers: &'m [BufferHead], words: &'m [AtomicU64]) -> Self {
        Self {
            head,
            buffers,
            words,
        }
    }

    /// The longest frame; unit: bytes.
    #[must_use]
    pub fn frame_len_max(&self) -> usize {
        self.buffer_words() * WORD_LEN
    }

    /// Writes a frame; `false`, and nothing happens, if it is too long. Cost: a pass over its bytes.
    pub fn write(&self, frame: &[u8]) -> bool {
        // Relaxed: the single writer reads its own, or its predecessor's, which the lock of its end
        // made visible.
        let number = self.head.published.load(Ordering::Relaxed);
        let Some((buffer, words)) = self.buffer(number) else {
            return false;
        };
        if frame.len() > words.len() * WORD_LEN {
            return false;
        }
        let after = number.wrapping_add(1);
        // Release pairs with the fence of a reader that is overtaken: who sees this mark sees what was
        // published before it. The fence below orders it before the bytes.
        buffer.mark.store(after, Ordering::Release);
        // Pairs with the acquire fence behind the bytes in `copy`.
        fence(Ordering::Release);
        // Relaxed, here and below: published by the store at the end.
        buffer.len.store(frame.len() as u64, Ordering::Relaxed);
        let (whole, rest) = frame.as_chunks::<WORD_LEN>();
        for (word, bytes) in words.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        if let (Some(word), false) = (words.get(whole.len()), rest.is_empty()) {
            let mut padded = [0; WORD_LEN];
            padded[..rest.len()].copy_from_slice(rest);
            word.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
        // Release pairs with the acquire fence in `published`: the bytes before the number.
        self.head.published.store(after, Ordering::Release);
        true
    }

    /// A reader that sees only what is written from now on.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor {
            next: self.published(),
            overtaken: 0,
        }
    }

    /// Reads the oldest frame behind the cursor that is there, into `frame`, which is cleared first. Cost:
    /// a pass over its bytes.
    pub fn read(&self, cursor: &mut Cursor, frame: &mut Vec<u8>) -> Found {
        frame.clear();
        for _ in 0..Self::TRIES {
            let published = self.published();
            let behind = published.wrapping_sub(cursor.next);
            if behind == 0 {
                return Found::Nothing;
            }
            // The buffer of the oldest one may already be the next one's.
            let whole = (self.buffers.len() as u64).saturating_sub(1);
            if behind > whole {
                cursor.skip(behind - whole);
            }
            let number = cursor.next;
            cursor.next = number.wrapping_add(1);
            match self.copy(number, frame) {
                Some(found) => return found,
                None => cursor.overtaken = cursor.overtaken.saturating_add(1),
            }
        }
        frame.clear();
        Found::Nothing
    }

    /// Copies a frame that was published; `None` if a later one took its place meanwhile.
    fn copy(&self, number: u64, frame: &mut Vec<u8>) -> Option<Found> {
        frame.clear();
        let (buffer, words) = self.buffer(number)?;
        // Relaxed, here and below: what is newer than `published` said is found out by the mark.
        let len = buffer.len.load(Ordering::Relaxed);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let is_possible = len <= words.len() * WORD_LEN;
        if is_possible {
            let words = &words[..len.div_ceil(WORD_LEN)];
            frame.resize(words.len() * WORD_LEN, 0);
            for (bytes, word) in frame.as_chunks_mut::<WORD_LEN>().0.iter_mut().zip(words) {
                *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            }
            frame.truncate(len);
        }
        // Pairs with the release fence in `write`.
        fence(Ordering::Acquire);
        // Relaxed: ordered behind the bytes by the fence.
        let mark = buffer.mark.load(Ordering::Relaxed);
        if mark != number.wrapping_add(1) {
            // Pairs with the Release of the mark in `write`: the next try finds newer frames.
            fence(Ordering::Acquire);
            return None;
        }
        Some(if is_possible {
            Found::Frame
        } else {
            Found::Damaged
        })
    }

    /// Reads the newest frame, into `frame`, which is cleared first; also one that was read before. `Nothing`
    /// if there never was one, or if so many came meanwhile that each was overtaken. Cost: a pass over its
    /// bytes.
    pub fn newest(&self, frame: &mut Vec<u8>) -> Found {
        frame.clear();
        for _ in 0..Self::TRIES {
            let published = self.published();
            if published == 0 {
                return Found::Nothing;
            }
            if let Some(found) = self.copy(published.wrapping_sub(1), frame) {
                return found;
            }
        }
        frame.clear();
        Found::Nothing
    }

    fn published(&self) -> u64 {
        // Relaxed, and a fence behind: a mapping for reading only allows no acquire load.
        let published = self.head.published.load(Ordering::Relaxed);
        // Pairs with the Release at the end of `write`.
        fence(Ordering::Acquire);
        published
    }

    fn buffer_words(&self) -> usize {
        self.words
            .len()
            .checked_div(self.buffers.len())
            .unwrap_or(0)
    }

    fn buffer(&self, number: u64) -> Option<(&'m BufferHead, &'m [AtomicU64])> {
        let index = number.checked_rem(self.buffers.len() as u64)? as usize;
        let first = index * self.buffer_words();
        let words = self.words.get(first..first + self.buffer_words())?;
        Some((self.buffers.get(index)?, words))
    }
}

impl Cursor {
    fn skip(&mut self, frames: u64) {
        self.next = self.next.wrapping_add(frames);
        self.overtaken = self.overtaken.saturating_add(frames);
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use bumpless_substrate::layout::Shared;

    use super::*;

    /// A lane of three buffers of 16 bytes.
    struct Memory {
        head: LaneHead,
        buffers: [BufferHead; 3],
        words: [AtomicU64; 6],
    }

    impl Memory {
        fn new() -> Self {
            Self {
                head: LaneHead::zeroed(),
                buffers: Shared::zeroed(),
                words: Shared::zeroed(),
            }
        }

        fn lane(&self) -> Lane<'_> {
            Lane::new(&self.head, &self.buffers, &self.words)
        }
    }

    fn read_all(lane: &Lane, cursor: &mut Cursor) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let mut frame = Vec::new();
        while lane.read(cursor, &mut frame) == Found::Frame {
            frames.push(frame.clone());
        }
        frames
    }

    #[test]
    fn a_reader_that_keeps_up_gets_every_frame_and_one_that_does_not_gets_the_newest() {
        let memory = Memory::new();
        let lane = memory.lane();
        let mut cursor = lane.cursor();
        for len in [1, 7, 8, 9, 15, 16, 0] {
            let frame = vec![len as u8; len];
            assert!(lane.write(&frame));
            assert_eq!(read_all(&lane, &mut cursor), [frame]);
        }
        assert_eq!(cursor.overtaken, 0);
        for number in 0..10 {
            assert!(lane.write(&[number]));
        }
        assert_eq!(read_all(&lane, &mut cursor), [[8], [9]]);
        assert_eq!(cursor.overtaken, 8);
    }

    #[test]
    fn a_frame_that_is_too_long_changes_nothing() {
        let memory = Memory::new();
        let lane = memory.lane();
        let mut cursor = lane.cursor();
        assert_eq!(lane.frame_len_max(), 16);
        assert!(!lane.write(&[0; 17]));
        assert_eq!(read_all(&lane, &mut cursor), [[0; 0]; 0]);
    }

    #[test]
    fn the_number_wraps_without_a_stuck_reader() {
        let memory = Memory::new();
        let lane = memory.lane();
        memory.head.published.store(u64::MAX - 1, Ordering::Relaxed);
        let mut cursor = lane.cursor();
        for number in 0..6 {
            assert!(lane.write(&[number]));
            assert_eq!(read_all(&lane, &mut cursor), [[number]]);
        }
    }

    #[test]
    fn without_buffers_there_is_nothing_to_write_and_nothing_to_read() {
        let head = LaneHead::zeroed();
        let lane = Lane::new(&head, &[], &[]);
        assert!(!lane.write(&[1]));
        head.published.store(7, Ordering::Relaxed);
        let mut cursor = Cursor::default();
        assert_eq!(lane.read(&mut cursor, &mut Vec::new()), Found::Nothing);
    }
}
