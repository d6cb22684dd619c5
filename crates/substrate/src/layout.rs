//! Structs in shared memory: how one is declared, and why a reference to one is sound.
//!
//! Contract: a type is [`Shared`] when every byte pattern is a valid value of it, every byte of it
//! lies inside an atomic, and it has no padding. Then `&T` into a mapping which other processes
//! write is no different from `&T` to atomics which other threads write. Crates above the substrate
//! declare such structs with [`shared_struct!`](crate::shared_struct): the macro writes the `unsafe
//! impl`, and refuses at compile time a field that is not `Shared`, an offset that is not the one
//! written down, padding, and a size or alignment that is not the one promised.

use crate::sync::{AtomicU16, AtomicU32, AtomicU64};

/// A type that may live in memory which untrusted processes write at any time.
///
/// # Safety
/// Every bit pattern is a valid value; all bytes are inside atomics (interior mutability); there is
/// no padding; there is no `Drop`.
pub unsafe trait Shared: Sized + Send + Sync {
    /// The value whose bytes are all zero: the state in which a new region is born.
    fn zeroed() -> Self;
}

macro_rules! shared_atomic {
    ($($name:ident),*) => {$(
        // SAFETY: a standard atomic integer: all bytes are the atomic, every pattern is an integer.
        unsafe impl Shared for $name {
            fn zeroed() -> Self {
                $name::new(0)
            }
        }
    )*};
}
shared_atomic!(AtomicU16, AtomicU32, AtomicU64);

// SAFETY: an array has the layout of its elements side by side, each of which is `Shared`.
unsafe impl<T: Shared, const N: usize> Shared for [T; N] {
    fn zeroed() -> Self {
        core::array::from_fn(|_| T::zeroed())
    }
}

/// Declares a struct in shared memory: name, size, alignment, and each field with its offset.
///
/// ```
/// use bumpless_substrate::sync::{AtomicU32, AtomicU64};
/// bumpless_substrate::shared_struct! {
///     /// A counter with an owner.
///     pub struct Owned[size = 16, align = 8] {
///         /// What is counted.
///         0 => pub count: AtomicU64,
///         /// Who counts.
///         8 => pub owner: AtomicU32,
///         /// Zero.
///         12 => spare: AtomicU32,
///     }
/// }
/// let owned = <Owned as bumpless_substrate::layout::Shared>::zeroed();
/// assert_eq!(owned.count.load(bumpless_substrate::sync::Ordering::Relaxed), 0);
/// ```
#[macro_export]
macro_rules! shared_struct {
    ($(#[$meta:meta])* $vis:vis struct $name:ident[size = $size:literal, align = $align:literal] {
        $($(#[$field_meta:meta])* $offset:literal => $field_vis:vis $field:ident: $ty:ty),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug)]
        #[repr(C, align($align))]
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $ty),*
        }

        // loom's atomics have other sizes: the layout is asserted where the file is real.
        #[cfg(not(bumpless_loom))]
        const _: () = {
            $(assert!(core::mem::offset_of!($name, $field) == $offset, "offset");)*
            assert!(core::mem::size_of::<$name>() == $size, "size");
            assert!(core::mem::align_of::<$name>() == $align, "alignment");
            assert!(0 $(+ core::mem::size_of::<$ty>())* == $size, "padding");
            assert!(!core::mem::needs_drop::<$name>(), "drop glue");
        };

        // SAFETY: `repr(C)`; each field is `Shared` (it is zeroed through the trait below); the
        // assertions above rule out padding and drop glue.
        unsafe impl $crate::layout::Shared for $name {
            fn zeroed() -> Self {
                Self { $($field: <$ty as $crate::layout::Shared>::zeroed()),* }
            }
        }
    };
}
