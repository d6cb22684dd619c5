//! The mapping itself: where bounds and alignment are checked, and references are made.
//!
//! Contract: a reference given out lies inside the mapping, is aligned, and its type is all-atomic
//! ([`Shared`]), so that what other processes do to the bytes is what other threads might do. There
//! is never a slice of plain bytes over a region.

use std::fs::File;
use std::path::Path;

use memmap2::{MmapOptions, MmapRaw};

use crate::layout::Shared;

use super::RegionError;
use super::error::errno;

#[derive(Debug)]
pub(crate) struct Mapping {
    raw: MmapRaw,
    /// Length in bytes, copied when mapped; the file is never shrunk.
    len: u64,
    read_only: bool,
}

impl Mapping {
    /// Maps the first `len` bytes, which the caller has found to exist.
    pub(crate) fn new(
        path: &Path,
        file: &File,
        len: u64,
        read_only: bool,
    ) -> Result<Self, RegionError> {
        let too_long = RegionError::NoSpace {
            path: path.into(),
            wanted: len,
        };
        let mut options = MmapOptions::new();
        options.len(usize::try_from(len).map_err(|_| too_long)?);
        let raw = if read_only {
            options.map_raw_read_only(file)
        } else {
            options.map_raw(file)
        };
        let raw = raw.map_err(|e| RegionError::system(path, "map the file")(errno(&e)))?;
        Ok(Self {
            raw,
            len,
            read_only,
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Where `count` values of `T` at `offset` start, after all checks.
    fn locate<T: Shared>(
        &self,
        path: &Path,
        offset: u64,
        count: u64,
    ) -> Result<*const T, RegionError> {
        let len = count.saturating_mul(size_of::<T>() as u64);
        let out_of_range = || RegionError::OutOfRange {
            path: path.into(),
            offset,
            len,
            region_len: self.len,
        };
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(out_of_range());
        }
        let start = self
            .raw
            .as_ptr()
            .wrapping_add(usize::try_from(offset).map_err(|_| out_of_range())?);
        if start.addr() % align_of::<T>() != 0 {
            let align = align_of::<T>() as u64;
            return Err(RegionError::Misaligned {
                path: path.into(),
                offset,
                align,
            });
        }
        Ok(start.cast())
    }

    pub(crate) fn at<T: Shared>(&self, path: &Path, offset: u64) -> Result<&T, RegionError> {
        let place = self.locate::<T>(path, offset, 1)?;
        // SAFETY: `locate` has checked bounds, against the length copied when mapping, and
        // alignment; the mapping lives as long as `self`; `T` is `Shared`, so every byte pattern is
        // a valid value and all bytes are inside atomics.
        Ok(unsafe { &*place })
    }

    pub(crate) fn slice<T: Shared>(
        &self,
        path: &Path,
        offset: u64,
        count: u32,
    ) -> Result<&[T], RegionError> {
        let place = self.locate::<T>(path, offset, u64::from(count))?;
        // SAFETY: as in `at`, for all `count` values side by side.
        Ok(unsafe { core::slice::from_raw_parts(place, count as usize) })
    }

    /// Starts (`wait` = false) or does writing a range back to its file.
    pub(crate) fn flush(
        &self,
        path: &Path,
        offset: u64,
        len: u64,
        wait: bool,
    ) -> Result<(), RegionError> {
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            let region_len = self.len;
            return Err(RegionError::OutOfRange {
                path: path.into(),
                offset,
                len,
                region_len,
            });
        }
        // Both fit: they are at most the length that was mapped.
        let (start, count) = (offset as usize, len as usize);
        let done = if wait {
            self.raw.flush_range(start, count)
        } else {
            self.raw.flush_async_range(start, count)
        };
        done.map_err(|e| RegionError::system(path, "write the region back")(errno(&e)))
    }
}
