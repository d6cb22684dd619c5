//! `bumpless bench death`: how long a death takes to be seen, and its units to be handed back.
//!
//! Contract: one fresh table in shared memory for all runs, which take the three detectors in turn, so
//! that they meet the same machine. The killer is this thread, which then sleeps; the watcher is a
//! thread that sleeps until the death wakes it. Each run checks that exactly the units that the worker
//! had marked were handed back, under its name, once; anything else ends the measurement.
//!
//! ```text
//!   watcher     sleep ────────────────────────────▶ seen ─ handed back ─▶ two more scans: nothing
//!   killer      start worker ─ settle ─ stamp, kill ─ sleep
//!   worker      touch memory ─ register ─ mark ─ beat… ✝
//! ```

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use bumpless_failover::{FailoverWatchdog, SlotRef, Stop, Verdict};
use bumpless_heartbeat::{HeartbeatError, HeartbeatTable, Unit, UnitSet};
use rustix::io::Errno;

use super::args::{DeathArguments, RoleArguments};
use super::children::BenchWorker;
use super::detector::{
    Detector, GRACE_EPOCHS, GRACE_FOR_EVER_EPOCHS, PERIOD, Sighting, watch_by_loop, watch_by_pidfd,
};
use super::error::BenchError;
use super::figures::{DeathFigures, DetectorFigures, Spread, load};
use super::{private_folder, show};
use crate::signals::Signals;

/// How long a hand-back is awaited.
const HAND_BACK_LIMIT: Duration = Duration::from_secs(60);

/// So many workers in a row may miss their beats before they are killed.
const TRIES: u32 = 20;

/// Slots for a watchdog, a worker, its dead predecessor, and one to spare.
const SLOTS_BESIDE_OTHERS: usize = 4;

/// What one run gave, in nanoseconds since the kill.
#[derive(Debug, Clone, Copy)]
struct Latency {
    seen_ns: u64,
    handed_back_ns: u64,
}

/// Measures and prints.
///
/// # Errors
/// [`BenchError`].
pub fn run(arguments: &DeathArguments) -> Result<(), BenchError> {
    let signals = Signals::install().map_err(BenchError::file(
        "install handlers for",
        "SIGINT and SIGTERM",
    ))?;
    let unless_asked = || match signals.asked() {
        true => Err(BenchError::Interrupted),
        false => Ok(()),
    };
    let folder = private_folder()?;
    let path = folder.path().join("death.tbl");
    let capacity = arguments.others as usize + SLOTS_BESIDE_OTHERS;
    let bench = Bench {
        table: HeartbeatTable::create(&path, capacity)?,
        path,
        rss: arguments.rss,
    };
    let mut others = Vec::new();
    for _ in 0..arguments.others {
        unless_asked()?;
        let other = bench.role(GRACE_FOR_EVER_EPOCHS);
        others.push(BenchWorker::start(&other)?);
    }
    let mut latencies: [Vec<Latency>; 3] = Default::default();
    for run in 0..arguments.runs {
        for (detector, latencies) in Detector::ALL.into_iter().zip(&mut latencies) {
            unless_asked()?;
            latencies.push(bench.latency(run, detector)?);
        }
    }
    let [robust, pidfd, beats] = latencies.map(|latencies| figures(&latencies));
    let figures = DeathFigures {
        rss: arguments.rss,
        others: arguments.others,
        runs: arguments.runs,
        robust,
        pidfd,
        beats,
    };
    if arguments.json {
        show(&format!("{}\n", serde_json::to_string(&figures)?))?;
    } else {
        show(&figures.table(&load()))?;
    }
    Ok(())
}

/// What all runs share.
#[derive(Debug)]
struct Bench {
    table: HeartbeatTable,
    path: PathBuf,
    rss: u64,
}

/// A worker that is about to die.
#[derive(Debug)]
struct Victim {
    worker: BenchWorker,
    units: UnitSet,
}

impl Bench {
    fn role(&self, grace: u16) -> RoleArguments {
        RoleArguments {
            table: self.path.clone(),
            grace,
            period_ns: PERIOD.as_nanos() as u64,
            rss: 0,
            units: Vec::new(),
            beats_only: false,
        }
    }

    fn start_victim(&self, run: u32, detector: Detector) -> Result<Victim, BenchError> {
        // Both ends of the first and the last work word, and one that differs from run to run.
        let numbers = [0, 31, 96, 127, 1 + run % 30];
        let units: Result<UnitSet, HeartbeatError> =
            numbers.into_iter().map(Unit::try_from).collect();
        let beats_only = detector == Detector::Beats;
        let grace = if beats_only {
            GRACE_EPOCHS
        } else {
            GRACE_FOR_EVER_EPOCHS
        };
        let role = RoleArguments {
            rss: self.rss,
            units: numbers.to_vec(),
            beats_only,
            ..self.role(grace)
        };
        Ok(Victim {
            worker: BenchWorker::start(&role)?,
            units: units?,
        })
    }

    /// One run that counts. A worker that misses its beats while it lives, on a busy machine, does not.
    fn latency(&self, run: u32, detector: Detector) -> Result<Latency, BenchError> {
        for _ in 0..TRIES {
            let watchdog = FailoverWatchdog::with_grace(&self.table, u64::from(GRACE_EPOCHS));
            let latency = match detector {
                Detector::Robust | Detector::Beats => self.by_loop(&watchdog, run, detector)?,
                Detector::Pidfd => self.by_pidfd(&watchdog, run)?,
            };
            nothing_again(&watchdog, run, detector)?;
            if let Some(latency) = latency {
                return Ok(latency);
            }
        }
        Err(BenchError::TooBusy { run, tries: TRIES })
    }

    fn by_loop(
        &self,
        watchdog: &FailoverWatchdog<'_>,
        run: u32,
        detector: Detector,
    ) -> Result<Option<Latency>, BenchError> {
        let (stop, (sender, sightings)) = (Stop::new(), channel());
        thread::scope(|scope| {
            let stop = RequestOnDrop(&stop);
            let watcher = scope.spawn(|| watch_by_loop(watchdog, stop.0, &sender));
            let mut victim = self.start_victim(run, detector)?;
            settle(run);
            let killed_ns = victim.worker.kill()?;
            // Now: this thread may have been stopped right before it.
            let is_punctual = detector != Detector::Beats || self.lag_epochs(&victim) <= 1;
            let first = first_sighting(&sightings, run, detector)?;
            drop(stop);
            // Ends without a panic of its own: what it could not do is missing in the channel.
            let _ = watcher.join();
            victim.worker.require_killed()?;
            let latency = self.judge(&victim, run, detector, killed_ns, &first, &sightings)?;
            Ok(latency.filter(|_| is_punctual))
        })
    }

    /// How many scans the worker has missed, as the table shows it.
    fn lag_epochs(&self, victim: &Victim) -> u64 {
        let snapshot = self.table.snapshot(victim.worker.slot());
        snapshot.map_or(u64::MAX, |snapshot| {
            let epoch = self.table.global_epoch();
            epoch.saturating_sub(snapshot.last_seen_epoch)
        })
    }

    fn by_pidfd(
        &self,
        watchdog: &FailoverWatchdog<'_>,
        run: u32,
    ) -> Result<Option<Latency>, BenchError> {
        // It takes the lease and a slot with its first scan: not when the death has come.
        let _ = watchdog.scan();
        let (sender, sightings) = channel();
        let mut victim = self.start_victim(run, Detector::Pidfd)?;
        let pidfd = victim.worker.pidfd()?;
        thread::scope(|scope| {
            let watcher = scope.spawn(|| watch_by_pidfd(watchdog, pidfd.as_fd(), &sender));
            settle(run);
            let killed_ns = victim.worker.kill()?;
            let watched = watcher.join().unwrap_or(Err(Errno::CANCELED));
            watched.map_err(BenchError::system("wait for the worker's end"))?;
            let first = first_sighting(&sightings, run, Detector::Pidfd)?;
            victim.worker.require_killed()?;
            self.judge(&victim, run, Detector::Pidfd, killed_ns, &first, &sightings)
        })
    }

    /// The run's latency, if what was handed back is what the worker had in flight, under its name, and
    /// once. `None` when it was handed back before the kill.
    fn judge(
        &self,
        victim: &Victim,
        run: u32,
        detector: Detector,
        killed_ns: u64,
        first: &Sighting,
        later: &Receiver<Sighting>,
    ) -> Result<Option<Latency>, BenchError> {
        let is_wanted = |sighting: &Sighting, units: UnitSet| {
            let (slot, worker) = (sighting.slot, &victim.worker);
            (slot.slot, slot.generation, slot.pid)
                == (worker.slot(), worker.generation(), worker.pid())
                && slot.units == units
                && slot
                    .units
                    .iter()
                    .all(|unit| slot.unit_name(unit).creation_id == self.table.creation_id())
                && matches!(&sighting.taken, Ok(taken) if taken.units == units)
        };
        let by_silence = matches!(first.slot.verdict, Verdict::Silent { .. });
        let is_right = is_wanted(first, victim.units)
            && (first.slot.verdict == Verdict::Died || (by_silence && detector == Detector::Beats));
        // A death that follows a silence is told, without units.
        let wrong = (!is_right).then_some(first.slot).or_else(|| {
            later
                .try_iter()
                .find(|sighting| !is_wanted(sighting, UnitSet::EMPTY))
                .map(|sighting| sighting.slot)
        });
        if let Some(slot) = wrong {
            return Err(BenchError::WrongHandBack {
                run,
                detector: detector.name(),
                found: described(slot),
                wanted: format!(
                    "slot {} (pid {}, generation {}), units {:?}, once",
                    victim.worker.slot(),
                    victim.worker.pid(),
                    victim.worker.generation(),
                    victim.units
                ),
            });
        }
        Ok((first.handed_back_ns >= killed_ns).then(|| Latency {
            // A scan that was under way when the worker was killed began before.
            seen_ns: first
                .seen_ns
                .checked_sub(killed_ns)
                .unwrap_or(first.handed_back_ns - killed_ns),
            handed_back_ns: first.handed_back_ns - killed_ns,
        }))
    }
}

/// Ends the watchdog's loop when dropped, so that no error leaves a thread that is waited for.
struct RequestOnDrop<'a>(&'a Stop);

impl Drop for RequestOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// Lets the watcher fall asleep, and spreads the kills over the period.
fn settle(run: u32) {
    let golden = (f64::from(run) * 0.618_034).fract();
    thread::sleep(2 * PERIOD + PERIOD.mul_f64(golden));
}

fn first_sighting(
    sightings: &Receiver<Sighting>,
    run: u32,
    detector: Detector,
) -> Result<Sighting, BenchError> {
    let limit = HAND_BACK_LIMIT;
    sightings
        .recv_timeout(limit)
        .map_err(|_| BenchError::NotSeen {
            run,
            detector: detector.name(),
            limit,
        })
}

/// After a run, with its worker dead and reaped: its units are not handed back again.
fn nothing_again(
    watchdog: &FailoverWatchdog<'_>,
    run: u32,
    detector: Detector,
) -> Result<(), BenchError> {
    for _ in 0..2 {
        for (slot, _) in watchdog.scan().dead_slots {
            if !slot.units.is_empty() {
                return Err(BenchError::WrongHandBack {
                    run,
                    detector: detector.name(),
                    found: described(slot),
                    wanted: "nothing after the acknowledgement".to_owned(),
                });
            }
            // A death after a silence.
            watchdog.clear_dead_bitmap(slot)?;
        }
    }
    Ok(())
}

fn described(slot: SlotRef) -> String {
    format!("{slot}, units {:?}", slot.units)
}

fn figures(latencies: &[Latency]) -> DetectorFigures {
    DetectorFigures {
        seen_us: Spread::of_ns(latencies.iter().map(|latency| latency.seen_ns)),
        handed_back_us: Spread::of_ns(latencies.iter().map(|latency| latency.handed_back_ns)),
    }
}
