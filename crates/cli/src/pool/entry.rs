//! One entry of a lane: a file offered to a worker, and the worker's result.
//!
//! ```text
//!  at  0        8      12      16      20     24         32              64
//!      ┌────────┬──────┬───────┬───────┬──────┬──────────┬───────────────┬──────────────────────┐
//!      │ state  │ len  │outcome│detail │ zero │  zero    │ digest[0..4]  │ path, 4,096 bytes    │
//!      └────────┴──────┴───────┴───────┴──────┴──────────┴───────────────┴──────────────────────┘
//!  state word   63      56 55                                   0
//!              ┌──────────┬──────────────────────────────────────┐
//!              │ state:8  │ ticket:56, the number of the offer   │
//!              └──────────┴──────────────────────────────────────┘
//!
//!  who   parent ─ offer ─▶ OFFERED ─ take (worker) ─▶ TAKEN ─ publish (worker) ─▶ PUBLISHED
//!                            │ retract (parent)                                    │ parent
//!                            ▼                                                     ▼
//!                          EMPTY ◀──────────────────── clear ──────────────────────┘
//! ```
//! Contract: an entry's index is its heartbeat unit. The worker marks the unit before it takes the
//! entry and completes it after it has published; so PUBLISHED alone commits nothing. Take and
//! retract exclude each other, and each names the ticket: an old offer is never taken for a new one.
//! Whatever stands in the words, reading them gives an error or a value, never a panic.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use bumpless_substrate::sync::{AtomicU32, AtomicU64, Ordering};

/// The longest path that an entry carries, in bytes.
pub const PATH_BYTES: usize = 4096;

const TICKET_BITS: u32 = 56;
const TICKET_MASK: u64 = (1 << TICKET_BITS) - 1;
const WORD: usize = 8;

bumpless_substrate::shared_struct! {
    /// An offer and its result; layout and writers in the [module's text](self).
    pub struct Entry[size = 4160, align = 64] {
        /// State and ticket. CAS: parent (offer, retract), worker (take, publish).
        0 => state: AtomicU64,
        /// Length of the path in bytes. Parent; read by the worker.
        8 => path_len: AtomicU32,
        /// Which [`Outcome`]. Worker; read by the parent.
        12 => outcome: AtomicU32,
        /// An errno, exit code or signal. Worker; read by the parent.
        16 => detail: AtomicU32,
        /// Zero.
        20 => spare: AtomicU32,
        /// Zero.
        24 => spare_word: AtomicU64,
        /// SHA-256, as four big-endian words. Worker; read by the parent.
        32 => digest: [AtomicU64; 4],
        /// The path's bytes, eight to a little-endian word. Parent; read by the worker.
        64 => path: [AtomicU64; 512],
    }
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    /// Nothing.
    Empty,
    /// The parent wants it done.
    Offered,
    /// The worker is at it.
    Taken,
    /// The worker's result is there.
    Published,
    /// No state that there is: the memory is damaged.
    Damaged(u8),
}

impl EntryState {
    const fn bits(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Offered => 1,
            Self::Taken => 2,
            Self::Published => 3,
            Self::Damaged(bits) => bits as u64,
        }
    }

    const fn of(word: u64) -> Self {
        match (word >> TICKET_BITS) as u8 {
            0 => Self::Empty,
            1 => Self::Offered,
            2 => Self::Taken,
            3 => Self::Published,
            other => Self::Damaged(other),
        }
    }
}

/// What came out of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Its SHA-256.
    Digest([u8; 32]),
    /// The command's exit code.
    Exited(i32),
    /// The signal that ended the command.
    Signaled(i32),
    /// The file could not be opened.
    NotOpened(i32),
    /// The file could not be read to its end.
    NotRead(i32),
    /// The file is not a regular file any more.
    NotRegular,
    /// The command could not be started.
    NotStarted(i32),
    /// Where the command's output should go could not be written.
    NotRecorded(i32),
    /// No outcome that there is: the memory is damaged.
    Damaged(u32),
}

impl Outcome {
    fn parts(self) -> (u32, i32) {
        match self {
            Self::Digest(_) => (1, 0),
            Self::Exited(code) => (2, code),
            Self::Signaled(signal) => (3, signal),
            Self::NotOpened(errno) => (4, errno),
            Self::NotRead(errno) => (5, errno),
            Self::NotRegular => (6, 0),
            Self::NotStarted(errno) => (7, errno),
            Self::NotRecorded(errno) => (8, errno),
            Self::Damaged(kind) => (kind, 0),
        }
    }
}

fn word(state: EntryState, ticket: u64) -> u64 {
    state.bits() << TICKET_BITS | ticket & TICKET_MASK
}

/// The parent's operations.
impl Entry {
    /// Offers a path under a ticket. The entry is EMPTY or one whose result was accepted. Returns
    /// whether it was offered; a path that is too long is not.
    #[must_use]
    pub fn offer(&self, ticket: u64, path: &[u8]) -> bool {
        let Ok(len) = u32::try_from(path.len()) else {
            return false;
        };
        if path.len() > PATH_BYTES {
            return false;
        }
        // Relaxed: published by the state below.
        self.path_len.store(len, Ordering::Relaxed);
        for (slot, bytes) in self.path.iter().zip(path.chunks(WORD)) {
            let mut whole = [0; WORD];
            whole[..bytes.len()].copy_from_slice(bytes);
            // Relaxed: published by the state below.
            slot.store(u64::from_le_bytes(whole), Ordering::Relaxed);
        }
        let offered = word(EntryState::Offered, ticket);
        // Pairs with the worker's acquire in `take`: the path is visible.
        self.state.store(offered, Ordering::Release);
        true
    }

    /// Takes an offer back, unless the worker was faster.
    #[must_use]
    pub fn retract(&self, ticket: u64) -> bool {
        let (offered, empty) = (word(EntryState::Offered, ticket), 0);
        // Relaxed: nothing is published or read behind it.
        self.state
            .compare_exchange(offered, empty, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// The state under this ticket; EMPTY when the entry shows another ticket.
    #[must_use]
    pub fn state(&self, ticket: u64) -> EntryState {
        // Pairs with the worker's release in `publish`: its result is visible.
        let found = self.state.load(Ordering::Acquire);
        if found & TICKET_MASK == ticket & TICKET_MASK {
            EntryState::of(found)
        } else {
            EntryState::Empty
        }
    }

    /// The result. Means something once the state was seen to be PUBLISHED.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        // Relaxed, all of them: ordered by the acquire of the state in `state`.
        let detail = self.detail.load(Ordering::Relaxed) as i32;
        match self.outcome.load(Ordering::Relaxed) {
            1 => {
                let mut digest = [0; 32];
                for (bytes, slot) in digest.chunks_mut(WORD).zip(&self.digest) {
                    bytes.copy_from_slice(&slot.load(Ordering::Relaxed).to_be_bytes());
                }
                Outcome::Digest(digest)
            }
            2 => Outcome::Exited(detail),
            3 => Outcome::Signaled(detail),
            4 => Outcome::NotOpened(detail),
            5 => Outcome::NotRead(detail),
            6 => Outcome::NotRegular,
            7 => Outcome::NotStarted(detail),
            8 => Outcome::NotRecorded(detail),
            kind => Outcome::Damaged(kind),
        }
    }

    /// Makes the entry EMPTY: its worker is gone.
    pub fn clear(&self) {
        // Relaxed: no other process uses it now.
        self.state.store(0, Ordering::Relaxed);
    }
}

/// The worker's operations.
impl Entry {
    /// The ticket under which something is offered here.
    #[must_use]
    pub fn offered(&self) -> Option<u64> {
        // Relaxed: a filter; `take` is the truth.
        let found = self.state.load(Ordering::Relaxed);
        (EntryState::of(found) == EntryState::Offered).then_some(found & TICKET_MASK)
    }

    /// Takes the offer, unless the parent has taken it back. The unit is marked before.
    #[must_use]
    pub fn take(&self, ticket: u64) -> bool {
        let (offered, taken) = (
            word(EntryState::Offered, ticket),
            word(EntryState::Taken, ticket),
        );
        // Pairs with the parent's release in `offer`: the path is visible.
        self.state
            .compare_exchange(offered, taken, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// The path of the offer taken.
    #[must_use]
    pub fn path(&self) -> OsString {
        // Relaxed: ordered by the acquire in `take`.
        let len = self.path_len.load(Ordering::Relaxed) as usize;
        let len = len.min(PATH_BYTES);
        let mut bytes = Vec::with_capacity(len.next_multiple_of(WORD));
        for slot in &self.path[..len.div_ceil(WORD)] {
            // Relaxed: as above.
            bytes.extend_from_slice(&slot.load(Ordering::Relaxed).to_le_bytes());
        }
        bytes.truncate(len);
        OsString::from_vec(bytes)
    }

    /// Publishes the result of the offer taken. The unit is completed after.
    pub fn publish(&self, ticket: u64, outcome: Outcome) {
        let (kind, detail) = outcome.parts();
        // Relaxed, as the words below: published by the state.
        self.outcome.store(kind, Ordering::Relaxed);
        self.detail.store(detail as u32, Ordering::Relaxed);
        if let Outcome::Digest(digest) = outcome {
            for (slot, bytes) in self.digest.iter().zip(digest.chunks(WORD)) {
                let mut whole = [0; WORD];
                whole.copy_from_slice(bytes);
                // Relaxed: published by the state.
                slot.store(u64::from_be_bytes(whole), Ordering::Relaxed);
            }
        }
        let published = word(EntryState::Published, ticket);
        // Pairs with the parent's acquire in `state`. Only the taker writes a TAKEN entry.
        self.state.store(published, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use bumpless_substrate::layout::Shared;

    use super::*;

    #[test]
    fn a_path_of_any_length_and_bytes_arrives() {
        let entry = Entry::zeroed();
        for len in [0, 1, 7, 8, 9, 255, 4095, 4096] {
            let path: Vec<u8> = (0..len).map(|i| (i % 251) as u8 + 1).collect();
            assert!(entry.offer(len as u64, &path));
            assert!(entry.take(len as u64));
            assert_eq!(entry.path().as_bytes(), path);
        }
        assert!(!entry.offer(9, &[b'x'; PATH_BYTES + 1]));
    }

    #[test]
    fn an_offer_is_taken_or_retracted_and_only_under_its_ticket() {
        let entry = Entry::zeroed();
        assert!(entry.offer(7, b"a"));
        assert_eq!(entry.offered(), Some(7));
        assert!(!entry.take(6));
        assert!(entry.retract(7));
        assert!(!entry.take(7));
        assert_eq!((entry.offered(), entry.state(7)), (None, EntryState::Empty));
        assert!(entry.offer(8, b"a"));
        assert!(entry.take(8));
        assert!(!entry.retract(8));
        assert_eq!(entry.state(8), EntryState::Taken);
        assert_eq!(entry.state(7), EntryState::Empty);
    }

    #[test]
    fn every_outcome_arrives() {
        let entry = Entry::zeroed();
        let digest = core::array::from_fn(|i| i as u8);
        for outcome in [
            Outcome::Digest(digest),
            Outcome::Exited(-1),
            Outcome::Exited(255),
            Outcome::Signaled(9),
            Outcome::NotOpened(13),
            Outcome::NotRead(5),
            Outcome::NotRegular,
            Outcome::NotStarted(2),
            Outcome::NotRecorded(28),
        ] {
            assert!(entry.offer(1, b"a"));
            assert!(entry.take(1));
            entry.publish(1, outcome);
            assert_eq!(entry.state(1), EntryState::Published);
            assert_eq!(entry.outcome(), outcome);
        }
    }

    #[test]
    fn any_bytes_in_an_entry_are_a_value() {
        for bits in [u64::MAX, 0x8080_8080_8080_8080, 0x0100_0000_0000_0000] {
            let entry = Entry::zeroed();
            entry.state.store(bits, Ordering::Relaxed);
            entry.path_len.store(bits as u32, Ordering::Relaxed);
            entry.outcome.store(bits as u32, Ordering::Relaxed);
            assert!(entry.path().len() <= PATH_BYTES);
            let outcome = entry.outcome();
            assert!(matches!(outcome, Outcome::Damaged(_)) || bits as u32 == 0);
            let state = entry.state(bits & TICKET_MASK);
            assert!(matches!(
                state,
                EntryState::Damaged(_) | EntryState::Offered
            ));
        }
    }
}
