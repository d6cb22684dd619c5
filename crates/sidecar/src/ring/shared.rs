//! A ring in a region of its own.
//!
//! ```text
//!      0  preamble of the region (substrate)     64 B
//!     64  lines: tail and mode; head; the rest   192 B, see `lines.rs`
//!    256  places                                 `record_size` each, a power of two of them
//! ```
//! Contract: capacity and mode are checked when the file is opened and not read again.

use std::path::Path;
use std::sync::Arc;

use bumpless_substrate::layout::Shared;
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region};
use bumpless_substrate::sync::Ordering;
use bumpless_substrate::view::View;

use super::lines::Lines;
use super::protocol::{Mode, Ring};
use super::slot::Slot;
use crate::error::SidecarError;

/// Where the places begin; unit: bytes from the start of the file.
pub(crate) const PLACES: u64 = PREAMBLE_LEN + size_of::<Lines>() as u64;

const _: () = assert!(PLACES == 256);

/// The words of a ring in a file, which they keep mapped.
#[derive(Debug)]
pub(crate) struct SharedRing<S: Shared> {
    pub(crate) lines: View<Lines>,
    pub(crate) slots: View<S>,
    pub(crate) mode: Mode,
}

impl<S: Shared> SharedRing<S> {
    /// Makes the ring, or attaches to the one that is there.
    pub(crate) fn create(
        path: &Path,
        format: &Format,
        mode: Mode,
        capacity: u32,
        access: Access,
    ) -> Result<Self, SidecarError> {
        check_capacity(path, format, capacity)?;
        let init = |region: &Region| {
            if let Ok(lines) = region.at::<Lines>(PREAMBLE_LEN) {
                // Relaxed: the file has no name yet.
                lines.mode.store(mode as u64, Ordering::Relaxed);
            }
        };
        let (region, _born) = Region::create(path, format, capacity, access, init)?;
        let ring = Self::of(region, format)?;
        if ring.mode != mode {
            return Err(SidecarError::Mode {
                path: ring.region().path().into(),
                found: ring.mode as u64,
                wanted: mode as u64,
            });
        }
        Ok(ring)
    }

    pub(crate) fn attach(path: &Path, format: &Format) -> Result<Self, SidecarError> {
        Self::of(Region::attach(path, format)?, format)
    }

    /// Also of an earlier start of the machine: a post-mortem.
    pub(crate) fn observe(path: &Path, format: &Format) -> Result<Self, SidecarError> {
        Self::of(Region::observe_of_any_boot(path, format)?, format)
    }

    fn of(region: Region, format: &Format) -> Result<Self, SidecarError> {
        let region = Arc::new(region);
        check_capacity(region.path(), format, region.capacity())?;
        let lines = View::<Lines>::new(&region, PREAMBLE_LEN, 1)?;
        // Relaxed: written before the file had a name.
        let mode = match lines[0].mode.load(Ordering::Relaxed) {
            0 => Mode::Lossless,
            1 => Mode::FlightRecorder,
            found => {
                return Err(SidecarError::Mode {
                    path: region.path().into(),
                    found,
                    wanted: Mode::FlightRecorder as u64,
                });
            }
        };
        Ok(Self {
            slots: View::new(&region, PLACES, region.capacity())?,
            lines,
            mode,
        })
    }

    pub(crate) fn region(&self) -> &Region {
        self.lines.region()
    }

    #[inline]
    pub(crate) fn ring<const P: usize>(&self) -> Ring<'_, P, S>
    where
        S: Slot<P>,
    {
        Ring::new(&self.lines[0], &self.slots)
    }
}

fn check_capacity(path: &Path, format: &Format, capacity: u32) -> Result<(), SidecarError> {
    if capacity.is_power_of_two() && capacity <= format.max_capacity {
        return Ok(());
    }
    Err(SidecarError::Capacity {
        path: path.into(),
        found: capacity,
        limit: format.max_capacity,
    })
}
