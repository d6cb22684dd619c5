//! A state becomes parts.

use crate::epoch::Epoch;
use crate::message::{Part, PartKind};

use super::delta;

/// Makes the parts of each cycle's state.
///
/// A full state goes out every `full_every` calls, at each change of epoch, when one was requested,
/// whenever a delta would not be shorter, and always if it fits in one part, where a delta would save
/// no frame; a delta against the last full one otherwise.
///
/// ```
/// use bumpless_standby::transfer::{Receiver, Sender};
/// use bumpless_standby::{Epoch, NodeId};
///
/// let epoch = Epoch::new(1, NodeId(0));
/// let mut sender = Sender::new(16, 1200);
/// let mut receiver = Receiver::new(1 << 20, 1200);
/// let state = vec![7; 3000];
/// let mut complete = None;
/// let parts = sender.parts(epoch, 41, &state);
/// for part in &parts {
///     complete = receiver.accept(epoch, 41, part)?.or(complete);
/// }
/// assert_eq!(complete.map(|complete| complete.bytes.into_owned()), Some(state));
/// # Ok::<(), bumpless_standby::transfer::PartError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sender {
    full_every: u32,
    part_len_max: usize,
    is_full_requested: bool,
    /// The last full state, unless every state is sent in full.
    base: Option<Base>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Base {
    epoch: Epoch,
    seq: u64,
    bytes: Vec<u8>,
    calls_since: u32,
}

impl Sender {
    /// A full state every `full_every` calls (1: always), in parts of at most `part_len_max` bytes.
    #[must_use]
    pub fn new(full_every: u32, part_len_max: u32) -> Self {
        Self {
            full_every,
            part_len_max: usize::try_from(part_len_max).map_or(usize::MAX, |len| len.max(1)),
            is_full_requested: false,
            base: None,
        }
    }

    /// The parts of the state after cycle `seq` of `epoch`, in order, at least one. One rides in the
    /// heartbeat; several are fragments.
    ///
    /// No part at all for a state of more than `u32::MAX` bytes, which no receiver takes.
    ///
    /// Cost: one pass over the state for its digest; with deltas, one more to compare it with the last
    /// full one.
    pub fn parts(&mut self, epoch: Epoch, seq: u64, state: &[u8]) -> Vec<Part> {
        if u32::try_from(state.len()).is_err() {
            return Vec::new();
        }
        let digest = crc32c::crc32c(state);
        match self.delta(epoch, state) {
            Some((base_seq, delta)) => self.split(PartKind::Delta { base_seq }, digest, &delta),
            None => {
                self.keep(epoch, seq, state);
                self.split(PartKind::Full, digest, state)
            }
        }
    }

    /// The next state goes out in full.
    pub fn request_full(&mut self) {
        self.is_full_requested = true;
    }

    fn delta(&mut self, epoch: Epoch, state: &[u8]) -> Option<(u64, Vec<u8>)> {
        let is_full_requested = std::mem::take(&mut self.is_full_requested);
        if state.len() <= self.part_len_max {
            return None;
        }
        let base = self.base.as_mut()?;
        base.calls_since += 1;
        if is_full_requested || base.epoch != epoch || base.calls_since >= self.full_every {
            return None;
        }
        Some((base.seq, delta::encode(&base.bytes, state)?))
    }

    fn keep(&mut self, epoch: Epoch, seq: u64, state: &[u8]) {
        if self.full_every <= 1 || state.len() <= self.part_len_max {
            // The receiver keeps none either.
            self.base = None;
            return;
        }
        let mut bytes = self.base.take().map_or_else(Vec::new, |base| base.bytes);
        bytes.clear();
        bytes.extend_from_slice(state);
        self.base = Some(Base {
            epoch,
            seq,
            bytes,
            calls_since: 0,
        });
    }

    fn split(&self, kind: PartKind, state_digest: u32, whole: &[u8]) -> Vec<Part> {
        let part = |offset: usize, bytes: &[u8]| Part {
            kind,
            total_len: whole.len() as u32,
            offset: offset as u32,
            state_digest,
            bytes: bytes.to_vec(),
        };
        if whole.len() <= self.part_len_max {
            return vec![part(0, whole)];
        }
        let pieces = whole.chunks(self.part_len_max).enumerate();
        pieces
            .map(|(index, bytes)| part(index * self.part_len_max, bytes))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoch::NodeId;

    const EPOCH: Epoch = Epoch::new(1, NodeId(0));

    /// `None` for a full state, else the cycle of its base.
    fn bases(sender: &mut Sender, epoch: Epoch, cycles: std::ops::Range<u64>) -> Vec<Option<u64>> {
        let mut state = vec![0; 64];
        cycles
            .map(|seq| {
                state[3] = seq as u8;
                match sender.parts(epoch, seq, &state)[0].kind {
                    PartKind::Full => None,
                    PartKind::Delta { base_seq } => Some(base_seq),
                }
            })
            .collect()
    }

    #[test]
    fn every_nth_state_is_full_and_those_between_build_on_it() {
        let found = bases(&mut Sender::new(3, 32), EPOCH, 10..17);
        let (full, on) = (None, Some);
        assert_eq!(found, [full, on(10), on(10), full, on(13), on(13), full]);
    }

    #[test]
    fn a_change_of_epoch_and_a_request_make_the_next_state_full() {
        let mut sender = Sender::new(100, 32);
        assert_eq!(bases(&mut sender, EPOCH, 0..2), [None, Some(0)]);
        sender.request_full();
        assert_eq!(bases(&mut sender, EPOCH, 2..4), [None, Some(2)]);
        let next = Epoch::new(2, NodeId(1));
        assert_eq!(bases(&mut sender, next, 4..6), [None, Some(4)]);
    }

    #[test]
    fn a_request_before_the_first_state_is_answered_by_it() {
        let mut sender = Sender::new(100, 32);
        sender.request_full();
        assert_eq!(bases(&mut sender, EPOCH, 0..2), [None, Some(0)]);
    }

    #[test]
    fn without_deltas_nothing_is_kept() {
        let mut sender = Sender::new(1, 32);
        let fresh = sender.clone();
        assert_eq!(bases(&mut sender, EPOCH, 0..3), [None; 3]);
        assert_eq!(sender, fresh);
    }

    #[test]
    fn a_delta_that_is_no_shorter_is_sent_in_full_and_becomes_the_base() {
        let mut sender = Sender::new(100, 32);
        sender.parts(EPOCH, 0, &[0; 64]);
        assert_eq!(sender.parts(EPOCH, 1, &[9; 64])[0].kind, PartKind::Full);
        let kind = sender.parts(EPOCH, 2, &[9; 64])[0].kind;
        assert_eq!(kind, PartKind::Delta { base_seq: 1 });
        assert_eq!(sender.parts(EPOCH, 3, &[9; 65])[0].kind, PartKind::Full);
    }

    #[test]
    fn a_state_that_fits_in_one_part_is_always_full() {
        assert_eq!(bases(&mut Sender::new(100, 64), EPOCH, 0..3), [None; 3]);
    }

    #[test]
    fn a_long_state_is_split_at_the_limit_and_an_empty_one_is_one_part() {
        let state: Vec<u8> = (0..150).collect();
        let parts = Sender::new(1, 64).parts(EPOCH, 0, &state);
        let pieces: Vec<_> = parts.iter().map(|p| (p.offset, p.bytes.len())).collect();
        assert_eq!(pieces, [(0, 64), (64, 64), (128, 22)]);
        assert!(parts.iter().all(|part| part.total_len == 150));
        assert_eq!(Sender::new(1, 64).parts(EPOCH, 0, &state[..64]).len(), 1);
        assert_eq!(Sender::new(1, 64).parts(EPOCH, 0, &[]).len(), 1);
    }
}
