//! Calls that a sandbox denies: the tier falls back, and says so.
//!
//! The filters are real ones of the kernel. A peer puts itself under one before it opens the table; what
//! it starts is under it too.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bumpless_failover::{FailoverWatchdog, SlotRef, Stop, Verdict};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::futex::{Woken, wait_any};
use bumpless_substrate::sync::AtomicU32;
use rustix::time::{ClockId, clock_gettime};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::peer::{self, Peer, eventually};
use crate::scene::Scene;

/// What sandboxes answer.
const ERRNOS: [(&str, i32); 2] = [("EPERM", libc::EPERM), ("ENOSYS", libc::ENOSYS)];

/// Denies this process the calls named in its arguments.
fn deny() {
    let errno: u32 = peer::argument("errno").parse().expect("a number");
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in peer::argument("calls").split('+') {
        match call {
            "set_robust_list" => rules.insert(libc::SYS_set_robust_list, Vec::new()),
            "pidfd_open" => rules.insert(libc::SYS_pidfd_open, Vec::new()),
            "futex_waitv" => rules.insert(libc::SYS_futex_waitv, Vec::new()),
            "ofd_locks" => rules.insert(
                libc::SYS_fcntl,
                [libc::F_OFD_GETLK, libc::F_OFD_SETLK].map(command).into(),
            ),
            _ => panic!("deny {call}?"),
        };
    }
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno),
        std::env::consts::ARCH.try_into().expect("a known machine"),
    );
    let program: BpfProgram = filter.and_then(BpfProgram::try_from).expect("a filter");
    apply_filter(&program).expect("the kernel takes it");
}

/// The second argument of `fcntl`.
fn command(command: i32) -> SeccompRule {
    let (width, wanted) = (SeccompCmpArgLen::Dword, u64::from(command.unsigned_abs()));
    let condition = SeccompCondition::new(1, width, SeccompCmpOp::Eq, wanted);
    SeccompRule::new(vec![condition.expect("a condition")]).expect("a rule")
}

/// Starts a part of a test under a filter, with a path for its table.
fn start_under<F: Fn()>(test: F, part: &str, scene: &Scene, calls: &str, errno: i32) -> Peer {
    let path = scene.path("table");
    let path = path.to_str().expect("a path in UTF-8");
    let errno = errno.to_string();
    let arguments = [("path", path), ("calls", calls), ("errno", &errno)];
    Peer::start(test, part, &arguments)
}

/// Registers with unit 5 in flight, and lives until it is killed.
fn own_a_slot() -> ! {
    let table = HeartbeatTable::attach(peer::path()).expect("a table");
    let handle = table.register(std::process::id()).expect("a free slot");
    table.mark_in_flight(handle, 5_u8).expect("our slot");
    peer::say(handle.slot());
    peer::listen();
    peer::done()
}

/// An owner under the filter of its parent, who is such a peer itself; and its slot.
fn start_owner<F: Fn()>(test: F) -> (Peer, usize) {
    let path = peer::argument("path");
    let mut owner = Peer::start(test, "owner", &[("path", &path)]);
    let slot = owner.hear().parse().expect("a slot");
    (owner, slot)
}

/// Watches an owner that is killed, both under the filter, and tells how that was seen.
fn watch_a_death() -> ! {
    deny();
    let table = HeartbeatTable::create(peer::path(), 4).expect("a table");
    let (mut owner, slot) = start_owner(a_sandbox_without_a_call_costs_a_tier_and_no_death);
    // Silence is out of the question.
    let watchdog = FailoverWatchdog::with_grace(&table, 1_000);
    assert!(watchdog.scan().is_empty());
    let certificate = table.snapshot(slot).expect("an owner").certificate;
    owner.kill();
    owner.reap();
    for scans in 1..=3 {
        let report = watchdog.scan();
        if let [(dead, _)] = report.dead_slots[..] {
            assert_eq!((dead.verdict, dead.pid), (Verdict::Died, owner.pid()));
            assert_eq!(dead.units.len(), 1);
            watchdog.clear_dead_bitmap(dead).expect("ours to take");
            let next = table.register(std::process::id()).expect("a slot again");
            assert_eq!(table.snapshot(next).expect("us").pid, std::process::id());
            peer::say(format!("{certificate:?}, {}", dead.evidence.source));
            peer::done();
        }
        assert!(report.is_empty(), "scan {scans}: {report:?}");
    }
    peer::say("not seen in 3 scans");
    peer::done()
}

#[test]
fn a_sandbox_without_a_call_costs_a_tier_and_no_death() {
    if peer::plays("watchdog") {
        watch_a_death();
    }
    if peer::plays("owner") {
        own_a_slot();
    }
    let tiers = [
        ("set_robust_list", "None, pid and start time"),
        ("pidfd_open", "Armed, death certificate"),
        ("futex_waitv", "Armed, death certificate"),
        ("set_robust_list+pidfd_open", "None, pid and start time"),
    ];
    for (calls, tier) in tiers {
        for (name, errno) in ERRNOS {
            let scene = Scene::new();
            let test = a_sandbox_without_a_call_costs_a_tier_and_no_death;
            let mut watchdog = start_under(test, "watchdog", &scene, calls, errno);
            assert_eq!(watchdog.hear(), tier, "{calls}: {name}");
        }
    }
}

/// Without certificate and pidfd a zombie cannot be told from a process that hangs: it is silent, and
/// the slot stays its own until it is reaped.
fn watch_a_zombie() -> ! {
    deny();
    let table = HeartbeatTable::create(peer::path(), 4).expect("a table");
    let (mut owner, _slot) = start_owner(what_a_sandbox_keeps_from_being_proven_is_called_unknown);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    assert!(watchdog.scan().is_empty());
    owner.kill();
    let scan_until = |wanted: fn(&SlotRef) -> bool| {
        let mut found = None;
        eventually("it is reported", || {
            let report = watchdog.scan();
            found = report.dead_slots.iter().map(|(slot, _)| *slot).find(wanted);
            found.is_some()
        });
        found.expect("found above")
    };
    let silent = scan_until(|_| true);
    peer::say(format!("{}, {}", silent.verdict, silent.evidence.source));
    owner.reap();
    let dead = scan_until(|slot| slot.verdict == Verdict::Died);
    peer::say(format!("{}, {}", dead.verdict, dead.evidence.source));
    peer::done()
}

#[test]
fn what_a_sandbox_keeps_from_being_proven_is_called_unknown() {
    if peer::plays("watchdog") {
        watch_a_zombie();
    }
    if peer::plays("owner") {
        own_a_slot();
    }
    for (name, errno) in ERRNOS {
        let scene = Scene::new();
        let test = what_a_sandbox_keeps_from_being_proven_is_called_unknown;
        let calls = "set_robust_list+pidfd_open";
        let mut watchdog = start_under(test, "watchdog", &scene, calls, errno);
        let said = watchdog.hear();
        let lag = said
            .strip_prefix("silent: lag ")
            .and_then(|rest| rest.strip_suffix(" epochs > grace 3, no proof"))
            .and_then(|lag| lag.parse::<u64>().ok());
        // A scan that the machine stops in the middle fences nobody: the next one does.
        assert!(lag >= Some(4), "{name}: {said}");
        assert_eq!(watchdog.hear(), "died, pid and start time", "{name}");
    }
}

/// What this thread has used of the processor.
fn thread_cpu_ns() -> i64 {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    used.tv_sec * 1_000_000_000 + used.tv_nsec
}

/// Runs the ready-made loop under the filter: idle for 200 ms, then with a death.
fn run_the_loop() -> ! {
    const PERIOD: Duration = Duration::from_millis(20);
    deny();
    let (word, other) = (AtomicU32::new(1), AtomicU32::new(2));
    let started = Instant::now();
    for _ in 0..20 {
        let woken = wait_any(&[(&word, 1), (&other, 2)], Duration::from_secs(60));
        assert_eq!(woken, Woken::Interrupted);
    }
    peer::say(format!("slept {}", started.elapsed().as_millis()));

    let table = HeartbeatTable::create(peer::path(), 4).expect("a table");
    let (mut owner, slot) =
        start_owner(where_the_kernel_waits_on_one_word_only_the_loop_does_not_spin);
    let watchdog = FailoverWatchdog::with_grace(&table, 1_000_000);
    let stop = Stop::new();
    let percent = std::thread::scope(|scope| {
        let idle = scope.spawn(|| {
            let (started, used_ns) = (Instant::now(), thread_cpu_ns());
            watchdog.run(PERIOD, &stop, |_| ());
            let used_ns = u128::try_from(thread_cpu_ns() - used_ns).expect("time goes on");
            used_ns * 100 / started.elapsed().as_nanos()
        });
        eventually("it has ticked for 200 ms", || table.global_epoch() > 10);
        stop.request();
        idle.join().expect("it ends when asked")
    });
    peer::say(format!("idle {percent}"));

    // The next tick is an hour away: only the certificates tell.
    let stop = Stop::new();
    let mut seen = None;
    let hour = Duration::from_secs(3_600);
    // Before the loop begins: its first tick is the only one.
    let before = table.global_epoch();
    std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            watchdog.run(hour, &stop, |report| {
                seen = report.dead_slots.first().map(|(dead, _)| *dead);
                stop.request();
            });
        });
        eventually("it has ticked", || table.global_epoch() > before);
        owner.kill();
        watching.join().expect("it ends when asked");
    });
    let dead = seen.expect("a report");
    assert_eq!(dead.slot as usize, slot);
    peer::say(format!("{}, {}", dead.verdict, dead.evidence.source));
    peer::done()
}

#[test]
fn where_the_kernel_waits_on_one_word_only_the_loop_does_not_spin() {
    if peer::plays("watchdog") {
        run_the_loop();
    }
    if peer::plays("owner") {
        own_a_slot();
    }
    for (name, errno) in ERRNOS {
        let scene = Scene::new();
        let test = where_the_kernel_waits_on_one_word_only_the_loop_does_not_spin;
        let mut watchdog = start_under(test, "watchdog", &scene, "futex_waitv", errno);
        let mut number = |what: &str| -> u64 {
            let said = watchdog.hear();
            let number = said.strip_prefix(what).expect("what was asked for");
            number.trim().parse().expect("a number")
        };
        let slept_ms = number("slept");
        assert!(slept_ms >= 20, "{name}: 20 waits took {slept_ms} ms");
        let idle_percent = number("idle");
        assert!(idle_percent < 20, "{name}: {idle_percent} % of a processor");
        assert_eq!(watchdog.hear(), "died, death certificate", "{name}");
    }
}

#[test]
fn without_locks_of_open_file_descriptions_there_is_no_table_and_the_error_says_why() {
    if peer::plays("creator") {
        deny();
        let error = HeartbeatTable::create(peer::path(), 4).unwrap_err();
        peer::say(error);
        peer::done();
    }
    for (name, errno) in ERRNOS {
        let scene = Scene::new();
        let test = without_locks_of_open_file_descriptions_there_is_no_table_and_the_error_says_why;
        let mut creator = start_under(test, "creator", &scene, "ofd_locks", errno);
        let error = creator.hear();
        let why = std::io::Error::from_raw_os_error(errno).to_string();
        assert!(
            error.contains("table.lock: cannot lock a byte: "),
            "{error}"
        );
        assert!(error.contains(&why), "{name}: {error}");
        assert!(!scene.path("table").exists(), "nothing half made");
    }
}
