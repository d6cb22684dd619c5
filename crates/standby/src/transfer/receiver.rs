//! Parts become a state. Which sets are kept: see the [module](super).

use std::borrow::Cow;

use thiserror::Error;

use crate::epoch::Epoch;
use crate::message::{Part, PartKind};

use super::assembly::{Added, Assembly};
use super::delta;

/// A state of which everything has come.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Complete<'p> {
    /// The sender's epoch.
    pub epoch: Epoch,
    /// The cycle after which the state was taken.
    pub seq: u64,
    /// The encoded state; borrowed from its part if it came in one.
    pub bytes: Cow<'p, [u8]>,
    /// Its CRC-32C.
    pub digest: u32,
}

/// Why a part was refused. The receiver goes on as if it had not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum PartError {
    /// Of a state that is longer than this receiver holds.
    #[error("part of {found} bytes in all, wanted at most {limit}")]
    TooLong {
        /// Bytes of the whole.
        found: u32,
        /// As configured.
        limit: u32,
    },
    /// Not where a part of a state of this length begins or ends.
    #[error(
        "part of {len} bytes at offset {offset} of {total_len}, wanted pieces of {part_len_max} bytes"
    )]
    Misplaced {
        /// Where it begins; unit: bytes.
        offset: u32,
        /// Its length in bytes.
        len: usize,
        /// Bytes of the whole.
        total_len: u32,
        /// As configured; the sender's must be the same.
        part_len_max: u32,
    },
    /// Another part told something else about the same cycle of the same epoch.
    #[error("two different states of cycle {seq} of epoch {epoch}")]
    Disagrees {
        /// Of which epoch.
        epoch: Epoch,
        /// Of which cycle.
        seq: u64,
    },
    /// Everything came, and makes another state than the one that was sent.
    #[error("state of cycle {seq} has digest {found:#010x}, wanted {wanted:#010x}")]
    Digest {
        /// Of which cycle.
        seq: u64,
        /// Of the bytes that came.
        found: u32,
        /// As the parts told.
        wanted: u32,
    },
    /// A delta that does not fit the full state.
    #[error("delta of cycle {seq}: no changes of the state of cycle {base_seq}")]
    Delta {
        /// Of which cycle.
        seq: u64,
        /// The cycle of the full state.
        base_seq: u64,
    },
}

/// Puts states together from parts, in whatever order they come.
///
/// It believes the epoch and the cycle of a part: the caller has judged them, or one absurd part would
/// hide everything after it.
///
/// Memory: at most the full state, two incomplete ones, and the one that is returned.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receiver {
    state_len_max: u32,
    part_len_max: u32,
    /// The highest epoch of which a part came; all below is of this one.
    epoch: Epoch,
    /// The latest cycle of which anything came.
    latest_seq: u64,
    /// The last full state.
    base: Option<Base>,
    /// The last state that came out.
    done: Option<Done>,
    oldest: Option<Assembly>,
    newest: Option<Assembly>,
    /// A set was unusable, and no full state has come out since.
    lacks_full: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Base {
    seq: u64,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Done {
    seq: u64,
    digest: u32,
}

impl Receiver {
    /// For states of at most `state_len_max` bytes, sent in pieces of `part_len_max` bytes.
    #[must_use]
    pub fn new(state_len_max: u32, part_len_max: u32) -> Self {
        Self {
            state_len_max,
            part_len_max: part_len_max.max(1),
            epoch: Epoch::NONE,
            latest_seq: 0,
            base: None,
            done: None,
            oldest: None,
            newest: None,
            lacks_full: false,
        }
    }

    /// Takes one part of the state after cycle `seq` of `epoch`; the whole state if it was the last one.
    /// A part that is old, repeated or not usable is no error, and nothing comes out.
    ///
    /// # Errors
    /// The part, or the state that it completes, is not one that a sender makes.
    ///
    /// Cost: a pass over the whole state when it is complete; a state of several parts is copied, once from
    /// them and once to be kept for deltas.
    pub fn accept<'p>(
        &mut self,
        epoch: Epoch,
        seq: u64,
        part: &'p Part,
    ) -> Result<Option<Complete<'p>>, PartError> {
        self.check(part)?;
        if epoch < self.epoch {
            return Ok(None);
        }
        if epoch > self.epoch {
            *self = Self {
                epoch,
                ..Self::new(self.state_len_max, self.part_len_max)
            };
        }
        self.latest_seq = self.latest_seq.max(seq);
        if let Some(done) = self.done
            && seq <= done.seq
        {
            if seq == done.seq && part.state_digest != done.digest {
                return Err(PartError::Disagrees { epoch, seq });
            }
            return Ok(None);
        }
        if let PartKind::Delta { base_seq } = part.kind
            && self.base.as_ref().is_none_or(|base| base.seq != base_seq)
        {
            self.lacks_full = true;
            return Ok(None);
        }
        if part.total_len <= self.part_len_max {
            return self.finish(seq, part, Cow::Borrowed(&part.bytes));
        }
        self.gather(seq, part)
    }

    /// Whether the sender should be asked for a full state: a set was not usable, and no full state is
    /// on its way.
    #[must_use]
    pub fn needs_full(&self) -> bool {
        let is_coming = |set: &Assembly| set.is_full() && !set.is_stalled(self.latest_seq);
        self.lacks_full
            && ![&self.oldest, &self.newest]
                .into_iter()
                .flatten()
                .any(is_coming)
    }

    /// The place of a part follows from the lengths alone.
    fn check(&self, part: &Part) -> Result<(), PartError> {
        if part.total_len > self.state_len_max {
            return Err(PartError::TooLong {
                found: part.total_len,
                limit: self.state_len_max,
            });
        }
        let len = u32::try_from(part.bytes.len()).unwrap_or(u32::MAX);
        let is_in_place = if part.total_len <= self.part_len_max {
            part.offset == 0 && len == part.total_len
        } else {
            part.offset < part.total_len
                && part.offset.is_multiple_of(self.part_len_max)
                && len == self.part_len_max.min(part.total_len - part.offset)
        };
        if !is_in_place {
            return Err(PartError::Misplaced {
                offset: part.offset,
                len: part.bytes.len(),
                total_len: part.total_len,
                part_len_max: self.part_len_max,
            });
        }
        Ok(())
    }

    /// Adds a part to its set, if that is one of the two that are kept.
    fn gather<'p>(&mut self, seq: u64, part: &'p Part) -> Result<Option<Complete<'p>>, PartError> {
        let (part_len_max, latest_seq) = (self.part_len_max as usize, self.latest_seq);
        let is_of = |set: &Option<Assembly>| set.as_ref().is_some_and(|set| set.seq() == seq);
        let place = if is_of(&self.oldest) {
            &mut self.oldest
        } else if is_of(&self.newest) {
            &mut self.newest
        } else {
            match self.make_room(seq) {
                Some(place) => place,
                None => return Ok(None),
            }
        };
        let set = place.get_or_insert_with(|| Assembly::new(seq, part, part_len_max));
        match set.add(part, part_len_max, latest_seq) {
            Added::Incomplete => Ok(None),
            Added::Disagrees => Err(PartError::Disagrees {
                epoch: self.epoch,
                seq,
            }),
            Added::Complete => {
                let whole = place.take().map_or_else(Vec::new, Assembly::into_bytes);
                self.close_ranks();
                self.finish(seq, part, Cow::Owned(whole))
            }
        }
    }

    /// An empty place for a new set; `None` if it is not to be kept.
    fn make_room(&mut self, seq: u64) -> Option<&mut Option<Assembly>> {
        let kept = self.newest.as_ref().or(self.oldest.as_ref());
        if kept.is_some_and(|kept| seq < kept.seq()) {
            return None;
        }
        let latest_seq = self.latest_seq;
        if self
            .oldest
            .as_ref()
            .is_some_and(|oldest| oldest.is_stalled(latest_seq))
        {
            self.oldest = None;
            self.close_ranks();
        }
        if self.oldest.is_none() {
            return Some(&mut self.oldest);
        }
        self.newest = None;
        Some(&mut self.newest)
    }

    /// The state of a complete set of such parts.
    fn finish<'p>(
        &mut self,
        seq: u64,
        part: &Part,
        whole: Cow<'p, [u8]>,
    ) -> Result<Option<Complete<'p>>, PartError> {
        let state = match part.kind {
            PartKind::Full => Ok(whole),
            PartKind::Delta { base_seq } => self
                .patched(&whole)
                .map(Cow::Owned)
                .ok_or(PartError::Delta { seq, base_seq }),
        };
        let state = state.and_then(|state| {
            let (found, wanted) = (crc32c::crc32c(&state), part.state_digest);
            if found != wanted {
                return Err(PartError::Digest { seq, found, wanted });
            }
            Ok(state)
        });
        let bytes = state.inspect_err(|_| self.lacks_full = true)?;
        if part.kind == PartKind::Full {
            self.keep(seq, &bytes);
        }
        self.done = Some(Done {
            seq,
            digest: part.state_digest,
        });
        self.drop_up_to(seq);
        Ok(Some(Complete {
            epoch: self.epoch,
            seq,
            bytes,
            digest: part.state_digest,
        }))
    }

    fn patched(&self, delta: &[u8]) -> Option<Vec<u8>> {
        let mut state = self.base.as_ref()?.bytes.clone();
        delta::apply(delta, &mut state)?;
        Some(state)
    }

    fn keep(&mut self, seq: u64, state: &[u8]) {
        self.lacks_full = false;
        let base = self.base.take();
        // A state that fits in one part is always sent in full: no delta builds on it.
        if state.len() > self.part_len_max as usize {
            let mut bytes = base.map_or_else(Vec::new, |base| base.bytes);
            bytes.clear();
            bytes.extend_from_slice(state);
            self.base = Some(Base { seq, bytes });
        }
    }

    /// The sets up to this cycle are of the past.
    fn drop_up_to(&mut self, seq: u64) {
        self.oldest.take_if(|set| set.seq() <= seq);
        self.newest.take_if(|set| set.seq() <= seq);
        self.close_ranks();
    }

    /// One set alone is the oldest.
    fn close_ranks(&mut self) {
        if self.oldest.is_none() {
            self.oldest = self.newest.take();
        }
    }
}
