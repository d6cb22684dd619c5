//! [`BlackBox`]: the last events of many processes, in a file that survives all of them.
//!
//! Contract: an event that was recorded is in the file, whatever becomes of its recorder a moment later,
//! until `capacity` more have been recorded. Recording waits for nobody. Reading takes nothing away, cannot
//! be noticed, and needs nobody of those who recorded, nor the machine's start in which they did: a box on a
//! disk is read after it, and goes on when it is made again. The file is named `NAME.events`, beside the table it
//! speaks of, if the tools are to find it.

use std::path::Path;

use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::identity::boot_id;
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region};

use crate::error::SidecarError;
use crate::event::{EVENT_WORDS, Event, EventKind};
use crate::ring::cursor::Cursor;
use crate::ring::lines::Lines;
use crate::ring::protocol::Ring;
use crate::ring::shared::{PLACES, SharedRing};
use crate::ring::slot::EventSlot;
use crate::ring::{Mode, Reader};

/// The end of a black box's file name: `workers.tbl.events` belongs to `workers.tbl`.
pub const SUFFIX: &str = ".events";

/// The file format of a black box.
pub const BLACK_BOX: Format = Format {
    kind: *b"EVTS",
    version: 1,
    record_size: size_of::<EventSlot>() as u32,
    max_capacity: 1 << 20,
    region_len: |capacity| PLACES + u64::from(capacity) * size_of::<EventSlot>() as u64,
    // What happened before the machine was started again is what one wants to know: it stays.
    revived: record_restart,
};

/// Says from where on times are of the present start's clock.
fn record_restart(region: &Region) {
    // The copy was checked to be a whole black box before it is revived.
    let lines = region.at::<Lines>(PREAMBLE_LEN);
    let slots = region.slice::<EventSlot>(PLACES, region.capacity());
    if let (Ok(lines), Ok(slots)) = (lines, slots) {
        let event = Event::new(EventKind::Rebooted, monotonic_ns());
        Ring::new(lines, slots).push(Mode::FlightRecorder, &event.to_words(), || ());
    }
}

/// Records events; `Sync`.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("workers.tbl.events");
/// use bumpless_sidecar::{BlackBox, BlackBoxReader, Event, EventKind};
/// use bumpless_substrate::{clock::monotonic_ns, region::Access};
///
/// let black_box = BlackBox::create(&path, 2, Access::Private)?;
/// for slot in 0..3 {
///     black_box.record(Event { slot, ..Event::new(EventKind::Died, monotonic_ns()) });
/// }
/// let history = BlackBoxReader::open_read_only(&path)?.read_all();
/// let slots: Vec<u32> = history.events.iter().map(|recorded| recorded.event.slot).collect();
/// assert_eq!((slots, history.overtaken, history.skipped), (vec![1, 2], 1, 0));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct BlackBox(SharedRing<EventSlot>);

impl BlackBox {
    /// Makes a black box for the last `capacity` events, or attaches to the one that is there. 128 B each.
    ///
    /// # Errors
    /// [`SidecarError::Capacity`] unless it is a power of two, at most 2^20; [`SidecarError::Region`].
    pub fn create(
        path: impl AsRef<Path>,
        capacity: u32,
        access: Access,
    ) -> Result<Self, SidecarError> {
        let mode = Mode::FlightRecorder;
        SharedRing::create(path.as_ref(), &BLACK_BOX, mode, capacity, access).map(Self)
    }

    /// Attaches to the black box that is there.
    ///
    /// # Errors
    /// [`SidecarError::Region`], [`SidecarError::Capacity`], [`SidecarError::Mode`] for what is none.
    pub fn attach(path: impl AsRef<Path>) -> Result<Self, SidecarError> {
        SharedRing::attach(path.as_ref(), &BLACK_BOX).map(Self)
    }

    /// Records an event, over the oldest one if need be. Cost: one locked instruction and two lines of
    /// memory; no system call. A fork child may record, too.
    pub fn record(&self, event: Event) {
        // Fails only while 1,000 others record between two instructions, and is counted then.
        self.0
            .ring()
            .push(Mode::FlightRecorder, &event.to_words(), || ());
    }

    /// What is known of it.
    #[must_use]
    pub fn header(&self) -> Header {
        Header::of(&self.0)
    }
}

/// What is known of a black box besides its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its file.
    pub path: std::path::PathBuf,
    /// Its name among all that ever had this path.
    pub creation_id: u64,
    /// The start of the system in which its times mean something; those of events before the last
    /// [`Rebooted`](EventKind::Rebooted) are of an earlier one.
    pub boot_id: [u64; 2],
    /// Whether that is the present one. If not, everybody who recorded is gone.
    pub is_of_this_boot: bool,
    /// How many events it keeps.
    pub capacity: u32,
    /// How many were ever recorded.
    pub recorded: u64,
    /// How many found no place.
    pub dropped: u64,
}

impl Header {
    fn of(shared: &SharedRing<EventSlot>) -> Self {
        let counts = shared.ring().counts(Mode::FlightRecorder);
        Self::with(shared.region(), counts.pushed, counts.dropped)
    }

    fn with(region: &Region, recorded: u64, dropped: u64) -> Self {
        Self {
            path: region.path().into(),
            creation_id: region.creation_id(),
            boot_id: region.boot_id(),
            is_of_this_boot: boot_id().is_ok_and(|now| now == region.boot_id()),
            capacity: region.capacity(),
            recorded,
            dropped,
        }
    }
}

/// An event, and the how manieth it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// From 0.
    pub position: u64,
    /// The event.
    pub event: Event,
}

/// All that a black box has to tell: `recorded = events + overtaken + skipped`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    /// What is there, in the order in which it was recorded.
    pub events: Vec<Recorded>,
    /// How many are gone, as later ones were recorded over them.
    pub overtaken: u64,
    /// How many were never finished, or written over by a recorder that stood still for a whole turn.
    pub skipped: u64,
}

/// Reads a black box.
pub type BlackBoxReader = Reader<EVENT_WORDS, EventSlot>;

impl BlackBoxReader {
    /// Maps a black box for reading only, also one from before the machine's last start.
    ///
    /// # Errors
    /// [`SidecarError::Region`], [`SidecarError::Capacity`], [`SidecarError::Mode`] for what is none.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, SidecarError> {
        SharedRing::observe(path.as_ref(), &BLACK_BOX).map(Self::new)
    }

    /// All events that are there, of recorders alive or dead: an unfinished one is skipped at once. At most
    /// as many as fit.
    #[must_use]
    pub fn read_all(&self) -> History {
        let mut cursor = self.from_the_start();
        let mut events = Vec::new();
        for _ in 0..self.region().capacity() {
            let Some(recorded) = self.next(&mut cursor, 0, 0) else {
                break;
            };
            events.push(recorded);
        }
        History {
            events,
            overtaken: cursor.overtaken,
            skipped: cursor.skipped,
        }
    }

    /// The next event behind the cursor. `None`: there is none for now. One that its recorder has not finished
    /// is waited for, over several calls, for `patience_ns`: 0 if all recorders are known to be dead,
    /// [`PATIENCE_NS`](crate::ring::PATIENCE_NS) to follow the living.
    #[must_use]
    pub fn next(&self, cursor: &mut Cursor, now_ns: u64, patience_ns: u64) -> Option<Recorded> {
        let (position, words) = self.next_words(cursor, now_ns, patience_ns)?;
        Some(Recorded {
            position,
            event: Event::from_words(words),
        })
    }

    /// What is known of it.
    #[must_use]
    pub fn header(&self) -> Header {
        let counts = self.counts();
        Header::with(self.region(), counts.pushed, counts.dropped)
    }
}
