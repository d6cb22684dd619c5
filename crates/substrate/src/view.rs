//! Typed references into a region that outlive the borrow: a pointer, a count, and the region.
//!
//! Contract: a [`View`], or [`One`], keeps its region mapped; what it points to was checked once, against the
//! length that was copied when the region was opened, never against anything in the memory itself.

use core::fmt;
use core::ops::Deref;
use core::ptr::NonNull;
use std::sync::Arc;

use crate::layout::Shared;
use crate::region::{Region, RegionError};

/// A slice of records in a region. Derefs to `&[T]`; cost: none over a slice.
pub struct View<T: Shared> {
    first: NonNull<T>,
    count: usize,
    region: Arc<Region>,
}

impl<T: Shared> View<T> {
    /// The `count` records that start `offset` bytes into the region.
    ///
    /// # Errors
    /// As [`Region::slice`]: out of bounds or misaligned.
    pub fn new(region: &Arc<Region>, offset: u64, count: u32) -> Result<Self, RegionError> {
        let records: &[T] = region.slice(offset, count)?;
        Ok(Self {
            first: NonNull::from(records).cast(),
            count: records.len(),
            region: Arc::clone(region),
        })
    }

    /// The region that the records lie in.
    #[must_use]
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }
}

impl<T: Shared> Clone for View<T> {
    fn clone(&self) -> Self {
        Self {
            first: self.first,
            count: self.count,
            region: Arc::clone(&self.region),
        }
    }
}

impl<T: Shared> Deref for View<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `first` and `count` come from a slice that `Region::slice` checked in `new`; the
        // mapping does not move or end while `self.region` lives; `T: Shared` makes a shared
        // reference valid whatever other processes write.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

/// One record in a region. Derefs to `&T`; cost: none over a reference.
#[derive(Debug)]
pub struct One<T: Shared>(View<T>);

impl<T: Shared> One<T> {
    /// The record that starts `offset` bytes into the region.
    ///
    /// # Errors
    /// As [`Region::slice`]: out of bounds or misaligned.
    pub fn new(region: &Arc<Region>, offset: u64) -> Result<Self, RegionError> {
        View::new(region, offset, 1).map(Self)
    }
}

impl<T: Shared> Deref for One<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `first` is the start of a slice of one that `Region::slice` checked in `new`; for the
        // rest as for a view.
        unsafe { self.0.first.as_ref() }
    }
}

// SAFETY: a view is a shared slice of `T`, which is `Send + Sync` by `Shared`, and an `Arc<Region>`.
unsafe impl<T: Shared> Send for View<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Shared> Sync for View<T> {}

impl<T: Shared> fmt::Debug for View<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}
