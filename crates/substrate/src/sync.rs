//! The loom shim: the one place from which protocol code takes its atomics.
//!
//! Contract: outside of models these are the standard library's types, unchanged, so that they have
//! the layout that the mapped file needs. Under `--cfg bumpless_loom` they are loom's, with the same
//! methods. Under `--cfg bumpless_loom_rmw` in addition every load is a `fetch_add(0)` and every
//! store a `swap`: loom's partial-order reduction keeps one last access per object and can thus hide
//! a race between a plain load and a later CAS of another thread; a second pass in which all accesses
//! are read-modify-writes explores these interleavings (and no stale reads, which the first pass does).

pub use core::sync::atomic::Ordering;

#[cfg(not(bumpless_loom))]
pub use core::hint::spin_loop;
#[cfg(not(bumpless_loom))]
pub use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, fence};

#[cfg(bumpless_loom)]
pub use self::model::{AtomicU16, AtomicU32, AtomicU64};
#[cfg(bumpless_loom)]
pub use loom::hint::spin_loop;
#[cfg(bumpless_loom)]
pub use loom::sync::atomic::fence;

#[cfg(bumpless_loom)]
mod model {
    use core::sync::atomic::Ordering;

    /// A load's ordering as that of the read-modify-write which stands for it.
    #[cfg(bumpless_loom_rmw)]
    fn as_rmw(order: Ordering) -> Ordering {
        match order {
            Ordering::Relaxed | Ordering::Acquire | Ordering::Release => order,
            _ => Ordering::AcqRel,
        }
    }

    macro_rules! model_atomic {
        ($name:ident, $int:ty) => {
            /// loom's atomic behind the standard library's method names.
            #[derive(Debug)]
            pub struct $name(loom::sync::atomic::$name);

            impl $name {
                /// A new atomic; only inside a model.
                #[must_use]
                pub fn new(value: $int) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                /// As std's.
                pub fn load(&self, order: Ordering) -> $int {
                    #[cfg(bumpless_loom_rmw)]
                    return self.0.fetch_add(0, as_rmw(order));
                    #[cfg(not(bumpless_loom_rmw))]
                    self.0.load(order)
                }

                /// As std's.
                pub fn store(&self, value: $int, order: Ordering) {
                    #[cfg(bumpless_loom_rmw)]
                    let _ = self.0.swap(value, as_rmw(order));
                    #[cfg(not(bumpless_loom_rmw))]
                    self.0.store(value, order);
                }

                /// As std's.
                pub fn swap(&self, value: $int, order: Ordering) -> $int {
                    self.0.swap(value, order)
                }

                /// As std's.
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
                    self.0.compare_exchange(current, new, success, failure)
                }

                /// As std's.
                pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                    self.0.fetch_add(value, order)
                }

                /// As std's.
                pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                    self.0.fetch_or(value, order)
                }

                /// As std's.
                pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                    self.0.fetch_and(value, order)
                }
            }
        };
    }

    model_atomic!(AtomicU16, u16);
    model_atomic!(AtomicU32, u32);
    model_atomic!(AtomicU64, u64);
}
