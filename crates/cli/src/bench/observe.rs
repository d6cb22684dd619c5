//! `bench observe`: what it costs to be observed, beside what the same call costs unobserved.
//!
//! All kinds take turns in blocks, in one thread, so that they meet the same machine; the medians of the
//! blocks are told. Rings are emptied between two blocks, outside of the timed part, but for the one that
//! nobody drains. Beside them in turn: one locked compare-and-swap on a word in the heap, the floor under
//! every observation. Then two threads beat as fast as they can under a sidecar's thread, and every beat
//! must be counted.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bumpless_failover::{FailoverWatchdog, ReclaimReport};
use bumpless_heartbeat::{Handle, HeartbeatTable};
use bumpless_sidecar::{AdaptiveInstance, Instruments, ObservationRing, Sidecar, SidecarBox};
use bumpless_standby::rehearsal::{INPUT, Side};
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::region::Access;
use bumpless_substrate::sync::{AtomicU64, Ordering};
use clap::Args;
use serde::Serialize;

use super::error::BenchError;
use super::tick;
use super::{private_folder, show};

/// Beats in one block: less than a ring holds.
const BEATS: u32 = 4_096;
const RING_CAPACITY: u32 = 8_192;
/// Live slots under the watchdog, and scans in one block.
const SLOTS: usize = 64;
const SCANS: u32 = 64;
/// Nobody is late in a measurement.
const GRACE_EPOCHS: u64 = 1 << 40;
const THREADS: u32 = 2;

/// Nanoseconds of a beat, a scan and a standby's tick: raw, and observed.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Example: bumpless bench observe --json

raw      the call itself
idle     in a box whose ring nobody drains: full, so that every record is dropped and counted
drained  in a box whose ring is drained between the blocks
shared   the same, with the ring in a file that other processes can read
cas      one locked compare-and-swap, which no observation can do without

Then two threads beat under a sidecar's thread: each beat is counted.")]
pub struct ObserveArguments {
    /// Blocks of each kind
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub blocks: u32,

    /// Beats of the two threads together
    #[arg(long, value_name = "N", default_value_t = 20_000_000, value_parser = clap::value_parser!(u32).range(2..))]
    pub beats: u32,

    /// Print one line of JSON instead of the table
    #[arg(long)]
    pub json: bool,
}

/// One call in each kind; unit: ns.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Costs {
    raw_ns: f64,
    idle_ns: f64,
    drained_ns: f64,
    shared_ns: f64,
}

/// Two threads under a sidecar.
#[derive(Debug, Clone, Copy, Serialize)]
struct Storm {
    beats: u64,
    observed: u64,
    dropped: u64,
    skipped: u64,
    beat_ns: f64,
}

#[derive(Debug, Serialize)]
struct ObserveFigures {
    blocks: u32,
    cas_ns: f64,
    beat: Costs,
    scan: Costs,
    tick: Costs,
    /// A drained beat's part of what it may cost: twice the raw one and one compare-and-swap.
    beat_of_limit: f64,
    storm: Storm,
}

/// Measures and prints.
///
/// # Errors
/// [`BenchError`].
pub fn run(arguments: &ObserveArguments) -> Result<(), BenchError> {
    let folder = private_folder()?;
    let path = |name: &str| folder.path().join(name);
    let table = HeartbeatTable::create(path("observe.tbl"), 2 * SLOTS)?;
    let boxes = |name: &str| kinds(&path(name));
    let (beat, cas_ns) = measure_beats(&table, boxes("beats")?, arguments.blocks)?;
    let scan = measure_scans(&table, boxes("scans")?, arguments.blocks)?;
    let tick = measure_ticks(boxes("ticks")?, arguments.blocks)?;
    let figures = ObserveFigures {
        blocks: arguments.blocks,
        cas_ns,
        beat,
        scan,
        tick,
        beat_of_limit: beat.drained_ns / (2.0 * beat.raw_ns + cas_ns),
        storm: storm(&table, arguments.beats)?,
    };
    if arguments.json {
        show(&format!("{}\n", serde_json::to_string(&figures)?))?;
    } else {
        show(&figures.table())?;
    }
    Ok(())
}

/// The instruments of the three observed kinds: idle, drained, in shared memory.
type Kinds = [Arc<Instruments>; 3];

fn kinds(path: &std::path::Path) -> Result<Kinds, BenchError> {
    let full = ObservationRing::with_capacity(1);
    let heap = ObservationRing::with_capacity(RING_CAPACITY as usize);
    let shared = ObservationRing::create_in_region(path, RING_CAPACITY, Access::Private)?;
    Ok([full, heap, shared].map(|ring| Arc::new(Instruments::on_ring(ring))))
}

/// Empties the rings that are drained.
fn drain([_, heap, shared]: &Kinds) {
    for instruments in [heap, shared] {
        let drained = instruments.ring().drain(monotonic_ns(), &mut |seen| {
            black_box(seen);
        });
        black_box(drained);
    }
}

/// The medians of a number of turns, each of which times every kind once.
fn medians(
    blocks: u32,
    mut turn: impl FnMut() -> Result<[f64; 4], BenchError>,
) -> Result<Costs, BenchError> {
    let mut timed: [Vec<f64>; 4] = Default::default();
    for _ in 0..blocks {
        for (timed, ns) in timed.iter_mut().zip(turn()?) {
            timed.push(ns);
        }
    }
    let [raw_ns, idle_ns, drained_ns, shared_ns] = timed.map(|mut timed| tick::median(&mut timed));
    Ok(Costs {
        raw_ns,
        idle_ns,
        drained_ns,
        shared_ns,
    })
}

fn measure_beats(
    table: &HeartbeatTable,
    kinds: Kinds,
    blocks: u32,
) -> Result<(Costs, f64), BenchError> {
    let me = table.register(std::process::id())?;
    let boxes = kinds
        .clone()
        .map(|instruments| SidecarBox::with_instruments(table, instruments));
    let word = AtomicU64::new(0);
    let mut cas_ns = Vec::new();
    let costs = medians(blocks, || {
        drain(&kinds);
        let raw_ns = per_beat_ns(|| Ok(table.beat(black_box(me))?))?;
        cas_ns.push(per_beat_ns(|| {
            // AcqRel, as a ring's reservation; pairs with nobody: one thread.
            let seen = word.load(Ordering::Relaxed);
            let _ = black_box(&word).compare_exchange(
                seen,
                seen + 2,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            Ok(())
        })?);
        let [idle, drained, shared] = &boxes;
        let boxed = |one: &SidecarBox<_>| per_beat_ns(|| Ok(one.beat(black_box(me))?));
        Ok([raw_ns, boxed(idle)?, boxed(drained)?, boxed(shared)?])
    })?;
    table.unregister(me)?;
    Ok((costs, tick::median(&mut cas_ns)))
}

fn per_beat_ns(mut beat: impl FnMut() -> Result<(), BenchError>) -> Result<f64, BenchError> {
    let began = Instant::now();
    for _ in 0..BEATS {
        beat()?;
    }
    Ok(began.elapsed().as_nanos() as f64 / f64::from(BEATS))
}

/// One watchdog, whose scans are taken raw and boxed in turn: the lease is one watchdog's.
fn measure_scans(table: &HeartbeatTable, kinds: Kinds, blocks: u32) -> Result<Costs, BenchError> {
    let workers = (0..SLOTS)
        .map(|_| table.register(std::process::id()))
        .collect::<Result<Vec<_>, _>>()?;
    let watchdog = FailoverWatchdog::with_grace(table, GRACE_EPOCHS);
    let mut slot = Some(watchdog);
    let mut report = ReclaimReport::default();
    let costs = medians(blocks, || {
        drain(&kinds);
        let mut timed = [0.0; 4];
        let Some(mut watchdog) = slot.take() else {
            return Ok(timed);
        };
        timed[0] = per_scan_ns(table, &workers, || watchdog.scan_into(&mut report))?;
        for (timed, instruments) in timed[1..].iter_mut().zip(&kinds) {
            let observed = SidecarBox::with_instruments(watchdog, Arc::clone(instruments));
            *timed = per_scan_ns(table, &workers, || observed.scan_into(&mut report))?;
            watchdog = observed.into_inner();
        }
        slot = Some(watchdog);
        Ok(timed)
    })?;
    for worker in workers {
        table.unregister(worker)?;
    }
    Ok(costs)
}

/// Every worker beats before each scan; the scan alone is timed.
fn per_scan_ns(
    table: &HeartbeatTable,
    workers: &[Handle],
    mut scan: impl FnMut(),
) -> Result<f64, BenchError> {
    let mut spent_ns = 0;
    for _ in 0..SCANS {
        for worker in workers {
            table.beat(*worker)?;
        }
        let began = Instant::now();
        scan();
        spent_ns += began.elapsed().as_nanos();
    }
    Ok(spent_ns as f64 / f64::from(SCANS))
}

fn measure_ticks(kinds: Kinds, blocks: u32) -> Result<Costs, BenchError> {
    let [primary, _] = tick::converse()?;
    medians(blocks, || {
        drain(&kinds);
        let mut timed = [tick::time_ticks(&primary), 0.0, 0.0, 0.0];
        for (timed, instruments) in timed[1..].iter_mut().zip(&kinds) {
            *timed = time_observed(&primary, instruments);
        }
        Ok(timed)
    })
}

fn time_observed(side: &Side, instruments: &Arc<Instruments>) -> f64 {
    let mut node = SidecarBox::with_instruments(side.node.clone(), Arc::clone(instruments));
    tick::time_block(side, |now_ns, cycle, hears| {
        black_box(node.tick(now_ns, cycle, &INPUT, hears));
    })
}

/// Two threads beat under a sidecar; every beat must be counted.
fn storm(table: &HeartbeatTable, beats: u32) -> Result<Storm, BenchError> {
    let observed = SidecarBox::new(table);
    let sidecar = Sidecar::start()?;
    let _watched = sidecar.register(&observed)?;
    let each = beats / THREADS;
    let began = Instant::now();
    let beaten = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| beat_often(&observed, each)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join())
            .collect::<Vec<_>>()
    });
    let spent_ns = began.elapsed().as_nanos() as f64;
    for thread in beaten {
        thread.map_err(|_| BenchError::Interrupted)??;
    }
    sidecar.stop();
    let counts = observed.ring().counts();
    let storm = Storm {
        beats: u64::from(each * THREADS),
        observed: observed.ring().tallied(),
        dropped: counts.dropped,
        skipped: counts.skipped,
        beat_ns: spent_ns / f64::from(each),
    };
    if storm.observed == storm.beats {
        return Ok(storm);
    }
    Err(BenchError::Uncounted {
        found: storm.observed,
        wanted: storm.beats,
    })
}

fn beat_often(observed: &SidecarBox<&HeartbeatTable>, beats: u32) -> Result<(), BenchError> {
    let me = observed.register(std::process::id())?;
    for _ in 0..beats {
        observed.beat(me)?;
    }
    observed.unregister(me)?;
    Ok(())
}

impl ObserveFigures {
    fn table(&self) -> String {
        let mut text = format!(
            "Nanoseconds of one call, medians of {} blocks in turn, load {}\n\
             {:6}{:>10}{:>10}{:>10}{:>10}\n",
            self.blocks,
            super::figures::load(),
            "",
            "raw",
            "idle",
            "drained",
            "shared"
        );
        for (name, costs) in [
            ("beat", self.beat),
            ("scan", self.scan),
            ("tick", self.tick),
        ] {
            text += &format!(
                "{name:6}{:>10.2}{:>10.2}{:>10.2}{:>10.2}\n",
                costs.raw_ns, costs.idle_ns, costs.drained_ns, costs.shared_ns
            );
        }
        let Storm {
            beats,
            observed,
            dropped,
            skipped,
            beat_ns,
        } = self.storm;
        text += &format!(
            "cas   {:>10.2}\ndrained beat / (2 raw beats + cas): {:.2}\n",
            self.cas_ns, self.beat_of_limit
        );
        text + &format!(
            "{beats} beats of {THREADS} threads under a sidecar: {observed} observed + {dropped} dropped \
             + {skipped} skipped, {beat_ns:.1} ns a beat\n"
        )
    }
}
