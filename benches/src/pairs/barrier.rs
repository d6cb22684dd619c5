//! Barriers of more and more members: threads, each with a registration of its own, beside as many at a
//! barrier of the standard library, which no other process can wait at.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context, Result, ensure};
use bumpless_barrier::{BarrierError, EpochBarrier};

use crate::fleet::Fleet;
use crate::pair::{Stage, in_a_row};

/// Epochs of so many members; what is timed is this thread's way through.
pub fn epochs(stage: &mut dyn Stage, members: usize) -> Result<()> {
    let fleet = Fleet::new(64, members, 1)?;
    let barrier = EpochBarrier::create(fleet.table(), "growth")?;
    let joined: Result<Vec<_>, BarrierError> = fleet
        .handles
        .iter()
        .map(|handle| barrier.join(*handle))
        .collect();
    let mut joined = joined?;
    let mut own = joined.pop().context("a member")?;
    let threads = Barrier::new(members);
    let ends = AtomicBool::new(false);
    // Not a flag: one that is late on its way out of a round would see it before the last one, and leave
    // the others waiting there.
    let last_round = AtomicU64::new(u64::MAX);
    std::thread::scope(|scope| {
        for mut member in joined {
            // Until this thread leaves: then each wait is short of nobody but those who have left, too.
            // Relaxed: whoever passes one epoch more sees it then.
            let ends = &ends;
            scope.spawn(
                move || {
                    while !ends.load(Ordering::Relaxed) && member.wait().is_ok() {}
                },
            );
        }
        for _ in 1..members {
            let (threads, last_round) = (&threads, &last_round);
            scope.spawn(move || {
                let mut rounds = 0;
                // Relaxed: set before the last round begins, and each round is ordered by the barrier.
                while rounds < last_round.load(Ordering::Relaxed) {
                    threads.wait();
                    rounds += 1;
                }
            });
        }
        let (mut all_there, mut rounds) = (true, 0);
        let measured = stage.compare(
            &mut in_a_row(|| all_there &= own.wait().is_ok_and(|end| end.absent.is_empty())),
            &mut in_a_row(|| {
                threads.wait();
                rounds += 1;
            }),
        );
        // Relaxed, both: as above.
        ends.store(true, Ordering::Relaxed);
        last_round.store(rounds + 1, Ordering::Relaxed);
        threads.wait();
        drop(own);
        measured?;
        ensure!(all_there, "an epoch without some of its members");
        Ok(())
    })
}
