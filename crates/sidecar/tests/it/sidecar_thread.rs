//! The thread: what it costs, what it survives, and how it ends.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bumpless_sidecar::{
    AdaptiveInstance, InstanceStats, Instruments, Policy, Registration, Sidecar, SidecarBox,
    SidecarError, TableOp,
};
use bumpless_substrate::unusual::fork_and_run;

use crate::scene::{Events, Scene};

const LIMIT: Duration = Duration::from_secs(60);

/// Looks until the statistics are as wanted.
fn await_stats(watched: &Registration, wanted: impl Fn(&InstanceStats) -> bool) -> InstanceStats {
    let began = Instant::now();
    loop {
        let stats = watched.stats().expect("not a fork child");
        if wanted(&stats) {
            return stats;
        }
        assert!(began.elapsed() < LIMIT, "{stats:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Until the thread has stopped scanning: it scans every 10 ms while it is awake.
fn await_asleep(watched: &Registration) {
    let scanned_ns = || watched.stats().expect("not a fork child").scanned_ns;
    let began = Instant::now();
    let mut last_ns = None;
    while last_ns != Some(scanned_ns()) {
        assert!(began.elapsed() < LIMIT, "it goes on scanning");
        last_ns = Some(scanned_ns());
        await_interval(Duration::from_millis(50));
    }
}

fn await_interval(interval: Duration) {
    std::thread::sleep(interval);
}

/// The sidecar's thread, as far as the kernel keeps the name of a thread.
const NAME: &str = "bumpless-sideca";

/// What proc says under this name of each of the process's sidecar threads.
fn of_sidecars(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("proc");
    let of_sidecars = tasks.flatten().filter(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.trim_end() == NAME
    });
    of_sidecars
        .map(|task| std::fs::read_to_string(task.path().join(name)).unwrap_or_default())
        .collect()
}

/// CPU time of the process's sidecar threads, in nanoseconds.
fn sidecar_cpu_ns() -> u64 {
    let of_one = |text: &String| {
        let first = text.split(' ').next().unwrap_or_default();
        first.parse::<u64>().unwrap_or(0)
    };
    of_sidecars("schedstat").iter().map(of_one).sum()
}

/// Until the process's sidecar threads have slept for five of the intervals in which they scan while they are
/// awake. One that is late on a busy machine does not sleep: it waits for a processor.
fn await_sidecars_at_rest() {
    let sleeps_and_switches = || -> Vec<(bool, String)> {
        let of_one = |text: &String| {
            let line = |name: &str| text.lines().find(|line| line.starts_with(name));
            let switches = line("voluntary_ctxt_switches:").unwrap_or_default();
            let sleeps = line("State:").is_some_and(|state| state.contains("S (sleeping)"));
            (sleeps, switches.to_owned())
        };
        of_sidecars("status").iter().map(of_one).collect()
    };
    let began = Instant::now();
    loop {
        let before = sleeps_and_switches();
        await_interval(Duration::from_millis(50));
        let is_at_rest = !before.is_empty() && before.iter().all(|(sleeps, _)| *sleeps);
        if is_at_rest && before == sleeps_and_switches() {
            return;
        }
        assert!(began.elapsed() < LIMIT, "it goes on scanning");
    }
}

#[test]
fn what_is_observed_is_seen_by_the_thread_also_when_it_slept() {
    let scene = Scene::new();
    let table = SidecarBox::new(scene.table(2));
    let sidecar = Sidecar::start().expect("a thread");
    let watched = sidecar.register(&table).expect("not a fork child");
    let me = table.register(std::process::id()).expect("a slot");
    await_stats(&watched, |stats| stats.observed() == 1);
    await_asleep(&watched);
    table.beat(me).expect("mine");
    let stats = await_stats(&watched, |stats| stats.observed() == 2);
    assert_eq!(stats.op(TableOp::Beat).count, 1);
    sidecar.stop();
    // Behind the end nothing is drained, and nothing waits for it.
    table.tick_global_epoch().expect("writable");
    assert_eq!(table.ring().counts().pending, 1);
}

#[test]
fn an_idle_sidecar_with_a_hundred_instances_takes_at_most_a_thousandth_of_a_core() {
    // In a child, so that no other test's sidecar counts.
    let child = fork_and_run(|| {
        let scene = Scene::new();
        let table = scene.table(2);
        let boxes: Vec<_> = (0..100).map(|_| SidecarBox::new(&table)).collect();
        let Ok(sidecar) = Sidecar::start() else {
            return 1;
        };
        let watched: Vec<_> = boxes.iter().flat_map(|one| sidecar.register(one)).collect();
        if watched.len() != 100 || boxes[50].snapshot(0_usize).is_some() {
            return 2;
        }
        await_stats(&watched[50], |stats| stats.observed() == 1);
        await_sidecars_at_rest();
        let (before_ns, began) = (sidecar_cpu_ns(), Instant::now());
        await_interval(Duration::from_secs(2));
        // It has scanned: a count of nothing is no measurement.
        if before_ns == 0 {
            return 4;
        }
        let used_ns = sidecar_cpu_ns() - before_ns;
        let is_little = u128::from(used_ns) * 1_000 <= began.elapsed().as_nanos();
        if !is_little {
            eprintln!("{used_ns} ns in {:?}", began.elapsed());
            return 3;
        }
        0
    });
    assert_eq!(child.expect("a child").wait().expect("reaped"), Some(0));
}

/// Panics when it is asked.
struct Broken;

impl Policy for Broken {
    fn decide(&mut self, stats: &InstanceStats, _: u32) -> Option<u32> {
        assert!(stats.observed() == 0, "a policy with a mistake in it");
        None
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "and another one at its end");
    }
}

#[test]
fn a_policy_that_panics_is_switched_off_counted_and_told_and_the_others_go_on() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(2);
    let (broken, whole) = (SidecarBox::new(&table), SidecarBox::new(&table));
    let sidecar = Sidecar::start_with_events(events.sink()).expect("a thread");
    let off = sidecar
        .register_with(&broken, Box::new(Broken))
        .expect("not a fork child");
    let on = sidecar.register(&whole).expect("not a fork child");
    for round in 1..=2 {
        let _ = (broken.snapshot(0_usize), whole.snapshot(0_usize));
        let seen = |stats: &InstanceStats| stats.observed() == round;
        let stats = await_stats(&off, seen);
        assert_eq!(await_stats(&on, seen).policies_off, 0);
        if round == 2 {
            assert_eq!(stats.policies_off, 1);
        }
    }
    let told = events.take();
    assert_eq!((told.len(), told[0].kind.name()), (1, "policy_panicked"));
    assert_eq!(told[0].instance, broken.instruments().id());
}

#[test]
fn in_a_fork_child_everything_is_inert_and_says_so() {
    let scene = Scene::new();
    let table = SidecarBox::new(scene.table(2));
    let sidecar = Sidecar::start().expect("a thread");
    let watched = sidecar.register(&table).expect("not a fork child");
    table.ring().tally();
    let (mut own, mut registration) = (Some(sidecar), Some(watched));
    let child = fork_and_run(|| {
        let (Some(sidecar), Some(watched)) = (own.take(), registration.take()) else {
            return 1;
        };
        if !sidecar.is_inert() {
            return 2;
        }
        let refusals = [
            sidecar.register(&table).err(),
            sidecar.scan_now().err(),
            watched.stats().err(),
        ];
        if !refusals
            .iter()
            .all(|error| matches!(error, Some(SidecarError::Inert)))
        {
            return 3;
        }
        // A call is made, and not observed.
        if table.snapshot(0_usize).is_some() || table.ring().counts().pushed != 0 {
            return 4;
        }
        drop(watched);
        drop(sidecar); // joins no thread
        // One of its own works, and does not take what its parent counted for its own.
        let Ok(sidecar) = Sidecar::start() else {
            return 5;
        };
        let copied = sidecar.register(&table).and_then(|watched| {
            sidecar.scan_now()?;
            watched.stats()
        });
        if copied.map_or(1, |stats| stats.observed()) != 0 {
            return 7;
        }
        let observed = Arc::new(Instruments::new());
        observed.observe(1, false, 0);
        i32::from(sidecar.is_inert()) * 6
    });
    assert_eq!(child.expect("a child").wait().expect("reaped"), Some(0));
    let watched = registration.expect("the parent's");
    let _ = table.snapshot(0_usize);
    await_stats(&watched, |stats| stats.observed() == 2);
    own.expect("the parent's").stop();
}

#[test]
fn a_registration_ends_when_it_is_dropped_and_may_outlive_its_sidecar() {
    let scene = Scene::new();
    let table = SidecarBox::new(scene.table(2));
    let sidecar = Sidecar::start().expect("a thread");
    let first = sidecar.register(&table).expect("not a fork child");
    drop(first);
    let _ = table.snapshot(0_usize);
    sidecar.scan_now().expect("not a fork child");
    assert_eq!(table.ring().counts().pending, 1);
    let second = sidecar.register(&table).expect("not a fork child");
    sidecar.stop();
    assert_eq!(second.stats().expect("not a fork child").observed(), 1);
}

/// Ends another registration with itself.
struct Last(Option<Registration>);

impl Policy for Last {
    fn decide(&mut self, _: &InstanceStats, _: u32) -> Option<u32> {
        None
    }
}

impl Drop for Last {
    fn drop(&mut self) {
        drop(self.0.take());
        panic!("and has a mistake in it");
    }
}

#[test]
fn a_policy_may_end_another_registration_when_it_ends_and_panic() {
    let scene = Scene::new();
    let table = SidecarBox::new(scene.table(2));
    let sidecar = Sidecar::start().expect("a thread");
    let first = sidecar.register(&table).expect("not a fork child");
    let second = sidecar.register_with(&table, Box::new(Last(Some(first))));
    drop(second.expect("not a fork child"));
    let _ = table.snapshot(0_usize);
    assert_eq!(table.ring().counts().pending, 1, "both have ended");
    let third = sidecar.register(&table).expect("not a fork child");
    let stats = await_stats(&third, |stats| stats.observed() == 1);
    assert_eq!(stats.policies_off, 0);
}

/// Ends the sidecar that asks it.
struct Enough(Arc<Mutex<Option<Sidecar>>>);

impl Policy for Enough {
    fn decide(&mut self, stats: &InstanceStats, _: u32) -> Option<u32> {
        if stats.observed() > 0 {
            drop(self.0.lock().expect("whole").take());
        }
        None
    }
}

#[test]
fn a_policy_may_end_the_sidecar_that_asks_it() {
    let scene = Scene::new();
    let table = SidecarBox::new(scene.table(2));
    let sidecar = Sidecar::start().expect("a thread");
    let held = Arc::new(Mutex::new(None));
    let policy = Box::new(Enough(Arc::clone(&held)));
    let watched = sidecar.register_with(&table, policy).expect("no child");
    *held.lock().expect("whole") = Some(sidecar);
    let _ = table.snapshot(0_usize);
    let stats = await_stats(&watched, |_| held.lock().expect("whole").is_none());
    assert_eq!((stats.observed(), stats.policies_off), (1, 0));
}
