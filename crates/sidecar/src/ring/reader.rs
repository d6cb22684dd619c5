//! Looking into a ring's file without a part in it.
//!
//! Contract: loads only; the mapping is for reading only, so that nothing here can be noticed or do harm.
//! Any number of readers, each with its own [`Cursor`]. The file may be of an earlier start of the machine.

use bumpless_substrate::region::Region;

use super::cursor::Cursor;
use super::lines::RingCounts;
use super::protocol::Mode;
use super::shared::SharedRing;
use super::slot::{ObservationSlot, Slot};
use crate::observation::{OBSERVATION_WORDS, Observation};

/// A ring's file, mapped for reading only.
#[derive(Debug)]
pub struct Reader<const P: usize, S: Slot<P>>(SharedRing<S>);

/// Reads the observations in a file.
pub type ObservationReader = Reader<OBSERVATION_WORDS, ObservationSlot>;

impl<const P: usize, S: Slot<P>> Reader<P, S> {
    pub(crate) fn new(shared: SharedRing<S>) -> Self {
        Self(shared)
    }

    /// In front of the first record that was ever pushed: what is gone by now is then counted as overtaken,
    /// so that `pushed = delivered + overtaken + skipped` when the reader has come to the end.
    #[must_use]
    pub fn from_the_start(&self) -> Cursor {
        Cursor::at(0)
    }

    /// Behind the last record: for who wants only what comes from now on.
    #[must_use]
    pub fn from_now_on(&self) -> Cursor {
        Cursor::at(self.0.ring().reserved())
    }

    /// The next record's position and words. `None`: there is none for now.
    pub(crate) fn next_words(
        &self,
        cursor: &mut Cursor,
        now_ns: u64,
        patience_ns: u64,
    ) -> Option<(u64, [u64; P])> {
        self.0.ring().read(cursor, now_ns, patience_ns)
    }

    /// What was pushed and dropped, and of a lossless ring what its consumer did: exact.
    #[must_use]
    pub fn counts(&self) -> RingCounts {
        self.0.ring().counts(self.0.mode)
    }

    /// How the ring treats its oldest records.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.0.mode
    }

    /// The ring's file.
    #[must_use]
    pub fn region(&self) -> &Region {
        self.0.region()
    }
}

impl ObservationReader {
    /// The next observation behind the cursor. `None`: there is none for now. One that its producer has not
    /// finished is waited for, over several calls, for `patience_ns`: 0 if all producers are known to be
    /// dead, [`PATIENCE_NS`](super::PATIENCE_NS) to follow the living.
    #[must_use]
    pub fn next(&self, cursor: &mut Cursor, now_ns: u64, patience_ns: u64) -> Option<Observation> {
        let (_, words) = self.next_words(cursor, now_ns, patience_ns)?;
        Some(Observation::from_words(words))
    }
}
