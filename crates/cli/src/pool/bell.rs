//! A bell: one process sleeps until others have something for it, and who rings while it is awake
//! makes no system call.
//!
//! ```text
//!   sleeper: seen = rings ── look for work ── nothing ── sleepers = 1 ── futex: rings == seen? sleep
//!   ringer:  publish work ── rings += 1 ── sleepers != 0? wake
//! ```
//! Contract: a ring between `seen` and `wait` is never missed, and every sleep has an end. A sleeper
//! that was killed costs its ringers a system call per ring, nothing else.

use core::time::Duration;

use bumpless_substrate::futex;
use bumpless_substrate::sync::{AtomicU32, Ordering};

bumpless_substrate::shared_struct! {
    /// A counter of rings and a mark of the sleeper.
    pub struct Bell[size = 8, align = 4] {
        /// How often it rang, wrapping; the futex. Written by ringers, read by the sleeper.
        0 => rings: AtomicU32,
        /// 1 while the sleeper sleeps. Written by the sleeper, read by ringers.
        4 => sleepers: AtomicU32,
    }
}

impl Bell {
    /// The number of rings: to be read before looking for work.
    pub fn seen(&self) -> u32 {
        // Pairs with the increment in `ring`: the work behind the rings counted is visible.
        self.rings.load(Ordering::Acquire)
    }

    /// Says that there is something to look at. The caller published it before.
    pub fn ring(&self) {
        // Sequentially consistent, as the pair in `wait`: store then load on both sides, and at
        // least one side sees the other's store. Publishes to the load in `seen`.
        self.rings.fetch_add(1, Ordering::SeqCst);
        // The other half of the pair above.
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            futex::wake(&self.rings, 1);
        }
    }

    /// Sleeps until somebody rings, unless somebody has since `seen`, for at most `timeout`.
    pub fn wait(&self, seen: u32, timeout: Duration) {
        // The sleeper's store of the pair in `ring`; its load is the kernel's comparison.
        self.sleepers.store(1, Ordering::SeqCst);
        futex::wait(&self.rings, seen, Some(timeout));
        // Relaxed: a ringer that still sees 1 makes one needless system call.
        self.sleepers.store(0, Ordering::Relaxed);
    }

    /// Forgets a sleeper that was killed in its sleep.
    pub fn forget_sleeper(&self) {
        // Relaxed: the bell has no user now; its next one is a process that does not exist yet.
        self.sleepers.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use bumpless_substrate::layout::Shared;

    use super::*;

    #[test]
    fn a_ring_before_the_sleep_is_not_missed() {
        let bell = Bell::zeroed();
        let seen = bell.seen();
        bell.ring();
        let start = Instant::now();
        bell.wait(seen, Duration::from_secs(60));
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_ring_ends_a_sleep() {
        let bell = Bell::zeroed();
        let seen = bell.seen();
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                let start = Instant::now();
                bell.wait(seen, Duration::from_secs(60));
                start.elapsed()
            });
            while bell.sleepers.load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            bell.ring();
            assert!(sleeper.join().unwrap() < Duration::from_secs(30));
        });
    }
}
