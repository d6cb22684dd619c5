//! The claim word: who owns a record, as one atomic word.
//!
//! Contract: every change of ownership is one compare-and-swap of this word, so there is no moment
//! at which an owner is half registered to the eye of a peer. The generation rises by one at each
//! claim and survives release; a [`Claim`] in state LIVE is thus unique in the life of the record and
//! serves as the owner's handle. At the highest generation the record is retired: it is never
//! claimed again.
//!
//! ```text
//!            claim(pid)                publish
//!   FREE ───────────────▶ CLAIMING ───────────────▶ LIVE
//!                            │ ▲                     │
//!      owner proven gone:    │ │ claim(pid),         │ release
//!      claim(pid)            ▼ │ generation + 1      ▼
//!                         CLAIMING ◀────────────── RELEASED
//!                            ▲
//!                            └── LIVE, owner proven gone
//!
//!   word:  63        32 31            4 3     0
//!         ┌────────────┬───────────────┬───────┐
//!         │ pid        │ generation:28 │ state │
//!         └────────────┴───────────────┴───────┘
//! ```
//! Whether an owner is gone, and whether its record holds anything that must survive, is for the
//! caller to establish before it claims from LIVE or CLAIMING.

use core::fmt;

use crate::layout::Shared;
use crate::sync::{AtomicU64, Ordering, fence};

/// The highest generation; a record that reached it is retired.
pub const GENERATION_MAX: u32 = (1 << 28) - 1;

const STATE_BITS: u32 = 4;
const STATE_MASK: u64 = (1 << STATE_BITS) - 1;
const PID_SHIFT: u32 = 32;

/// What a claim word says about its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClaimState {
    /// Never claimed. All bits of the word are zero.
    Free,
    /// Its owner is filling in the record.
    Claiming,
    /// Owned.
    Live,
    /// Given back by its owner; the pid is the last owner's.
    Released,
}

/// The value of a claim word: pid, generation and state. Any bit pattern is one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claim(u64);

impl Claim {
    /// The claim of a record that nobody ever owned.
    pub const FREE: Self = Self(0);

    /// Packs a claim; a generation above [`GENERATION_MAX`] is cut to its low 28 bits.
    #[must_use]
    pub const fn new(pid: u32, generation: u32, state: ClaimState) -> Self {
        let state = match state {
            ClaimState::Free => 0,
            ClaimState::Claiming => 1,
            ClaimState::Live => 2,
            ClaimState::Released => 3,
        };
        let generation = ((generation & GENERATION_MAX) as u64) << STATE_BITS;
        Self((pid as u64) << PID_SHIFT | generation | state)
    }

    /// The claim with exactly these bits, as found in a mapping.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The bits of the word.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The owner's process id in its own pid namespace.
    #[must_use]
    #[inline]
    pub const fn pid(self) -> u32 {
        (self.0 >> PID_SHIFT) as u32
    }

    /// How often the record has been claimed; 0 only when it never was.
    #[must_use]
    #[inline(always)]
    pub const fn generation(self) -> u32 {
        (self.0 >> STATE_BITS) as u32 & GENERATION_MAX
    }

    /// The state, or `None` when its four bits are none that this version knows: such a record is
    /// quarantined.
    #[must_use]
    #[inline]
    pub const fn state(self) -> Option<ClaimState> {
        match self.0 & STATE_MASK {
            0 => Some(ClaimState::Free),
            1 => Some(ClaimState::Claiming),
            2 => Some(ClaimState::Live),
            3 => Some(ClaimState::Released),
            _ => None,
        }
    }

    /// Whether this is the claim of an owner that is registered.
    #[must_use]
    #[inline]
    pub const fn is_live(self) -> bool {
        matches!(self.state(), Some(ClaimState::Live))
    }

    const fn with_state(self, state: ClaimState) -> Self {
        Self::new(self.pid(), self.generation(), state)
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pid, generation) = (self.pid(), self.generation());
        match self.state() {
            Some(state) => write!(f, "Claim(pid {pid}, generation {generation}, {state:?})"),
            None => write!(f, "Claim(unknown state in {:#018x})", self.0),
        }
    }
}

/// The word in shared memory. Written by CAS only, by the owner and by whoever claims.
///
/// ```
/// use bumpless_substrate::{claim::{Claim, ClaimWord}, layout::Shared};
/// let word = ClaimWord::zeroed();
/// let claiming = word.claim(Claim::FREE, 4711).unwrap();
/// let live = word.publish(claiming).unwrap();
/// assert_eq!((live.pid(), live.generation(), word.load()), (4711, 1, live));
/// assert_eq!(word.claim(Claim::FREE, 4712), Err(live));
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct ClaimWord(AtomicU64);

// SAFETY: a transparent wrapper of an `AtomicU64`, which is `Shared`.
unsafe impl Shared for ClaimWord {
    fn zeroed() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl ClaimWord {
    /// The claim now, ordered before everything that the caller reads afterwards.
    ///
    /// A relaxed load with an acquire fence, so that it is also allowed on a read-only mapping. The
    /// fence pairs with the release of [`publish`](Self::publish): who sees LIVE sees the fields.
    #[must_use]
    #[inline]
    pub fn load(&self) -> Claim {
        // Relaxed: the fence below orders it.
        let bits = self.0.load(Ordering::Relaxed);
        // Pairs with the Release CAS of `publish` and of `release`.
        fence(Ordering::Acquire);
        Claim(bits)
    }

    /// The claim now, with no ordering: a filter, or the second look behind a fence.
    #[must_use]
    #[inline(always)]
    pub fn peek(&self) -> Claim {
        // Relaxed: what is decided on it is decided by the value alone.
        Claim(self.0.load(Ordering::Relaxed))
    }

    /// Takes the record: `seen` becomes `pid`, the next generation, CLAIMING. Cost: one locked CAS.
    ///
    /// # Errors
    /// The claim found instead of `seen`; or `seen` itself when it is at [`GENERATION_MAX`].
    pub fn claim(&self, seen: Claim, pid: u32) -> Result<Claim, Claim> {
        if seen.generation() == GENERATION_MAX {
            return Err(seen);
        }
        let claiming = Claim::new(pid, seen.generation() + 1, ClaimState::Claiming);
        // Acquire pairs with `release` and with the acknowledgement of the last unit: what the
        // predecessor and its reclaimer wrote happened before the new owner overwrites it.
        self.exchange(seen, claiming, Ordering::Acquire)
    }

    /// Makes a CLAIMING record LIVE: the point at which peers see the new owner and all its fields.
    ///
    /// # Errors
    /// The claim found instead of `claiming`; nobody but its owner changes it, so the region is
    /// damaged.
    pub fn publish(&self, claiming: Claim) -> Result<Claim, Claim> {
        // Release pairs with the acquire fence of `load`: fields before LIVE.
        self.exchange(
            claiming,
            claiming.with_state(ClaimState::Live),
            Ordering::Release,
        )
    }

    /// Gives the record back; pid and generation stay.
    ///
    /// # Errors
    /// The claim found instead of `live`: the caller owns it no longer.
    pub fn release(&self, live: Claim) -> Result<Claim, Claim> {
        // Release pairs with the Acquire CAS of the next `claim`.
        self.exchange(
            live,
            live.with_state(ClaimState::Released),
            Ordering::Release,
        )
    }

    fn exchange(&self, from: Claim, to: Claim, order: Ordering) -> Result<Claim, Claim> {
        // Relaxed on failure: the value found is reported, nothing is read through it. The success
        // ordering is argued at each caller.
        self.0
            .compare_exchange(from.0, to.0, order, Ordering::Relaxed)
            .map(|_| to)
            .map_err(Claim)
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_packing_is_the_documented_one() {
        let claim = Claim::new(0xdead_beef, 0x0abc_def0, ClaimState::Live);
        assert_eq!(claim.bits(), 0xdead_beef_abcd_ef02);
        assert_eq!(claim.pid(), 0xdead_beef);
        assert_eq!(claim.generation(), 0x0abc_def0);
        assert_eq!(claim.state(), Some(ClaimState::Live));
    }

    #[test]
    fn unknown_states_have_no_name() {
        for state in 4..16 {
            assert_eq!(Claim::from_bits(state).state(), None);
        }
    }

    #[test]
    fn the_generation_rises_at_each_claim_and_survives_release() {
        let word = ClaimWord::zeroed();
        let mut seen = Claim::FREE;
        for generation in 1..=3 {
            let claiming = word.claim(seen, 7).unwrap();
            assert_eq!(claiming.generation(), generation);
            let live = word.publish(claiming).unwrap();
            seen = word.release(live).unwrap();
            assert_eq!(word.release(live), Err(seen));
        }
    }

    #[test]
    fn a_record_at_the_highest_generation_is_retired() {
        let word = ClaimWord::zeroed();
        let last = Claim::new(7, GENERATION_MAX, ClaimState::Released);
        word.0.store(last.bits(), Ordering::Relaxed);
        assert_eq!(word.claim(last, 8), Err(last));
        assert_eq!(word.load(), last);
    }
}
