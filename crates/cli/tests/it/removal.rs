//! Deleting a region beside somebody who opens it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::{PathState, Region, RegionError};

#[test]
fn what_somebody_opens_at_that_moment_is_never_deleted() {
    const ROUNDS: u32 = 400;
    /// For so long at most, once they have met.
    const TIME: Duration = Duration::from_secs(20);
    const LIMIT: Duration = Duration::from_secs(120);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("table");
    let (looks, deleted, in_use) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    // Relaxed, all: counts on their own.
    let count = |of: &AtomicU32| of.load(Ordering::Relaxed);
    let began = Instant::now();
    let within = |limit: Duration| began.elapsed() < limit;
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| {
            // Where both share a processor they seldom meet by chance: in every eighth round each waits for
            // the other one's next look, with the table open and with the table closed.
            let await_look = || {
                let seen = count(&looks);
                while count(&looks) == seen && within(LIMIT) {
                    std::thread::yield_now();
                }
            };
            let has_met = || count(&deleted) > 0 && count(&in_use) > 0;
            let is_enough =
                |round: u32| has_met() && (round >= ROUNDS || !within(TIME)) || !within(LIMIT);
            let rounds = (0..).take_while(|round| !is_enough(*round));
            for round in rounds {
                let table = HeartbeatTable::create(&path, 8).expect("a table");
                if round % 8 == 0 {
                    await_look();
                }
                for _ in 0..round % 8 {
                    let state = table.check_path().expect("its path");
                    assert_eq!(state, PathState::Current, "round {round}");
                }
                drop(table);
                if round % 8 == 0 {
                    await_look();
                }
            }
        });
        while !opening.is_finished() {
            match Region::remove_unused(&path) {
                Ok(()) => _ = deleted.fetch_add(1, Ordering::Relaxed),
                Err(RegionError::InUse { .. }) => _ = in_use.fetch_add(1, Ordering::Relaxed),
                Err(RegionError::NotFound { .. }) => {}
                Err(other) => panic!("{other}"),
            }
            looks.fetch_add(1, Ordering::Relaxed);
            // Who looks without a pause keeps the lock of the path, and the processor, from the other one.
            std::thread::yield_now();
        }
    });
    let counts = [&deleted, &in_use, &looks].map(count);
    assert!(
        counts[0] > 0 && counts[1] > 0,
        "deleted, in use, looks: {counts:?}"
    );
}
