//! How good a learned grace is: on simulated intervals of six kinds, and on recorded ones.
//!
//! False-positive rate: of how many intervals of a living worker one exceeded the grace that was learned
//! from those before it. Detection time: the grace plus one, in epochs, as a worker that hangs is fenced
//! then. The table of `docs/observation.md` is printed by these tests (`-- --nocapture grace`).

use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::HeartbeatTable;
use bumpless_sidecar::adaptive_grace::intervals::{BeatIntervals, SAMPLES_MIN};
use bumpless_sidecar::{AdaptiveGrace, GraceTarget, SidecarError};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::scene::{Scene, register};

const PROBABILITY: f64 = 1e-4;
const INTERVALS: usize = 400_000;

/// What a run came to.
struct Judged {
    /// Of intervals, behind the first that say nothing.
    false_positives: f64,
    detection_epochs: f64,
    longest: u64,
}

fn judge(name: &str, intervals: impl IntoIterator<Item = u64>) -> Judged {
    let mut known = BeatIntervals::default();
    let (mut judged, mut exceeded, mut graces, mut longest) = (0_u64, 0_u64, 0.0, 0);
    let mut grace = None;
    for (index, interval) in intervals.into_iter().enumerate() {
        if let Some(grace) = grace {
            judged += 1;
            exceeded += u64::from(interval > grace);
            graces += grace as f64;
        }
        longest = longest.max(interval);
        known.note(interval);
        // Not behind each: an estimate takes longer than an interval.
        if index % 16 == 0 || grace.is_none() {
            grace = known.grace_epochs(PROBABILITY);
        }
    }
    assert!(judged > 0, "{name}: fewer than {SAMPLES_MIN}");
    let judged = judged as f64;
    let verdict = Judged {
        false_positives: exceeded as f64 / judged,
        detection_epochs: graces / judged + 1.0,
        longest,
    };
    println!(
        "| {name} | {:.1e} | {:.1} | {} |",
        verdict.false_positives, verdict.detection_epochs, verdict.longest
    );
    verdict
}

/// Epochs that the watchdog sees between beats, when the worker beats behind each of these times; unit:
/// epochs.
fn seen(mut next: impl FnMut(&mut Pcg64Mcg) -> f64) -> impl Iterator<Item = u64> {
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let (mut at, mut last) = (0.0, 0);
    std::iter::from_fn(move || {
        loop {
            at += next(&mut random);
            let epoch = at as u64;
            if epoch > last {
                let interval = epoch - last;
                last = epoch;
                return Some(interval);
            }
        }
    })
}

fn normal(random: &mut Pcg64Mcg) -> f64 {
    let (one, other): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - one).ln()).sqrt() * (core::f64::consts::TAU * other).cos()
}

fn exponential(random: &mut Pcg64Mcg, mean: f64) -> f64 {
    let one: f64 = random.random();
    -(1.0 - one).ln() * mean
}

#[test]
fn a_grace_that_was_learned_holds_what_it_promises_on_light_tails() {
    let jittered = judge(
        "every half epoch, jitter 30 %",
        seen(|random| (0.5 + 0.15 * normal(random)).max(0.01)).take(INTERVALS),
    );
    let slow = judge(
        "every 5 epochs, jitter 20 %",
        seen(|random| (5.0 + normal(random)).max(0.01)).take(INTERVALS),
    );
    let exponential = judge(
        "exponential, mean 3 epochs",
        seen(|random| exponential(random, 3.0)).take(INTERVALS),
    );
    for judged in [&jittered, &slow, &exponential] {
        assert!(
            judged.false_positives <= 2.0 * PROBABILITY,
            "{:e}",
            judged.false_positives
        );
    }
    // And it is not held by waiting for ever.
    assert!(
        jittered.detection_epochs < 6.0,
        "{}",
        jittered.detection_epochs
    );
    assert!(slow.detection_epochs < 20.0, "{}", slow.detection_epochs);
    assert!(
        exponential.detection_epochs < 60.0,
        "{}",
        exponential.detection_epochs
    );
}

#[test]
fn bursts_and_thick_tails_cost_detection_time_before_they_cost_lives() {
    let bursts = judge(
        "bursts: 1 in 50 stops for 5 to 20 epochs",
        seen(|random| {
            if random.random_range(0..50) == 0 {
                random.random_range(5.0..20.0)
            } else {
                0.7
            }
        })
        .take(INTERVALS),
    );
    let log_normal = judge(
        "log-normal, median 1 epoch, sigma 0.8",
        seen(|random| (0.8 * normal(random)).exp()).take(INTERVALS),
    );
    let pareto = judge(
        "Pareto, from 0.5 epochs, exponent 2.5",
        seen(|random| 0.5 * (1.0 - random.random::<f64>()).powf(-1.0 / 2.5)).take(INTERVALS),
    );
    assert!(
        bursts.false_positives <= PROBABILITY,
        "{:e}",
        bursts.false_positives
    );
    assert!(
        bursts.detection_epochs < 40.0,
        "{}",
        bursts.detection_epochs
    );
    assert!(
        log_normal.false_positives <= 5.0 * PROBABILITY,
        "{:e}",
        log_normal.false_positives
    );
    assert!(
        log_normal.detection_epochs < 40.0,
        "{}",
        log_normal.detection_epochs
    );
    // No estimate from a few thousand samples holds one in ten thousand of this; ten times as many is
    // what the longest of the window gives.
    assert!(
        pareto.false_positives <= 10.0 * PROBABILITY,
        "{:e}",
        pareto.false_positives
    );
    assert!(
        pareto.detection_epochs < 120.0,
        "{}",
        pareto.detection_epochs
    );
}

#[test]
fn a_worker_that_becomes_slower_is_followed() {
    let mut beats = 0_u64;
    let drifting = judge(
        "drift: from 1 to 11 epochs, jitter 30 %",
        seen(move |random| {
            beats += 1;
            let mean = 1.0 + 10.0 * beats as f64 / INTERVALS as f64;
            (mean * (1.0 + 0.3 * normal(random))).max(0.01)
        })
        .take(INTERVALS),
    );
    assert!(
        drifting.false_positives <= 3.0 * PROBABILITY,
        "{:e}",
        drifting.false_positives
    );
    assert!(
        drifting.detection_epochs < 40.0,
        "{}",
        drifting.detection_epochs
    );
}

#[test]
fn on_recorded_beats_of_a_busy_pool_it_is_quicker_than_the_grace_that_never_errs() {
    // Made by `cargo run --release -p bumpless-sidecar --example record_beats`; one line for each worker.
    let text = include_str!("beats_of_a_pool.txt");
    let workers = text.lines().filter(|line| !line.starts_with('#'));
    let (mut intervals, mut exceeded, mut detection, mut longest, mut count) = (0, 0.0, 0.0, 0, 0);
    for (index, worker) in workers.enumerate() {
        let recorded: Vec<u64> = worker
            .split_whitespace()
            .map(|number| number.parse().expect("a number"))
            .collect();
        let judged = judge(
            &format!("recorded, worker {index}"),
            recorded.iter().copied(),
        );
        intervals += recorded.len();
        exceeded += judged.false_positives * recorded.len() as f64;
        detection += judged.detection_epochs;
        longest = longest.max(judged.longest);
        count += 1;
    }
    assert!(intervals > 2_000 && count >= 3, "{intervals} of {count}");
    let rate = exceeded / intervals as f64;
    assert!(rate <= 20.0 * PROBABILITY, "{rate:e}");
    let mean = detection / f64::from(count);
    assert!(
        mean <= longest as f64 + 1.0,
        "{mean} epochs, longest {longest}"
    );
}

#[test]
fn the_slots_of_a_table_get_graces_of_their_own_and_a_reader_sets_none() {
    let scene = Scene::new();
    let table = scene.table(8);
    let looking = HeartbeatTable::open_read_only(scene.path("table")).expect("there");
    let (quick, slow, fresh) = (register(&table), register(&table), register(&table));
    let watchdog = FailoverWatchdog::with_grace(&table, 50);
    let mut graces = AdaptiveGrace::new(GraceTarget::default()).expect("sound");
    let mut reader = AdaptiveGrace::new(GraceTarget::default()).expect("sound");
    for scan in 1..4_000 {
        table.beat(quick).expect("alive");
        if scan % 9 == 0 {
            table.beat(slow).expect("alive");
        }
        if scan % 40 == 0 {
            table.beat(fresh).expect("alive");
        }
        assert!(watchdog.scan().is_empty());
        assert_eq!(reader.learn(&looking), 0);
        graces.learn(&table);
    }
    let grace = |handle| table.snapshot(handle).expect("there").grace_epochs;
    assert!((2..=6).contains(&grace(quick)), "{}", grace(quick));
    assert!((9..=15).contains(&grace(slow)), "{}", grace(slow));
    // A hundred intervals say too little.
    assert_eq!(grace(fresh), 0);
    // The next owner of the slot is another worker.
    table.unregister(quick).expect("mine");
    let next = register(&table);
    assert_eq!(next.slot(), quick.slot());
    graces.learn(&table);
    assert_eq!(grace(next), 0);
}

#[test]
fn settings_that_hold_nothing_are_refused() {
    for found in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
        let target = GraceTarget {
            false_death_probability: found,
            ..GraceTarget::default()
        };
        let refused = AdaptiveGrace::new(target);
        assert!(
            matches!(refused, Err(SidecarError::Probability { .. })),
            "{found}"
        );
    }
    for (grace_epochs_min, grace_epochs_max) in [(0, 9), (5, 4)] {
        let target = GraceTarget {
            grace_epochs_min,
            grace_epochs_max,
            ..GraceTarget::default()
        };
        let refused = AdaptiveGrace::new(target);
        assert!(matches!(refused, Err(SidecarError::GraceBounds { .. })));
    }
}
