//! One value in a region, kept mapped by whoever holds it.

use std::sync::Arc;

use crate::layout::Shared;

use super::{Region, RegionError};

/// An offset that was checked once, with the region that it was checked against.
#[derive(Debug)]
pub(crate) struct Place<T> {
    region: Arc<Region>,
    offset: u64,
    value: core::marker::PhantomData<fn() -> T>,
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        Self {
            region: Arc::clone(&self.region),
            offset: self.offset,
            value: self.value,
        }
    }
}

impl<T: Shared> Place<T> {
    /// A place that may be written.
    pub(crate) fn new(region: Arc<Region>, offset: u64) -> Result<Self, RegionError> {
        if region.is_read_only() {
            let path = region.path().into();
            return Err(RegionError::ReadOnly {
                path,
                doing: "take a place to write to",
            });
        }
        region.at::<T>(offset)?;
        Ok(Self {
            region,
            offset,
            value: core::marker::PhantomData,
        })
    }

    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn get(&self) -> &T {
        // SAFETY: `new` has checked this very offset and type against this very mapping, whose
        // address and length never change.
        unsafe { self.region.map.at_unchecked(self.offset) }
    }
}
