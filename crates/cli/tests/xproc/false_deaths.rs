//! Who is not dead is not taken for dead: after a pause of the watchdog, and on a machine that starves.
//!
//! A worker that itself let more than the *healthy gap* pass between two beats was late, and is counted
//! apart: as many scans as the grace has epochs, of a watchdog that does not hurry, take longer than that,
//! so it cannot be the watchdog's mistake that a worker without such a gap is fenced.

use std::ffi::OsString;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bumpless_failover::{AcknowledgeError, FailoverWatchdog, Stop};
use bumpless_heartbeat::{HeartbeatError, HeartbeatTable, Profile, SlotRole};
use bumpless_substrate::sync::{AtomicU64, Ordering};

use crate::child::{Child, await_until};
use crate::lines::Next;
use crate::roles;
use crate::scene::Scene;
use crate::tally::mixed;

pub const PERIOD: Duration = Duration::from_millis(10);
const GRACE_EPOCHS: u64 = 3;
const WORKERS: usize = 16;

/// The number of the call in which a watchdog sleeps, on every architecture.
const FUTEX_WAITV: i64 = 449;

/// 10.
pub fn watchdog_that_was_stopped_accuses_nobody(scene: &Scene) {
    stopped_for_long(scene);
    stopped_in_a_hundred_scans(scene);
}

fn stopped_for_long(scene: &Scene) {
    let table = scene.table(64);
    let mut workers: Vec<Child> = (0..WORKERS).map(|_| healthy(scene)).collect();
    let mut watchdog = watching(scene, GRACE_EPOCHS);
    await_scans(&table, 20);
    watchdog.stop();
    await_time(Duration::from_secs(5));
    watchdog.resume();
    await_scans(&table, 100);
    let late = no_false_death(&mut workers, &mut watchdog);
    scene.note(&format!("5 s: {late} late by themselves"));
}

/// Between the workers' slots lie others without a death certificate, of which each scan asks the kernel: so
/// it takes long enough to be met at any moment; where it shares a processor with others, it is interrupted.
fn stopped_in_a_hundred_scans(scene: &Scene) {
    const STOPS: u32 = 100;
    const STOP_LENGTH: Duration = Duration::from_millis(300);
    /// Enough where scanner and stopper share one busy processor, and seldom meet.
    const STOPS_MIN: u32 = 1;
    const PATIENCE: Duration = Duration::from_secs(180);
    const PAUSE_NS_MAX: u64 = 2_500_000;
    const BETWEEN: usize = 120;
    let path = scene.path("wide table");
    let table = HeartbeatTable::create(&path, WORKERS * (BETWEEN + 1) + 8).expect("a table");
    let mut workers = Vec::new();
    for _ in 0..WORKERS {
        for _ in 0..BETWEEN {
            let profile = Profile {
                grace_epochs: u16::MAX,
                ..Profile::default()
            };
            let handle = table.register_as(std::process::id(), profile);
            let cells = table.cells(handle.expect("a registration").slot());
            cells.expect("a slot").slot.keep_without_certificate();
        }
        workers.push(healthy_in(&path, GRACE_EPOCHS));
    }
    let mut watchdog = watching_in(&path, GRACE_EPOCHS);
    let scanner: u32 = watchdog.done("thread").parse().expect("a thread id");
    let mut met = 0;
    let mut attempts = 0;
    let start = Instant::now();
    while met < STOPS && (met < STOPS_MIN || start.elapsed() < PATIENCE) {
        // In no step with the scans.
        await_time(Duration::from_nanos(mixed(attempts) % PAUSE_NS_MAX));
        watchdog.stop();
        if is_awake(watchdog.pid(), scanner) {
            met += 1;
            await_time(STOP_LENGTH);
        }
        watchdog.resume();
        attempts += 1;
    }
    await_scans(&table, 20);
    let late = no_false_death(&mut workers, &mut watchdog);
    scene.note(&format!(
        "{met} stops met a scan (of {attempts}): {late} late by themselves"
    ));
}

/// Whether the stopped thread was met outside of its sleep: in user code (there the kernel says -1), or
/// in another call than the sleep.
fn is_awake(pid: u32, thread: u32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall"));
    let call = call.expect("what a stopped thread of ours is doing");
    let number: Option<i64> = call.split(' ').next().and_then(|word| word.parse().ok());
    number.is_some_and(|number| number != FUTEX_WAITV)
}

/// 11.
pub fn starved_machine_kills_nobody(scene: &Scene) {
    const PATIENT_EPOCHS: u64 = 20;
    let table = scene.table(64);
    let patient = |_| healthy_in(&scene.table_path(), PATIENT_EPOCHS);
    let mut workers: Vec<Child> = (0..WORKERS).map(patient).collect();
    let mut watchdog = watching(scene, PATIENT_EPOCHS);
    let mut busy = Child::start("busy", &[]);
    let threads = busy.done("start");
    let mut largest_lag_epochs = 0;
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        await_time(PERIOD / 2);
        let lags = table
            .iter_live()
            .filter(|(_, snapshot)| snapshot.role == SlotRole::Worker)
            .map(|(_, snapshot)| {
                table
                    .global_epoch()
                    .saturating_sub(snapshot.last_seen_epoch)
            });
        // Nobody, where all were late and are about to register again.
        largest_lag_epochs = lags.fold(largest_lag_epochs, u64::max);
    }
    // Others may take the machine away for longer than the grace: who was late by itself is told apart.
    let late = no_false_death(&mut workers, &mut watchdog);
    let gap_ms = workers
        .iter_mut()
        .map(|worker| gaps(worker).largest_ns / 1_000_000);
    let gap_ms = gap_ms.max().expect("workers");
    scene.note(&format!(
        "{threads} busy threads: largest lag {largest_lag_epochs} of {PATIENT_EPOCHS} epochs, \
         largest gap between two beats {gap_ms} ms, {late} late by themselves, epoch {}",
        table.global_epoch()
    ));
}

pub fn healthy(scene: &Scene) -> Child {
    healthy_in(&scene.table_path(), GRACE_EPOCHS)
}

/// A worker for a watchdog with this grace.
fn healthy_in(table: &Path, grace_epochs: u64) -> Child {
    let grace_epochs = OsString::from(grace_epochs.to_string());
    let mut worker = Child::start("healthy worker", &[table.into(), grace_epochs]);
    worker.done("gaps");
    worker
}

fn watching(scene: &Scene, grace_epochs: u64) -> Child {
    watching_in(&scene.table_path(), grace_epochs)
}

fn watching_in(table: &Path, grace_epochs: u64) -> Child {
    let grace_epochs = OsString::from(grace_epochs.to_string());
    Child::start("watching process", &[table.into(), grace_epochs])
}

/// Fails when a worker was fenced although it was not late; how many were late.
pub fn no_false_death(workers: &mut [Child], watchdog: &mut Child) -> u64 {
    let reported: u64 = watchdog.done("fenced").parse().expect("a number");
    let (mut fenced_healthy, mut late) = (0, 0);
    for worker in workers {
        let gaps = gaps(worker);
        fenced_healthy += gaps.fenced_healthy;
        late += gaps.fenced_late;
    }
    assert_eq!(
        fenced_healthy, 0,
        "{reported} reported, {late} of them late"
    );
    assert!(reported <= late, "{reported} reported, {late} fenced");
    late
}

/// What a worker knows of its own punctuality.
#[derive(Default)]
struct Gaps {
    largest_ns: u64,
    fenced_healthy: u64,
    fenced_late: u64,
}

fn gaps(worker: &mut Child) -> Gaps {
    let answer = worker.done("gaps");
    let numbers: Vec<u64> = answer
        .split(' ')
        .map(|word| word.parse().expect("a number"))
        .collect();
    let [largest_ns, fenced_healthy, fenced_late] = numbers[..] else {
        panic!("no gaps: {answer}");
    };
    Gaps {
        largest_ns,
        fenced_healthy,
        fenced_late,
    }
}

/// Beats at the period, and registers again when it was fenced.
pub fn healthy_worker(arguments: &[String]) {
    let table = HeartbeatTable::attach(&arguments[0]).expect("the table");
    let grace_epochs = roles::number(&arguments[1]) as u32;
    let healthy_gap = PERIOD * (grace_epochs - 1);
    let mut commands = roles::commands();
    let mut gaps = Gaps::default();
    let mut beaten = Instant::now();
    let mut handle = roles::register_when_free(&table);
    loop {
        let next = commands.next(Some(PERIOD));
        if next == Next::Closed {
            return;
        }
        // The clock before one beat and after the next: what the machine takes away beside a beat makes
        // the gap longer, never shorter.
        let beating = Instant::now();
        let beat = table.beat(handle);
        let gap = beaten.elapsed();
        beaten = beating;
        gaps.largest_ns = gaps.largest_ns.max(gap.as_nanos() as u64);
        match beat {
            Ok(()) => {}
            Err(HeartbeatError::Fenced { .. }) => {
                if gap < healthy_gap {
                    gaps.fenced_healthy += 1;
                } else {
                    gaps.fenced_late += 1;
                }
                table.unregister(handle).expect("ours still");
                handle = roles::register_when_free(&table);
            }
            Err(other) => panic!("{other}"),
        }
        if let Next::Line(_) = next {
            let Gaps {
                largest_ns,
                fenced_healthy,
                fenced_late,
            } = gaps;
            roles::answer(&Ok(format!("{largest_ns} {fenced_healthy} {fenced_late}")));
        }
    }
}

/// Runs the watchdog's own loop in one thread, and obeys in another; counts the workers that it reports.
pub fn watching_process(arguments: &[String]) {
    let table = HeartbeatTable::attach(&arguments[0]).expect("the table");
    let grace_epochs = roles::number(&arguments[1]) as u64;
    let period = arguments.get(2).map_or(PERIOD, |milliseconds| {
        Duration::from_millis(roles::number(milliseconds) as u64)
    });
    let watchdog = FailoverWatchdog::with_grace(&table, grace_epochs);
    let (stop, fenced) = (Stop::new(), AtomicU64::new(0));
    let (thread_id, started) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            thread_id
                .send(rustix::thread::gettid())
                .expect("a listener");
            watchdog.run(period, &stop, |report| {
                for (slot, snapshot) in &report.dead_slots {
                    // Relaxed: a count on its own.
                    fenced.fetch_add(
                        u64::from(snapshot.role == SlotRole::Worker),
                        Ordering::Relaxed,
                    );
                    match watchdog.clear_dead_bitmap(*slot) {
                        Ok(_) => {}
                        // Idle, late, fenced, and registered again since the scan.
                        Err(AcknowledgeError::AlreadyAcknowledged { .. })
                            if slot.units.is_empty() => {}
                        // Another one took over since the scan, and reports it again.
                        Err(AcknowledgeError::StaleTerm { .. }) => {}
                        Err(other) => panic!("{slot}: {other}"),
                    }
                }
            });
        });
        let thread = started.recv().expect("a thread");
        let mut commands = roles::commands();
        while let Next::Line(line) = commands.next(None) {
            let words: Vec<&str> = line.split(' ').collect();
            let answer = match words[..] {
                ["thread"] => thread.as_raw_nonzero().to_string(),
                // Relaxed: a count on its own.
                ["fenced"] => fenced.load(Ordering::Relaxed).to_string(),
                // Nothing at all, if it is a standby.
                ["scan"] => format!("{:?}", watchdog.scan().standing),
                _ => panic!("no command: {line}"),
            };
            roles::answer(&Ok(answer));
        }
        stop.request();
    });
}

/// Keeps all cores busy, twice over, until its commands end.
pub fn busy() {
    let mut commands = roles::commands();
    let Next::Line(_) = commands.next(None) else {
        return;
    };
    let cores = std::thread::available_parallelism().expect("the number of cores");
    let threads = 2 * cores.get();
    for _ in 0..threads {
        std::thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    }
    roles::answer(&Ok(threads.to_string()));
    let _ = commands.next(None);
}

pub fn await_scans(table: &HeartbeatTable, scans: u64) {
    // A limit for each scan, not for all: a busy machine is late with many of them.
    const LIMIT: Duration = Duration::from_secs(30);
    let first = table.global_epoch() + 1;
    for epoch in first..first + scans {
        await_until(LIMIT, "the watchdog's next scan", || {
            table.global_epoch() >= epoch
        });
    }
}

pub fn await_time(time: Duration) {
    std::thread::sleep(time);
}
