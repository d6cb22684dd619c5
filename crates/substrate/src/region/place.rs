//! One value in a region that may be written, kept mapped by whoever holds it.

use std::sync::Arc;

use crate::layout::Shared;
use crate::view::View;

use super::{Region, RegionError};

/// A view of one value, which knows where in the file it lies.
#[derive(Debug)]
pub(crate) struct Place<T: Shared> {
    view: View<T>,
    offset: u64,
}

impl<T: Shared> Clone for Place<T> {
    fn clone(&self) -> Self {
        Self {
            view: self.view.clone(),
            offset: self.offset,
        }
    }
}

impl<T: Shared> Place<T> {
    /// Refuses, besides what [`Region::at`] refuses, a region that is mapped for reading only.
    pub(crate) fn new(region: &Arc<Region>, offset: u64) -> Result<Self, RegionError> {
        if region.is_read_only() {
            return Err(RegionError::ReadOnly {
                path: region.path().into(),
                doing: "take a place to write to",
            });
        }
        let view = View::new(region, offset, 1)?;
        Ok(Self { view, offset })
    }

    pub(crate) fn region(&self) -> &Arc<Region> {
        self.view.region()
    }

    /// From the start of the file, in bytes.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    pub(crate) fn get(&self) -> &T {
        // There is one, as asked for in `new`.
        &self.view[0]
    }
}
