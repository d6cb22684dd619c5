//! One set of parts that is not complete yet.
//!
//! All parts of a set have the sender's limit as length, but for the last one, so a part has a number
//! and a set is a bit for each: parts cannot overlap, and keeping track costs one bit a part.

use crate::message::{Part, PartKind};

use super::PATIENCE_CYCLES;

/// The parts of one cycle's state so far.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assembly {
    seq: u64,
    kind: PartKind,
    state_digest: u32,
    /// The whole, zero where nothing has come.
    bytes: Vec<u8>,
    /// Bit `n % 64` of word `n / 64`: part `n` has come.
    has: Vec<u64>,
    missing: usize,
    /// The latest cycle of which anything was heard when this set last grew.
    grown_at_seq: u64,
}

/// What one more part did.
#[derive(Debug, PartialEq, Eq)]
pub enum Added {
    /// Parts are still missing.
    Incomplete,
    /// That was the last one.
    Complete,
    /// It is not of this set: another kind, length, digest, or other bytes at the same place.
    Disagrees,
}

impl Assembly {
    /// The set that this part belongs to, without it.
    pub fn new(seq: u64, part: &Part, part_len_max: usize) -> Self {
        let len = part.total_len as usize;
        let parts = len.div_ceil(part_len_max);
        Self {
            seq,
            kind: part.kind,
            state_digest: part.state_digest,
            bytes: vec![0; len],
            has: vec![0; parts.div_ceil(64)],
            missing: parts,
            grown_at_seq: 0,
        }
    }

    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Adds a part, whose place and length the caller has checked against `part_len_max`.
    pub fn add(&mut self, part: &Part, part_len_max: usize, latest_seq: u64) -> Added {
        let is_of_set = part.kind == self.kind
            && part.total_len as usize == self.bytes.len()
            && part.state_digest == self.state_digest;
        let offset = part.offset as usize;
        let number = offset / part_len_max;
        let room = self.bytes.get_mut(offset..offset + part.bytes.len());
        let word = self.has.get_mut(number / 64);
        let (true, Some(room), Some(word)) = (is_of_set, room, word) else {
            return Added::Disagrees;
        };
        let bit = 1 << (number % 64);
        if *word & bit != 0 {
            return if *room == part.bytes {
                Added::Incomplete
            } else {
                Added::Disagrees
            };
        }
        room.copy_from_slice(&part.bytes);
        *word |= bit;
        self.missing -= 1;
        self.grown_at_seq = latest_seq;
        if self.missing == 0 {
            Added::Complete
        } else {
            Added::Incomplete
        }
    }

    /// Whether parts of later cycles came for so long, and none of this one, that no more is expected.
    pub fn is_stalled(&self, latest_seq: u64) -> bool {
        latest_seq.saturating_sub(self.grown_at_seq) > PATIENCE_CYCLES
    }

    pub fn is_full(&self) -> bool {
        self.kind == PartKind::Full
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
