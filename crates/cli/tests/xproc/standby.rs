//! Two watchdogs and one table: which of them ticks, and when the other takes over.

use std::time::{Duration, Instant};

use bumpless_failover::lease::{Holder, Lease};
use bumpless_failover::{FailoverWatchdog, Standing, Verdict};
use bumpless_heartbeat::HeartbeatTable;

use crate::child::{Child, await_until};
use crate::false_deaths::{PERIOD, await_scans, healthy, no_false_death};
use crate::pace::Paced;
use crate::scene::Scene;

const LIMIT: Duration = Duration::from_secs(30);

/// What a takeover from a dead watchdog may take, more often than not; and what one from a stopped
/// watchdog may take beside its grace.
const AT_ONCE: Duration = Duration::from_millis(50);

/// So long that a standby which only looked now and then would be found out.
const SLOW_PERIOD: Duration = Duration::from_secs(2);

/// 9.
pub fn one_of_two_watchdogs_ticks_and_the_other_takes_over(scene: &Scene) {
    let table = scene.table(64);
    let mut workers: Vec<Child> = (0..4).map(|_| healthy(scene)).collect();
    let mut watchdogs = [(); 2].map(|()| start(&table, PERIOD));
    both_tick_as_often_as_one(scene, &table);
    for watchdog in &mut watchdogs {
        no_false_death(&mut workers, watchdog);
    }
    let [killed, most] = takeovers_from_killed(&table, &mut watchdogs, PERIOD, 10);
    let stopped = takeovers_from_stopped(&table, &mut watchdogs);
    for worker in &mut workers {
        let gaps = worker.done("gaps");
        let fenced_healthy = gaps.split(' ').nth(1);
        assert_eq!(fenced_healthy, Some("0"), "{gaps}");
    }
    let slow = HeartbeatTable::create(scene.path("slow"), 64).expect("a table");
    let mut watchdogs = [(); 2].map(|()| start(&slow, SLOW_PERIOD));
    let [slowly_ticking, _] = takeovers_from_killed(&slow, &mut watchdogs, SLOW_PERIOD, 3);
    scene.note(&format!(
        "taken over from killed ones in {killed:.1?} (at most {most:.1?}), in {slowly_ticking:.1?} \
         with a period of {SLOW_PERIOD:?}; from stopped ones in at most {stopped:.1?}",
    ));
}

/// For 2,000 intervals. A tick is not made up for, so more than one to a period were the standby's. On
/// a machine that lets the primary starve for four intervals, the standby may take over.
fn both_tick_as_often_as_one(scene: &Scene, table: &HeartbeatTable) {
    const INTERVALS: u64 = 2_000;
    let term = || u128::from(Lease::load(&table.header().lease).term());
    let (start, first_epoch, first_term) = (Instant::now(), table.global_epoch(), term());
    await_scans(table, INTERVALS);
    let ticks = u128::from(table.global_epoch() - first_epoch);
    let periods = start.elapsed().as_nanos() / PERIOD.as_nanos();
    let takeovers = term() - first_term;
    let said = format!("{ticks} ticks in {periods} periods, {takeovers} takeovers");
    assert!(ticks <= periods + takeovers + 2, "{said}");
    scene.note(&said);
}

/// The median and the longest time from a SIGKILL of the primary to the standby's lease.
fn takeovers_from_killed(
    table: &HeartbeatTable,
    watchdogs: &mut [Child; 2],
    period: Duration,
    kills: usize,
) -> [Duration; 2] {
    let mut times = Paced::new();
    for _ in 0..kills {
        let [primary, standby] = in_order(table, watchdogs);
        let killed = Instant::now();
        primary.kill();
        await_lease(table, standby);
        times.push(killed.elapsed());
        *primary = start(table, period);
    }
    times.assert_at_once(AT_ONCE)
}

/// The longest time from a SIGSTOP of the primary to the standby's lease.
fn takeovers_from_stopped(table: &HeartbeatTable, watchdogs: &mut [Child; 2]) -> Duration {
    let mut times = Paced::new();
    for _ in 0..5 {
        await_scans(table, 5);
        let [primary, standby] = in_order(table, watchdogs);
        primary.stop();
        let stopped = Instant::now();
        await_lease(table, standby);
        times.push(stopped.elapsed());
        let lease = Lease::load(&table.header().lease);
        primary.resume();
        let standing = primary.done("scan");
        let reported = primary.done("fenced");
        await_scans(table, 20);
        let reports = primary.done("fenced");
        // Unless the machine let the other one starve meanwhile.
        if Lease::load(&table.header().lease) == lease {
            assert_eq!(standing, "Standby", "of who resumes");
            assert_eq!(reports, reported, "who resumes reports nothing");
        }
    }
    // The grace, and the scan in which it is over.
    let [_, longest] = times.assert_at_once(5 * PERIOD + AT_ONCE);
    longest
}

/// A watchdog that runs; returns when it is registered.
fn start(table: &HeartbeatTable, period: Duration) -> Child {
    let period_ms = period.as_millis().to_string();
    let arguments = [table.path().into(), "3".into(), period_ms.into()];
    let watchdog = Child::start("watching process", &arguments);
    await_until(LIMIT, "a registered watchdog", || {
        let mut live = table.iter_live();
        live.any(|(_, snapshot)| snapshot.pid == watchdog.pid())
    });
    watchdog
}

/// The one that holds the lease first.
fn in_order<'a>(table: &HeartbeatTable, watchdogs: &'a mut [Child; 2]) -> [&'a mut Child; 2] {
    let [one, other] = watchdogs;
    let mut holder = None;
    await_until(LIMIT, "a holder of the lease", || {
        holder = holder_pid(table);
        [one.pid(), other.pid()].map(Some).contains(&holder)
    });
    if holder == Some(one.pid()) {
        [one, other]
    } else {
        [other, one]
    }
}

/// 46.
pub fn a_recycled_slot_holds_no_lease(scene: &Scene) {
    let table = scene.table(1);
    for _ in 0..20 {
        let mut primary = scene.member();
        primary.done("watch 3");
        assert_eq!(primary.done("scan"), "Primary");
        assert_eq!(holder_pid(&table), Some(primary.pid()));
        primary.kill();
        let mut worker = scene.worker();
        let registered = table.snapshot(0_u32).expect("an owner");
        assert_eq!(registered.pid, worker.pid(), "the watchdog's slot");
        let term = Lease::load(&table.header().lease).term();
        let watchdog = FailoverWatchdog::with_grace(&table, 3);
        let report = watchdog.scan();
        assert_eq!(report.standing, Standing::Primary, "at once");
        assert_eq!(Lease::load(&table.header().lease).term(), term + 1);
        let [(dead, _)] = report.dead_slots[..] else {
            panic!("{report:?}");
        };
        assert_eq!((dead.pid, dead.verdict), (primary.pid(), Verdict::Died));
        assert_eq!(
            watchdog.clear_dead_bitmap(dead).map(|taken| taken.deaths),
            Ok(1)
        );
        worker.done("mark 1");
        for _ in 0..5 {
            worker.done("beat");
            let report = watchdog.scan();
            assert!(report.is_empty(), "{report:?}");
        }
        worker.done("complete 1");
        worker.done("unregister");
    }
}

/// The process that holds the lease, if it is registered.
fn holder_pid(table: &HeartbeatTable) -> Option<u32> {
    let Holder::Slot { slot, generation } = Lease::load(&table.header().lease).holder() else {
        return None;
    };
    let snapshot = table.snapshot(slot)?;
    Some(snapshot.pid).filter(|_| snapshot.generation == generation)
}

fn await_lease(table: &HeartbeatTable, watchdog: &Child) {
    let what = format!("the lease of watchdog {}", watchdog.pid());
    await_until(LIMIT, &what, || holder_pid(table) == Some(watchdog.pid()));
}
