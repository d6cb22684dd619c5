//! The handshake between an observed instance and those who steer it: a tag, and who is inside.
//!
//! Contract: a coordinator changes the tag by one compare-and-swap, which begins the next *generation*;
//! any number of them may try. An operation that enters is counted under the generation that it found
//! and that still held when it was counted. So, once a generation has ended and its count is zero, no
//! operation of it is inside, and none will be. Nothing here waits by itself.
//!
//! ```text
//!   word   generation:32 | tag:32           inside[generation mod 2]: operations of that generation
//!
//!   operation   look at word ─ count +1 ─ look again ── the same generation ──▶ inside ─ count -1
//!                    ▲                         └── another one: count -1 ──┐
//!                    └─────────────────────────────────────────────────────┘
//!   coordinator other count is 0 ─ CAS word: generation + 1, tag ─ drain(the generation that ended)
//! ```
//!
//! Counts are kept for two generations. The count that the next generation will use must be zero before
//! that one begins: what is inside since the last change is waited for, never mixed up.

use bumpless_substrate::sync::{AtomicU32, AtomicU64, Ordering};

/// The most compare-and-swaps of one [`migrate`](HandshakeHeader::migrate).
const MIGRATE_TRIES: u32 = 64;

/// The tag of one instance, its generation, and who is inside.
///
/// ```
/// use bumpless_sidecar::HandshakeHeader;
///
/// let header = HandshakeHeader::new();
/// let inside = header.enter();
/// let ended = header.migrate(7)?;
/// assert_eq!((header.tag(), header.generation()), (7, ended + 1));
/// assert_eq!(header.drain(ended, |_| false).unwrap_err().inside, 1); // whoever is inside is told
/// drop(inside);
/// header.drain(ended, |_| false)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HandshakeHeader {
    word: AtomicU64,
    inside: [AtomicU32; 2],
}

/// A word's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handshake {
    /// Rises with each change of the tag; wraps after 2^32.
    pub generation: u32,
    /// What the instance is asked to be.
    pub tag: u32,
}

/// An operation that is inside; dropping it is leaving.
#[derive(Debug)]
pub struct Inside<'h> {
    header: &'h HandshakeHeader,
    generation: u32,
}

/// Operations of an ended generation are inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("generation {generation}: {inside} operations are still inside")]
pub struct StillInside {
    /// Which generation.
    pub generation: u32,
    /// How many; at least 1.
    pub inside: u32,
}

/// Why a tag was not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MigrateError {
    /// The generation before the present one is not drained.
    #[error("tag {tag}: {left}")]
    NotDrained {
        /// The tag asked for.
        tag: u32,
        /// Who is inside.
        left: StillInside,
    },
    /// Other coordinators changed the tag each time.
    #[error("tag {tag}: other coordinators won {tries} compare-and-swaps in a row")]
    Contended {
        /// The tag asked for.
        tag: u32,
        /// How many were tried.
        tries: u32,
    },
}

impl HandshakeHeader {
    /// Generation 0, tag 0, nobody inside.
    #[must_use]
    pub fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            inside: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }

    /// Generation and tag, as they were at one moment. One load.
    #[must_use]
    #[inline]
    pub fn look(&self) -> Handshake {
        // Acquire pairs with the Release of `migrate`: what the coordinator wrote before it.
        Handshake::of(self.word.load(Ordering::Acquire))
    }

    /// The tag.
    #[must_use]
    #[inline]
    pub fn tag(&self) -> u32 {
        self.look().tag
    }

    /// The generation.
    #[must_use]
    #[inline]
    pub fn generation(&self) -> u32 {
        self.look().generation
    }

    /// Counts an operation as inside. Cost: one locked operation, and one to leave. It is repeated only
    /// when the tag changes at the same time.
    #[must_use]
    pub fn enter(&self) -> Inside<'_> {
        loop {
            let Handshake { generation, .. } = self.look();
            let inside = Inside {
                header: self,
                generation,
            };
            // AcqRel pairs with `still_inside`, a read-modify-write of the same count: if that comes later,
            // it sees this operation; if it came before, the look behind this sees that the generation ended.
            self.count(generation).fetch_add(1, Ordering::AcqRel);
            let seen = self.look();
            if seen.generation == generation {
                return inside;
            }
        }
    }

    /// Changes the tag and begins the next generation; returns the one that ended. Whoever entered before
    /// may still act on the tag before: see [`drain`](Self::drain).
    ///
    /// # Errors
    /// [`MigrateError::NotDrained`]; [`MigrateError::Contended`].
    pub fn migrate(&self, tag: u32) -> Result<u32, MigrateError> {
        for _ in 0..MIGRATE_TRIES {
            let seen = self.look();
            let Handshake { generation, .. } = seen;
            let inside = self.still_inside(generation.wrapping_sub(1));
            if inside > 0 {
                let left = StillInside {
                    generation: generation.wrapping_sub(1),
                    inside,
                };
                return Err(MigrateError::NotDrained { tag, left });
            }
            let next = Handshake {
                generation: generation.wrapping_add(1),
                tag,
            };
            // AcqRel: Release pairs with the Acquire of `look`.
            let swapped = self.word.compare_exchange(
                seen.bits(),
                next.bits(),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if swapped.is_ok() {
                return Ok(generation);
            }
        }
        Err(MigrateError::Contended {
            tag,
            tries: MIGRATE_TRIES,
        })
    }

    /// How many operations of `generation` are inside. A number that is outdated at once while the
    /// generation is the present one; one that only falls once it has ended, but for operations that came
    /// too late, and leave at once.
    #[must_use]
    pub fn still_inside(&self, generation: u32) -> u32 {
        // A read-modify-write, for the order that `enter` needs; it reads the latest count. Acquire pairs with the Release of `enter` and of
        // leaving: what the operations wrote is visible to whoever finds zero.
        self.count(generation).fetch_add(0, Ordering::AcqRel)
    }

    /// Waits until no operation of a generation that has ended is inside. Between two looks it asks
    /// `patience`, with the number inside, which pauses as it likes, and gives up by `false`: an operation
    /// that never ends holds nobody up for longer than that.
    ///
    /// # Errors
    /// [`StillInside`], when patience ended.
    pub fn drain(
        &self,
        generation: u32,
        mut patience: impl FnMut(u32) -> bool,
    ) -> Result<(), StillInside> {
        loop {
            let inside = self.still_inside(generation);
            if inside == 0 {
                return Ok(());
            }
            if !patience(inside) {
                return Err(StillInside { generation, inside });
            }
        }
    }

    fn count(&self, generation: u32) -> &AtomicU32 {
        &self.inside[(generation & 1) as usize]
    }
}

impl Default for HandshakeHeader {
    fn default() -> Self {
        Self::new()
    }
}

impl Inside<'_> {
    /// The generation under which the operation is counted.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Release pairs with the Acquire of `still_inside`: what the operation wrote.
        let count = self.header.count(self.generation);
        count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Handshake {
    const fn of(bits: u64) -> Self {
        Self {
            generation: (bits >> 32) as u32,
            tag: bits as u32,
        }
    }

    const fn bits(self) -> u64 {
        (self.generation as u64) << 32 | self.tag as u64
    }
}

#[cfg(all(test, not(bumpless_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_generation_that_is_not_drained_holds_up_the_next_change_but_one_and_no_other() {
        let header = HandshakeHeader::new();
        let first = header.enter();
        assert_eq!(header.migrate(1), Ok(0));
        let second = header.enter();
        assert_eq!((first.generation(), second.generation()), (0, 1));
        let left = StillInside {
            generation: 0,
            inside: 1,
        };
        let refused = MigrateError::NotDrained { tag: 2, left };
        assert_eq!(header.migrate(2), Err(refused));
        drop(first);
        assert_eq!(header.migrate(2), Ok(1));
        assert_eq!(header.still_inside(1), 1);
        drop(second);
        assert_eq!(header.drain(1, |_| false), Ok(()));
    }

    #[test]
    fn draining_asks_for_patience_until_the_last_has_left_and_no_longer() {
        let header = HandshakeHeader::new();
        let mut inside = vec![header.enter(), header.enter()];
        let ended = header.migrate(9).expect("nobody else");
        let mut asked = Vec::new();
        let drained = header.drain(ended, |left| {
            asked.push(left);
            inside.pop().is_some()
        });
        assert_eq!((drained, asked), (Ok(()), vec![2, 1]));
    }

    #[test]
    fn generations_wrap_and_the_tag_does_not_leak_into_them() {
        let header = HandshakeHeader::new();
        let last = Handshake {
            generation: u32::MAX,
            tag: u32::MAX,
        };
        // Release: no other thread; pairs with nothing.
        header.word.store(last.bits(), Ordering::Release);
        assert_eq!(header.migrate(3), Ok(u32::MAX));
        let wrapped = Handshake {
            generation: 0,
            tag: 3,
        };
        assert_eq!(header.look(), wrapped);
    }
}
