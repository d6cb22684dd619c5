//! One atomic value that processes share: a file of its own, or a place in a region.
//!
//! Contract: the methods are the standard atomics', with the caller's `Ordering`. An ordering that
//! the operation cannot have (a load that releases, a store that acquires), on which the standard
//! library panics, is taken as `SeqCst`, which includes what was asked for. An operation costs what
//! the standard one costs and one pointer indirection.
//!
//! A file is a region of one record (64 bytes preamble, then the value in a line of its own), with
//! a lock file beside it.

use std::path::Path;
use std::sync::Arc;

use crate::region::{Access, Format, PREAMBLE_LEN, Place, Region, RegionError};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Where the value lies in a file of its own, in bytes.
const VALUE: u64 = PREAMBLE_LEN;
/// Preamble and one line for the value.
const FILE_LEN: u64 = PREAMBLE_LEN + 64;

const fn format(kind: [u8; 4], record_size: u32) -> Format {
    Format {
        kind,
        version: 1,
        record_size,
        max_capacity: 1,
        region_len: |_| FILE_LEN,
        // A value means the same after a restart of the machine.
        revived: |_| (),
    }
}

// Orderings in this file are the caller's: what they pair with is known there.

/// A load's ordering: one that releases becomes `SeqCst`.
fn for_load(order: Ordering) -> Ordering {
    match order {
        Ordering::Relaxed | Ordering::Acquire => order,
        // Orders all that the caller asked for, and more.
        _ => Ordering::SeqCst,
    }
}

/// A store's ordering: one that acquires becomes `SeqCst`.
fn for_store(order: Ordering) -> Ordering {
    match order {
        Ordering::Relaxed | Ordering::Release => order,
        // As for loads: orders all that the caller asked for, and more.
        _ => Ordering::SeqCst,
    }
}

/// What all three types have: where the value comes from and how it gets to the disk.
macro_rules! shared_value {
    ($name:ident, $atomic:ty, $value:ty, $format:expr, $store:expr) => {
        impl $name {
            /// Makes the file (0600) with an initial value, or opens the one that is there, which
            /// keeps its value.
            ///
            /// # Errors
            /// As [`Region::create`]: [`RegionError::Kind`] names both kinds when another type of
            /// value lies there.
            pub fn create(path: &Path, initial: $value) -> Result<Self, RegionError> {
                let init = |region: &Region| store_initial::<$atomic>(region, $store(initial));
                let (region, _) = Region::create(path, &$format, 1, Access::Private, init)?;
                Self::in_region(Arc::new(region), VALUE)
            }

            /// Opens a file that exists.
            ///
            /// # Errors
            /// As [`Region::attach`].
            pub fn open(path: &Path) -> Result<Self, RegionError> {
                Self::in_region(Arc::new(Region::attach(path, &$format)?), VALUE)
            }

            /// Replaces the file by a new one with the given value. Who has the old one open keeps
            /// it, cut off from the new one.
            ///
            /// # Errors
            /// As [`Region::reset`].
            pub fn reset(path: &Path, value: $value) -> Result<Self, RegionError> {
                let init = |region: &Region| store_initial::<$atomic>(region, $store(value));
                let (region, _) =
                    Region::reset(path, &$format, 1, Access::Private, init, |_, _| ())?;
                Self::in_region(Arc::new(region), VALUE)
            }

            /// The value at an offset of a region, in bytes from the start of the file.
            ///
            /// # Errors
            /// [`RegionError::OutOfRange`], [`RegionError::Misaligned`]; [`RegionError::ReadOnly`]
            /// for an observed region.
            pub fn in_region(region: Arc<Region>, offset: u64) -> Result<Self, RegionError> {
                Place::new(&region, offset).map(Self)
            }

            /// Writes the value back to its file and waits until it is there.
            ///
            /// # Errors
            /// [`RegionError::System`].
            pub fn flush(&self) -> Result<(), RegionError> {
                self.0
                    .region()
                    .flush(self.0.offset(), size_of::<$atomic>() as u64)
            }

            /// Starts to write the value back to its file.
            ///
            /// # Errors
            /// [`RegionError::System`].
            pub fn flush_async(&self) -> Result<(), RegionError> {
                self.0
                    .region()
                    .flush_async(self.0.offset(), size_of::<$atomic>() as u64)
            }
        }
    };
}

/// Stores the first value of a file that has no name yet.
fn store_initial<T: Initial>(region: &Region, value: T::Value) {
    // The draft is FILE_LEN long, so the place exists.
    if let Ok(place) = region.at::<T>(VALUE) {
        place.set(value);
    }
}

/// An atomic that can be given its first value.
trait Initial: crate::layout::Shared {
    type Value;
    fn set(&self, value: Self::Value);
}

macro_rules! shared_integer {
    ($(#[$meta:meta])* $name:ident, $atomic:ty, $int:ty, $kind:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone)]
        pub struct $name(Place<$atomic>);

        impl Initial for $atomic {
            type Value = $int;

            fn set(&self, value: $int) {
                // Relaxed: nobody else knows the file.
                self.store(value, Ordering::Relaxed);
            }
        }

        shared_value!($name, $atomic, $int, format(*$kind, size_of::<$int>() as u32), |v| v);

        impl $name {
            /// The value.
            #[must_use]
            pub fn load(&self, order: Ordering) -> $int {
                self.0.get().load(for_load(order))
            }

            /// Sets the value.
            pub fn store(&self, value: $int, order: Ordering) {
                self.0.get().store(value, for_store(order));
            }

            /// Sets the value; returns the one before.
            pub fn swap(&self, value: $int, order: Ordering) -> $int {
                self.0.get().swap(value, order)
            }

            /// Sets the value to `new` if it is `current`; returns the one before.
            ///
            /// # Errors
            /// The value found, when it is not `current`.
            pub fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.0.get().compare_exchange(current, new, success, for_load(failure))
            }

            /// As `compare_exchange`, but may fail for no reason; for loops.
            ///
            /// # Errors
            /// The value found.
            pub fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                self.0.get().compare_exchange_weak(current, new, success, for_load(failure))
            }

            /// Adds, wrapping around; returns the value before.
            pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                self.0.get().fetch_add(value, order)
            }

            /// Subtracts, wrapping around; returns the value before.
            pub fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                self.0.get().fetch_sub(value, order)
            }

            /// Bitwise and; returns the value before.
            pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                self.0.get().fetch_and(value, order)
            }

            /// Bitwise or; returns the value before.
            pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                self.0.get().fetch_or(value, order)
            }

            /// Bitwise exclusive or; returns the value before.
            pub fn fetch_xor(&self, value: $int, order: Ordering) -> $int {
                self.0.get().fetch_xor(value, order)
            }
        }
    };
}

shared_integer! {
    /// A `u32` that processes share.
    SharedAtomicU32, AtomicU32, u32, b"AU32"
}

shared_integer! {
    /// A `u64` that processes share.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use bumpless_substrate::shared_atomic::SharedAtomicU64;
    /// use bumpless_substrate::sync::Ordering;
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("accepted");
    /// let ours = SharedAtomicU64::create(&path, 5)?;
    /// // Another process, where 5 is the value already:
    /// let theirs = SharedAtomicU64::create(&path, 0)?;
    /// assert_eq!(theirs.fetch_add(2, Ordering::AcqRel), 5);
    /// assert_eq!(ours.load(Ordering::Acquire), 7);
    /// # Ok(()) }
    /// ```
    SharedAtomicU64, AtomicU64, u64, b"AU64"
}

/// A `bool` that processes share.
///
/// In memory it is a `u32`: 0 is false, 1 is true. Another number, which only foreign code can have
/// stored, reads as true.
#[derive(Debug, Clone)]
pub struct SharedAtomicBool(Place<AtomicU32>);

shared_value!(
    SharedAtomicBool,
    AtomicU32,
    bool,
    format(*b"BOOL", 4),
    u32::from
);

impl SharedAtomicBool {
    /// The value.
    #[must_use]
    pub fn load(&self, order: Ordering) -> bool {
        self.0.get().load(for_load(order)) != 0
    }

    /// Sets the value.
    pub fn store(&self, value: bool, order: Ordering) {
        self.0.get().store(value.into(), for_store(order));
    }

    /// Sets the value; returns the one before.
    pub fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.get().swap(value.into(), order) != 0
    }

    /// Sets the value to `new` if it is `current`; returns the one before.
    ///
    /// # Errors
    /// The value found, when it is not `current`.
    pub fn compare_exchange(
        &self,
        current: bool,
        new: bool,
        success: Ordering,
        failure: Ordering,
    ) -> Result<bool, bool> {
        let word = self.0.get();
        let exchange = |from| word.compare_exchange(from, new.into(), success, for_load(failure));
        let found = match exchange(current.into()) {
            // Foreign code's true is not our 1: tried once more as what it is.
            Err(found) if current && found > 1 => exchange(found),
            result => result,
        };
        found.map(|value| value != 0).map_err(|value| value != 0)
    }

    /// As `compare_exchange`, but may fail for no reason; for loops.
    ///
    /// # Errors
    /// The value found.
    pub fn compare_exchange_weak(
        &self,
        current: bool,
        new: bool,
        success: Ordering,
        failure: Ordering,
    ) -> Result<bool, bool> {
        self.compare_exchange(current, new, success, failure)
    }

    /// The value as it is, read and written back in one step.
    fn touch(&self, order: Ordering) -> bool {
        self.0.get().fetch_or(0, order) != 0
    }

    /// The other value; returns the one before.
    fn toggle(&self, order: Ordering) -> bool {
        let word = self.0.get();
        let before = word.fetch_xor(1, order);
        if before > 1 {
            // Foreign code's true with the lowest bit turned is still true. Should somebody have
            // stored meanwhile, that store came after ours and stays.
            let _ = word.compare_exchange(before ^ 1, 0, order, Ordering::Relaxed);
        }
        before != 0
    }

    /// Logical and; returns the value before.
    pub fn fetch_and(&self, value: bool, order: Ordering) -> bool {
        if value {
            self.touch(order)
        } else {
            self.swap(false, order)
        }
    }

    /// Logical or; returns the value before.
    pub fn fetch_or(&self, value: bool, order: Ordering) -> bool {
        if value {
            self.swap(true, order)
        } else {
            self.touch(order)
        }
    }

    /// Logical exclusive or; returns the value before.
    pub fn fetch_xor(&self, value: bool, order: Ordering) -> bool {
        if value {
            self.toggle(order)
        } else {
            self.touch(order)
        }
    }

    /// Logical and, then not; returns the value before.
    pub fn fetch_nand(&self, value: bool, order: Ordering) -> bool {
        if value {
            self.toggle(order)
        } else {
            self.swap(true, order)
        }
    }
}
