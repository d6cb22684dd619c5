//! Shared atomics that are observed.
//!
//! Contract: as [`SidecarBox`]. A compare-and-swap that found another value counts as contended. The
//! `value` of an observation is 0. No events.

use bumpless_substrate::shared_atomic::{SharedAtomicBool, SharedAtomicU32, SharedAtomicU64};
use bumpless_substrate::sync::Ordering;

use crate::sidecar_box::{Observe, SidecarBox, operations};

operations! {
    /// What is observed of a shared atomic.
    AtomicOp {
        /// A load.
        Load = 0, "load";
        /// A store.
        Store = 1, "store";
        /// A swap.
        Swap = 2, "swap";
        /// A compare-and-swap, strong or weak.
        CompareExchange = 3, "compare_exchange";
        /// An addition.
        Add = 4, "fetch_add";
        /// A subtraction.
        Sub = 5, "fetch_sub";
        /// A bitwise and.
        And = 6, "fetch_and";
        /// A bitwise or.
        Or = 7, "fetch_or";
        /// A bitwise exclusive or.
        Xor = 8, "fetch_xor";
        /// A bitwise and, then not.
        Nand = 9, "fetch_nand";
    }
}

/// The calls that change the value and return the one before.
macro_rules! fetches {
    ($atomic:ty, $value:ty, $($fetch:ident = $op:ident),*) => {
        $(
            /// As the inner one's.
            #[inline]
            pub fn $fetch(&self, value: $value, order: Ordering) -> $value {
                let call = |inner: &$atomic| inner.$fetch(value, order);
                self.observed(AtomicOp::$op, 0, call, |_| false)
            }
        )*
    };
}

macro_rules! observed_atomic {
    ($atomic:ty, $value:ty, $kind:literal, $($fetch:ident = $op:ident),*) => {
        impl Observe for $atomic {
            const KIND: &'static str = $kind;
            type Memory = ();

            fn op_name(number: u16) -> Option<&'static str> {
                AtomicOp::name_of(number)
            }
        }

        /// The atomic's calls; orderings are the caller's.
        impl SidecarBox<$atomic> {
            /// As the inner one's.
            #[must_use]
            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                self.observed(AtomicOp::Load, 0, |inner| inner.load(order), |_| false)
            }

            /// As the inner one's.
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                let call = |inner: &$atomic| inner.store(value, order);
                self.observed(AtomicOp::Store, 0, call, |()| false);
            }

            /// As the inner one's.
            ///
            /// # Errors
            /// The value found, when it is not `current`.
            #[inline]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let call = |inner: &$atomic| inner.compare_exchange(current, new, success, failure);
                self.observed(AtomicOp::CompareExchange, 0, call, Result::is_err)
            }

            /// As the inner one's.
            ///
            /// # Errors
            /// The value found.
            #[inline]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                let call =
                    |inner: &$atomic| inner.compare_exchange_weak(current, new, success, failure);
                self.observed(AtomicOp::CompareExchange, 0, call, Result::is_err)
            }

            fetches!($atomic, $value, swap = Swap, $($fetch = $op),*);
        }
    };
}

observed_atomic! {
    SharedAtomicU32, u32, "atomic_u32",
    fetch_add = Add, fetch_sub = Sub, fetch_and = And, fetch_or = Or, fetch_xor = Xor
}

observed_atomic! {
    SharedAtomicU64, u64, "atomic_u64",
    fetch_add = Add, fetch_sub = Sub, fetch_and = And, fetch_or = Or, fetch_xor = Xor
}

observed_atomic! {
    SharedAtomicBool, bool, "atomic_bool",
    fetch_and = And, fetch_or = Or, fetch_xor = Xor, fetch_nand = Nand
}
