//! loom's atomics with the standard library's methods, and the death of a process between two changes.
//!
//! Contract: every method does what std's of the same name does, under loom; every one that may change
//! the atomic is a place at which [`die_before_change`] can stop the code.

use core::cell::Cell;
use core::sync::atomic::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

loom::thread_local! {
    /// How many changes this thread still makes before it dies; `None`: it lives on.
    static CHANGES_LEFT: Cell<Option<u32>> = Cell::new(None);
}

/// What unwinds a thread that dies.
struct Died;

/// Runs `operation` as a process that is killed when it is about to make its change number `change`
/// (from 0); `None` when it died. What the operation changed until then stays.
pub fn die_before_change<T>(change: u32, operation: impl FnOnce() -> T) -> Option<T> {
    CHANGES_LEFT.with(|left| left.set(Some(change)));
    // The operations keep nothing on the stack that unwinding would put right.
    let ended = catch_unwind(AssertUnwindSafe(operation));
    CHANGES_LEFT.with(|left| left.set(None));
    match ended {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Died>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

/// Called before each change.
fn change() {
    let left = CHANGES_LEFT.with(Cell::get);
    if left == Some(0) {
        // Not `panic!`: this is no failure, and nothing is to be printed.
        resume_unwind(Box::new(Died));
    }
    CHANGES_LEFT.with(|cell| cell.set(left.map(|left| left - 1)));
}

/// Whether this run is the second pass, in which loads and stores are read-modify-writes: the environment
/// has `BUMPLESS_LOOM_RMW`. Not a cfg, as both passes are one build.
pub fn is_rmw_pass() -> bool {
    static IS_RMW_PASS: OnceLock<bool> = OnceLock::new();
    *IS_RMW_PASS.get_or_init(|| std::env::var_os("BUMPLESS_LOOM_RMW").is_some())
}

/// A load's ordering as that of the read-modify-write which stands for it.
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
                match is_rmw_pass() {
                    true => self.0.fetch_add(0, as_rmw(order)),
                    false => self.0.load(order),
                }
            }

            /// As std's.
            pub fn store(&self, value: $int, order: Ordering) {
                change();
                if is_rmw_pass() {
                    let _ = self.0.swap(value, as_rmw(order));
                } else {
                    self.0.store(value, order);
                }
            }

            /// As std's.
            pub fn swap(&self, value: $int, order: Ordering) -> $int {
                change();
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
                change();
                self.0.compare_exchange(current, new, success, failure)
            }

            /// As std's.
            pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                change();
                self.0.fetch_add(value, order)
            }

            /// As std's.
            pub fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                change();
                self.0.fetch_sub(value, order)
            }

            /// As std's.
            pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                change();
                self.0.fetch_or(value, order)
            }

            /// As std's.
            pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                change();
                self.0.fetch_and(value, order)
            }
        }
    };
}

model_atomic!(AtomicU16, u16);
model_atomic!(AtomicU32, u32);
model_atomic!(AtomicU64, u64);
