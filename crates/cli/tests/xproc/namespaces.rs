//! Owners and watchdogs in different pid and time namespaces, and pids that are used again.

use std::process::Command;
use std::time::Duration;

use bumpless_failover::{FailoverWatchdog, Verdict};
use bumpless_heartbeat::{HeartbeatTable, NO_KEEPER};
use bumpless_substrate::keeper::KEEPER_MASK;
use bumpless_substrate::proof::{Evidence, Proof, ProofSource};
use bumpless_substrate::sync::Ordering;

use crate::child::{Child, await_until};
use crate::death::{assert_acknowledged, scan_until_reported, units};
use crate::false_deaths::await_time;
use crate::layout::{KEEPER, TableFile};
use crate::owners::{attach_and_register, registered_slot};
use crate::scene::Scene;

const GRACE_EPOCHS: u64 = 3;

const LIMIT: Duration = Duration::from_secs(30);

/// Starts a program as the first process of a pid namespace.
pub const NEW_PIDS: &[&str] = &["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

/// Starts a program a day later.
pub const NEW_TIME: &[&str] = &[
    "unshare",
    "--time",
    "--boottime",
    "86400",
    "--monotonic",
    "86400",
];

/// The pid that is used again.
const PID: u32 = 100;

/// 17.
pub fn a_reused_pid_neither_hides_a_death_nor_kills_the_next(scene: &Scene) {
    for has_certificate in [true, false] {
        let path = scene.path(&format!("certificate {has_certificate}").replace(' ', "-"));
        let table = HeartbeatTable::create(&path, 64).expect("a table");
        let nest = Nest::new();
        let mut watchdog = nest.member();
        watchdog.done(&format!("attach {}", path.display()));
        watchdog.done("watch 3");
        assert_eq!(watchdog.done("scan"), "Primary");
        let mut first = nest.member_with_pid();
        let slot = registered_slot(&attach_and_register(&mut first, &path));
        assert_eq!(table.snapshot(slot).expect("an owner").pid, PID);
        first.done("mark 3");
        if !has_certificate {
            // As if the kernel had denied it.
            let file = TableFile::open(&path, 64);
            let word = file.slot(slot.into()) + KEEPER;
            file.set_bytes(word, &NO_KEEPER.to_ne_bytes());
        }
        // Processes that started within the same clock tick (10 ms) are told apart by certificates alone.
        await_time(Duration::from_millis(50));
        first.kill();
        let mut second = nest.member_with_pid();
        second.done(&format!("attach {}", path.display()));
        let source = match has_certificate {
            true => ProofSource::Certificate,
            false => ProofSource::Pid,
        };
        await_until(LIMIT, "a death", || watchdog.done("scan").ends_with("/3"));
        let verdict = format!("{slot}: Died by {source}");
        assert_eq!(
            watchdog.done("verdicts"),
            verdict,
            "while somebody has its pid"
        );
        let second_slot = registered_slot(&second.done("register"));
        assert_eq!(table.snapshot(second_slot).expect("an owner").pid, PID);
        assert_ne!(second_slot, slot, "the first's unit is not acknowledged");
        watchdog.done("acknowledge");
        for _ in 0..20 {
            second.done("beat");
            assert_eq!(watchdog.done("scan"), "Primary");
        }
        second.done("mark 3");
        second.done("complete 3");
        second.done("unregister");
    }
}

/// 18.
pub fn first_processes_of_three_pid_namespaces_are_told_apart(scene: &Scene) {
    let table = scene.table(64);
    let [mut watchdog, mut mortal, mut survivor] =
        [(); 3].map(|()| Child::member_through(NEW_PIDS));
    watchdog.done(&format!("attach {}", scene.table_path().display()));
    watchdog.done("watch 3");
    assert_eq!(watchdog.done("scan"), "Primary");
    let [dead, alive] = [&mut mortal, &mut survivor]
        .map(|worker| registered_slot(&attach_and_register(worker, &scene.table_path())));
    assert!(table.iter_live().all(|(_, snapshot)| snapshot.pid == 1));
    mortal.done("mark 1");
    survivor.done("mark 2");
    for _ in 0..10 {
        mortal.done("beat");
        survivor.done("beat");
        assert_eq!(watchdog.done("scan"), "Primary");
    }
    mortal.kill();
    await_until(LIMIT, "a death in another namespace", || {
        survivor.done("beat");
        watchdog.done("scan") != "Primary"
    });
    let verdict = format!("{dead}: Died by {}", ProofSource::Certificate);
    assert_eq!(watchdog.done("verdicts"), verdict);
    watchdog.done("acknowledge");
    for _ in 0..10 {
        survivor.done("beat");
        assert_eq!(watchdog.done("scan"), "Primary");
    }
    // Without a certificate nobody can say anything of it from another namespace, and nobody does.
    let file = TableFile::open(&scene.table_path(), 64);
    file.set_bytes(file.slot(alive.into()) + KEEPER, &NO_KEEPER.to_ne_bytes());
    await_until(LIMIT, "silence", || watchdog.done("scan") != "Primary");
    let verdicts = watchdog.done("verdicts");
    let silent = format!("{alive}: Silent ");
    assert!(
        verdicts.starts_with(&silent) && verdicts.ends_with("by no proof"),
        "{verdicts}"
    );
    survivor.refused("complete 2", "Fenced");
}

/// 36.
pub fn equal_keeper_threads_of_two_pid_namespaces_are_told_apart(scene: &Scene) {
    let table = scene.table(64);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    assert!(watchdog.scan().is_empty());
    let keeper_word = |slot: u32| {
        let cells = table.cells(slot as usize).expect("a slot");
        // Relaxed: compared with itself, or written before its owner answered.
        cells.slot.keeper_word().load(Ordering::Relaxed)
    };
    let [mut mortal, mut survivor] = [(); 2].map(|()| Child::member_through(NEW_PIDS));
    let kept = registered_slot(&attach_and_register(&mut mortal, &scene.table_path()));
    let given_back = registered_slot(&mortal.done("register"));
    let keeper = keeper_word(kept);
    assert_eq!(keeper_word(given_back), keeper, "one keeper for all");
    assert_ne!(keeper & KEEPER_MASK, NO_KEEPER);
    mortal.done("unregister");
    let slot = registered_slot(&attach_and_register(&mut survivor, &scene.table_path()));
    assert_eq!(slot, given_back);
    assert_eq!(keeper_word(slot), keeper, "equal thread ids");
    mortal.done("mark 1");
    survivor.done("mark 2");
    assert!(watchdog.scan().is_empty());
    mortal.kill();
    let (dead, _) = scan_until_reported(&watchdog, 1);
    assert_eq!((dead.slot, dead.verdict), (kept, Verdict::Died));
    assert_eq!(dead.units, units(&[1]));
    watchdog.clear_dead_bitmap(dead).expect("the first");
    assert_eq!(keeper_word(slot), keeper, "not marked");
    for _ in 0..10 {
        survivor.done("beat");
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
    }
    survivor.done("complete 2");
    survivor.done("unregister");
}

/// 40.
pub fn a_shifted_clock_proves_no_death(scene: &Scene) {
    for is_owner_shifted in [false, true] {
        // For the owner and the watchdog.
        let path = scene.path(&format!("owner-shifted-{is_owner_shifted}"));
        let table = HeartbeatTable::create(&path, 2).expect("a table");
        let (here, there) = (Child::start("member", &[]), Child::member_through(NEW_TIME));
        let (mut owner, mut watchdog) = match is_owner_shifted {
            false => (here, there),
            true => (there, here),
        };
        let slot = registered_slot(&attach_and_register(&mut owner, &path));
        owner.done("mark 1");
        watchdog.done(&format!("attach {}", path.display()));
        watchdog.done("watch 3");
        assert_eq!(watchdog.done("scan"), "Primary");
        owner.stop();
        await_until(LIMIT, "silence", || watchdog.done("scan") != "Primary");
        let verdicts = watchdog.done("verdicts");
        let silent = format!("{slot}: Silent ");
        assert!(
            verdicts.starts_with(&silent) && verdicts.ends_with("by no proof"),
            "{verdicts}"
        );
        watchdog.done("acknowledge");
        watchdog.refused("register", "TableFull");
        let claim = table
            .cells(slot as usize)
            .expect("a slot")
            .slot
            .claimed_by();
        let wanted = if is_owner_shifted {
            Evidence::UNKNOWN
        } else {
            let (proof, source) = (Proof::Alive, ProofSource::Pid);
            Evidence { proof, source }
        };
        assert_eq!(
            table.examine(slot as usize, claim),
            wanted,
            "seen from here"
        );
        owner.resume();
        owner.refused("complete 1", "Fenced");
        owner.done("unregister");
        owner.done("register");
        owner.done("mark 2");
        owner.kill();
        await_until(LIMIT, "a death", || watchdog.done("scan") != "Primary");
        let verdict = format!("{slot}: Died by {}", ProofSource::Certificate);
        assert_eq!(watchdog.done("verdicts"), verdict);
    }
}

/// 41.
pub fn who_dies_claiming_is_replaced_by_its_namesake(scene: &Scene) {
    let path = scene.table_path();
    let table = scene.table(1);
    let nest = Nest::new();
    let mut claimer = nest.member_with_pid();
    claimer.done(&format!("attach {}", path.display()));
    let claim = claimer.done("claim 0");
    assert_eq!(claim, format!("Claim(pid {PID}, generation 1, Claiming)"));
    claimer.kill();
    let mut namesake = nest.member_with_pid();
    assert_eq!(
        registered_slot(&attach_and_register(&mut namesake, &path)),
        0
    );
    let snapshot = table.snapshot(0_u32).expect("an owner");
    assert_eq!((snapshot.pid, snapshot.generation), (PID, 2));
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let (dead, scans) = scan_until_reported(&watchdog, PID);
    assert_eq!((dead.verdict, dead.deaths, scans), (Verdict::Died, 1, 1));
    assert!(dead.units.is_empty());
    assert_eq!(
        watchdog.clear_dead_bitmap(dead).map(|taken| taken.deaths),
        Ok(1)
    );
    assert_acknowledged(&watchdog, dead);
    namesake.done("mark 1");
    for _ in 0..10 {
        namesake.done("beat");
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
    }
    namesake.done("complete 1");
}

/// Takes a slot, and goes no further; the claim.
pub fn leave_claiming(table: &HeartbeatTable, slot: usize) -> String {
    let cells = table.cells(slot).expect("a slot");
    table.occupancy().set(u32::try_from(slot).expect("a slot"));
    let seen = cells.slot.claimed_by();
    let claiming = cells.slot.claim(seen, std::process::id());
    format!("{:?}", claiming.expect("nobody else claims"))
}

/// Why no namespaces can be made.
pub fn missing() -> Option<String> {
    let shells = [
        [NEW_PIDS, &["nsenter", "--version"]].concat(),
        [NEW_TIME, &["true"]].concat(),
    ];
    shells.into_iter().find_map(|words| {
        let tried = Command::new(words[0]).args(&words[1..]).output();
        let said = match tried {
            Ok(output) if output.status.success() => return None,
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        Some(format!("{}: {said}", words.join(" ")))
    })
}

/// A pid namespace in which the next pid can be chosen.
struct Nest {
    first: std::cell::RefCell<Child>,
}

impl Nest {
    fn new() -> Self {
        let first = Child::member_through(NEW_PIDS);
        Self {
            first: first.into(),
        }
    }

    /// A member with the next pid.
    fn member(&self) -> Child {
        let target = self.first.borrow().outer_pid().to_string();
        Child::member_through(&["nsenter", "--target", &target, "--pid", "--mount"])
    }

    /// A member whose pid is [`PID`].
    fn member_with_pid(&self) -> Child {
        let last = PID - 1;
        self.first.borrow_mut().done(&format!("last-pid {last}"));
        self.member()
    }
}
