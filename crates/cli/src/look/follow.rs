//! A black box that is followed by its path, whatever becomes of the file.
//!
//! ```text
//!           ┌─ ours, or deleted ─▶ read: who has it open may still record in it
//!   path ───┼─ replaced ─────────▶ read to its end, then the new one from its start
//!           └─ truncated ────────▶ not touched, since its pages are gone; another one, if there is
//! ```
//! Contract: nobody's events are read twice. Who truncates the file between the look at its length and the
//! reading that follows kills the reader, as everybody who has it mapped: that cannot be helped.

use std::fs::File;
use std::path::{Path, PathBuf};

use bumpless_sidecar::black_box::Recorded;
use bumpless_sidecar::ring::PATIENCE_NS;
use bumpless_sidecar::ring::cursor::Cursor;
use bumpless_sidecar::{BlackBoxReader, SidecarError};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::region::PathState;

/// What has become of the file since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    There,
    Replaced,
    Truncated,
}

/// A black box, and how far it was read.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    reader: BlackBoxReader,
    /// The same; none when that is not certain.
    file: Option<File>,
    cursor: Cursor,
    /// Of those that were left.
    overtaken: u64,
    skipped: u64,
}

impl Follower {
    /// From the oldest event on that is there.
    ///
    /// # Errors
    /// As [`BlackBoxReader::open_read_only`].
    pub fn open(path: &Path) -> Result<Self, SidecarError> {
        let reader = BlackBoxReader::open_read_only(path)?;
        let file = File::open(path).ok();
        let is_current = reader.region().path_state() == Ok(PathState::Current);
        Ok(Self {
            path: path.to_owned(),
            file: file.filter(|_| is_current),
            cursor: reader.from_the_start(),
            reader,
            overtaken: 0,
            skipped: 0,
        })
    }

    /// Hands what was recorded since the last call to `take`; whether another file has taken the place of
    /// the one read until now, and is read from here on.
    ///
    /// # Errors
    /// [`SidecarError`], when what is there now is no black box any more.
    pub fn read(&mut self, mut take: impl FnMut(&Recorded)) -> Result<bool, SidecarError> {
        let fate = self.fate();
        if fate != Fate::Truncated {
            let now_ns = monotonic_ns();
            while let Some(recorded) = self.reader.next(&mut self.cursor, now_ns, PATIENCE_NS) {
                take(&recorded);
            }
        }
        if fate == Fate::There {
            return Ok(false);
        }
        let next = Self::open(&self.path)?;
        // Made when the machine had been started again, with all that was in it.
        let is_copy = next.reader.region().creation_id() == self.reader.region().creation_id();
        let (cursor, overtaken, skipped) = if is_copy {
            (self.cursor, self.overtaken, self.skipped)
        } else {
            (next.cursor, self.overtaken(), self.skipped())
        };
        *self = Self {
            cursor,
            overtaken,
            skipped,
            ..next
        };
        Ok(!is_copy)
    }

    /// Whether its times are of the machine's present start.
    pub fn is_of_this_boot(&self) -> bool {
        self.reader.header().is_of_this_boot
    }

    /// How many events are gone, as later ones were recorded over them.
    pub fn overtaken(&self) -> u64 {
        self.overtaken + self.cursor.overtaken
    }

    /// How many were never finished by their recorders.
    pub fn skipped(&self) -> u64 {
        self.skipped + self.cursor.skipped
    }

    fn fate(&self) -> Fate {
        let region = self.reader.region();
        let len = self.file.as_ref().and_then(|file| file.metadata().ok());
        if len.is_some_and(|found| found.len() < region.region_len()) {
            return Fate::Truncated;
        }
        match region.path_state() {
            Ok(PathState::Superseded) => Fate::Replaced,
            // One whose path cannot be seen any more is mapped all the same.
            Ok(PathState::Current | PathState::Orphaned) | Err(_) => Fate::There,
        }
    }
}

#[cfg(test)]
mod tests {
    use bumpless_sidecar::{BlackBox, Event, EventKind};
    use bumpless_substrate::region::{Access, Region};

    use super::*;

    fn record(black_box: &BlackBox, slot: u32) {
        black_box.record(Event {
            slot,
            ..Event::new(EventKind::Died, 1)
        });
    }

    fn slots(follower: &mut Follower) -> (Vec<u32>, bool) {
        let mut slots = Vec::new();
        let is_another = follower.read(|recorded| slots.push(recorded.event.slot));
        (slots, is_another.unwrap())
    }

    #[test]
    fn a_black_box_is_read_to_its_end_and_then_the_one_that_took_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.events");
        let create = || BlackBox::create(&path, 16, Access::Private).unwrap();
        let first = create();
        record(&first, 1);
        let mut follower = Follower::open(&path).unwrap();
        assert_eq!(slots(&mut follower), (vec![1], false));
        Region::remove(&path).unwrap();
        record(&first, 2);
        // Deleted, and still recorded in.
        assert_eq!(slots(&mut follower), (vec![2], false));
        record(&first, 3);
        let second = create();
        record(&second, 4);
        assert_eq!(slots(&mut follower), (vec![3], true));
        assert_eq!(slots(&mut follower), (vec![4], false));
    }

    #[test]
    fn a_black_box_that_was_truncated_is_not_touched_and_another_one_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.events");
        let black_box = BlackBox::create(&path, 16, Access::Private).unwrap();
        record(&black_box, 1);
        let mut follower = Follower::open(&path).unwrap();
        drop(black_box);
        std::fs::write(&path, "").unwrap();
        let gone = follower.read(|_| ()).unwrap_err();
        assert!(gone.to_string().contains("t.events"), "{gone}");
        std::fs::remove_file(&path).unwrap();
        record(&BlackBox::create(&path, 16, Access::Private).unwrap(), 2);
        assert_eq!(slots(&mut follower), (vec![], true));
        assert_eq!(slots(&mut follower), (vec![2], false));
    }
}
