//! The loom shim: the one place from which protocol code takes its atomics.
//!
//! Contract: outside of models these are the standard library's types, unchanged, so that they have
//! the layout that the mapped file needs. Under `--cfg bumpless_loom` they are loom's, with the same
//! methods. With `BUMPLESS_LOOM_RMW` in the environment every load is a `fetch_add(0)` and every
//! store a `swap`: loom's partial-order reduction keeps one last access per object and can thus hide
//! a race between a plain load and a later CAS of another thread; a second pass in which all accesses
//! are read-modify-writes explores these interleavings (and no stale reads, which the first pass does).
//!
//! A model kills a process inside an operation with `die_before_change`: the shim counts the changes
//! that the code makes and stops it before the one asked for. Between two changes a process may die
//! anywhere; nobody else can tell where, since loads and fences leave nothing behind.

pub use core::sync::atomic::Ordering;

#[cfg(not(bumpless_loom))]
pub use core::hint::spin_loop;
#[cfg(not(bumpless_loom))]
pub use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, fence};

#[cfg(bumpless_loom)]
pub use self::model::{AtomicU16, AtomicU32, AtomicU64, die_before_change, is_rmw_pass};
#[cfg(bumpless_loom)]
pub use loom::hint::spin_loop;
#[cfg(bumpless_loom)]
pub use loom::sync::atomic::fence;

#[cfg(bumpless_loom)]
mod model;
