//! The one clock: monotonic, the same for all processes of a machine, unmoved by clock settings.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of `CLOCK_MONOTONIC`: time since the machine started without time spent suspended.
/// Comparable between processes unless they live in different time namespaces. About 30 ns.
///
/// ```
/// let before_ns = bumpless_substrate::clock::monotonic_ns();
/// assert!(bumpless_substrate::clock::monotonic_ns() >= before_ns);
/// ```
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is ever negative for this clock.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
