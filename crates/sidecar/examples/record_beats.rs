//! Records the intervals between the beats of a pool, in epochs: one line for each worker.
//!
//! `record_beats [SECONDS]`. Four workers hash blocks of random sizes, as fast as they get to run, and beat
//! behind each; more of them than there are cores, so that they are starved now and then. A thread with
//! the table's epoch ticks every millisecond, and notes who has beaten since. What it prints is what
//! `tests/it/adaptive_grace.rs` judges.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bumpless_heartbeat::{Handle, HeartbeatTable};

const WORKERS: usize = 4;
const TICK: Duration = Duration::from_millis(1);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(Ok(0.2), |text| text.parse::<f64>())?;
    let folder = tempfile::tempdir_in(bumpless_substrate::region::default_folder()?)?;
    let table = HeartbeatTable::create(folder.path().join("pool.tbl"), WORKERS)?;
    let workers = (0..WORKERS)
        .map(|_| table.register(std::process::id()))
        .collect::<Result<Vec<_>, _>>()?;
    let ends = AtomicBool::new(false);
    let mut intervals = vec![Vec::new(); WORKERS];
    std::thread::scope(|scope| {
        for (number, worker) in workers.iter().enumerate() {
            let (table, ends) = (&table, &ends);
            scope.spawn(move || work(table, *worker, number as u64, ends));
        }
        let recorded = record(&table, &workers, seconds, &mut intervals);
        // Relaxed: a flag on its own.
        ends.store(true, Ordering::Relaxed);
        recorded
    })?;
    println!("# {WORKERS} workers, a tick every {TICK:?}, {seconds} s");
    for worker in intervals {
        let line: Vec<_> = worker.iter().map(u64::to_string).collect();
        println!("{}", line.join(" "));
    }
    Ok(())
}

fn record(
    table: &HeartbeatTable,
    workers: &[Handle],
    seconds: f64,
    intervals: &mut [Vec<u64>],
) -> Result<(), bumpless_heartbeat::HeartbeatError> {
    let (began, mut last) = (Instant::now(), vec![0; workers.len()]);
    while began.elapsed().as_secs_f64() < seconds {
        std::thread::sleep(TICK);
        table.tick_global_epoch()?;
        for (index, worker) in workers.iter().enumerate() {
            let Some(snapshot) = table.snapshot(*worker) else {
                continue;
            };
            let epoch = snapshot.last_seen_epoch;
            if epoch > last[index] {
                intervals[index].push(epoch - last[index]);
                last[index] = epoch;
            }
        }
    }
    Ok(())
}

/// Works and beats until the end.
fn work(table: &HeartbeatTable, me: Handle, seed: u64, ends: &AtomicBool) {
    let mut state = seed * 2 + 1;
    // Relaxed: a flag on its own.
    while !ends.load(Ordering::Relaxed) {
        // Of a hundred blocks most are small, and a few take many milliseconds.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let rounds = match (state >> 33) % 100 {
            0 => 3_000_000,
            1..10 => 300_000,
            _ => 30_000,
        };
        let mut hash = state;
        for round in 0..rounds {
            hash = black_box((hash ^ round).wrapping_mul(0x100_0000_01b3));
        }
        if table.beat(me).is_err() {
            return;
        }
    }
}
