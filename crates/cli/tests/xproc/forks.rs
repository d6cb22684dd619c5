//! Fork children that execute no program, and what is left of a table that was dropped.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use bumpless_failover::{FailoverWatchdog, Verdict};
use bumpless_heartbeat::{Certificate, HeartbeatTable};
use bumpless_substrate::keeper::{KEEPER_MASK, WAITERS};
use bumpless_substrate::locks::LockState;
use bumpless_substrate::sync::Ordering;
use bumpless_substrate::unusual::fork_and_run;
use rustix::process::{Pid, Signal};

use crate::child::{Child, await_until};
use crate::death::{scan_until_reported, units};
use crate::layout::{KEEPER, TableFile};
use crate::lines::Next;
use crate::owners::registered_slot;
use crate::roles;
use crate::scene::Scene;

const GRACE_EPOCHS: u64 = 3;
const LIMIT: Duration = Duration::from_secs(30);

/// 13.
pub fn a_fork_child_is_no_life_of_its_parent(scene: &Scene) {
    // For the watchdog, the worker, and its fork child.
    let table = scene.table(3);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let mut worker = scene.member();
    worker.done(&format!("attach {}", scene.table_path().display()));
    let slot = registered_slot(&worker.done("register"));
    worker.done("mark 3 4");
    worker.done("watch 3");
    assert!(watchdog.scan().is_empty());
    let forked_pid: u32 = worker.done("fork").parse().expect("a pid");
    assert_ne!(forked_pid, worker.pid());
    let file = TableFile::open(&scene.table_path(), 3);
    let before = file.bytes();
    assert_inert(&mut worker);
    assert_eq!(file.bytes(), before, "while the parent lives");
    worker.kill();
    let (dead, scans) = scan_until_reported(&watchdog, worker.pid());
    assert_eq!((dead.verdict, scans), (Verdict::Died, 1));
    assert_eq!(dead.units, units(&[3, 4]));
    let taken = watchdog.clear_dead_bitmap(dead).expect("the first");
    assert_eq!((taken.units, taken.deaths), (units(&[3, 4]), 1));
    let before = file.bytes();
    assert_inert(&mut worker);
    assert_eq!(file.bytes(), before, "when the parent is dead");
    assert!(watchdog.scan().is_empty());
    // On its own account it may take part like anybody.
    worker.done(&format!("attach {}", scene.table_path().display()));
    let own_slot = registered_slot(&worker.done("register"));
    assert_ne!(
        own_slot, slot,
        "the parent's lock is held as long as it has it"
    );
    worker.done("beat");
    worker.done("mark 4");
    let report = watchdog.scan();
    assert!(report.is_empty(), "{report:?}");
    let forked = Pid::from_raw(forked_pid.cast_signed()).expect("a pid");
    rustix::process::kill_process(forked, Signal::KILL).expect("a fork child");
    await_until(LIMIT, "the fork child's death", || {
        table.lock_state(own_slot).ok() == Some(LockState::Free)
    });
    let (dead, _) = scan_until_reported(&watchdog, forked_pid);
    assert_eq!((dead.verdict, dead.units), (Verdict::Died, units(&[4])));
    let heir = registered_slot(&scene.member().done("register"));
    assert_eq!(
        heir, slot,
        "the parent's slot is free with the last copy of its lock"
    );
}

/// What the child has inherited refuses everything.
fn assert_inert(forked: &mut Child) {
    for command in ["beat", "mark 5", "complete 3", "unregister", "register"] {
        forked.refused(command, "ForkedHandle");
    }
    assert_eq!(forked.done("scan"), "Standby");
}

/// 43.
pub fn a_fork_child_that_drops_its_copy_takes_nothing(scene: &Scene) {
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    assert!(watchdog.scan().is_empty());
    let mut worker = Child::start("dropping owner", &[scene.table_path().into()]);
    let slot = registered_slot(&worker.done("register"));
    for _ in 0..20 {
        worker.done("mark 1");
        assert_eq!(worker.done("drop in a fork child"), "Some(0)");
        assert_eq!(table.lock_state(slot).ok(), Some(LockState::Held));
        let snapshot = table.snapshot(slot).expect("an owner");
        assert_eq!(snapshot.certificate, Certificate::Armed);
        worker.done("beat");
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
        scene.member().refused("register", "TableFull");
        worker.done("complete 1");
    }
    worker.done("mark 2");
    worker.kill();
    let (dead, scans) = scan_until_reported(&watchdog, worker.pid());
    assert_eq!((dead.verdict, scans), (Verdict::Died, 1));
    assert_eq!(dead.units, units(&[2]));
}

/// 42.
pub fn a_dropped_table_is_never_written_by_the_kernel(scene: &Scene) {
    const CAPACITY: usize = 64;
    let table = scene.table(CAPACITY);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let mut worker = Child::start("dropping owner", &[scene.table_path().into()]);
    let slot = registered_slot(&worker.done("register"));
    worker.done("mark 6");
    assert!(watchdog.scan().is_empty());
    let cells = table.cells(slot as usize).expect("a slot");
    // Relaxed: the owner has answered since it stored it.
    let keeper = cells.slot.keeper_word().load(Ordering::Relaxed) & KEEPER_MASK;
    let other = worker.done(&format!("drop and map {}", scene.path("other").display()));
    let (left, _) = scan_until_reported(&watchdog, worker.pid());
    assert_eq!((left.verdict, left.units), (Verdict::Released, units(&[6])));
    // Were the list still known to the kernel, it would take each of these words for its own.
    let file = TableFile::open(Path::new(&other), CAPACITY as u64);
    for slot in 0..CAPACITY as u64 {
        file.set_bytes(file.slot(slot) + KEEPER, &(keeper | WAITERS).to_ne_bytes());
    }
    let before = file.bytes();
    worker.kill();
    assert_eq!(file.bytes(), before);
}

/// Registers in a table that it can drop.
pub fn dropping_owner(arguments: &[String]) {
    let mut table = Some(HeartbeatTable::attach(&arguments[0]).expect("the table"));
    let handle = roles::register_when_free(table.as_ref().expect("not dropped yet"));
    let mut others = Vec::new();
    let mut commands = roles::commands();
    while let Next::Line(line) = commands.next(None) {
        let words: Vec<&str> = line.split(' ').collect();
        let open = || table.as_ref().expect("not dropped yet");
        let unit = |number: &str| roles::number(number);
        let reply = match words[..] {
            ["register"] => Ok(format!("{} {}", handle.slot(), handle.generation())),
            ["beat"] => open().beat(handle).map(|()| String::new()),
            ["mark", number] => open()
                .mark_in_flight(handle, unit(number))
                .map(|()| String::new()),
            ["complete", number] => open()
                .clear_in_flight(handle, unit(number))
                .map(|()| String::new()),
            ["drop", "in", "a", "fork", "child"] => {
                let child = fork_and_run(|| {
                    table = None;
                    0
                });
                Ok(format!(
                    "{:?}",
                    child.and_then(|child| child.wait()).expect("a child")
                ))
            }
            ["drop", "and", "map", prefix] => {
                let capacity = open().capacity();
                let address = mapped_at(Path::new(&arguments[0])).expect("a mapping");
                table = None;
                Ok(map_there(&mut others, address, capacity, prefix))
            }
            _ => panic!("no command: {line}"),
        };
        roles::answer(&reply.map_err(roles::Refusal::from));
    }
}

/// Maps files until one lies at `address`; its path.
fn map_there(
    others: &mut Vec<HeartbeatTable>,
    address: u64,
    capacity: usize,
    prefix: &str,
) -> String {
    const FILES_MAX: usize = 200;
    for number in 0..FILES_MAX {
        let path = format!("{prefix}-{number}");
        others.push(HeartbeatTable::create(&path, capacity).expect("a table"));
        if mapped_at(Path::new(&path)) == Some(address) {
            return path;
        }
    }
    panic!("none of {FILES_MAX} files was mapped at {address:x}");
}

/// Where this process has mapped a file.
fn mapped_at(path: &Path) -> Option<u64> {
    let inode = std::fs::metadata(path).expect("the file").ino().to_string();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("our mappings");
    let mut lines = maps.lines();
    // Range, rights, offset, device, inode, path.
    let line = lines.find(|line| line.split_ascii_whitespace().nth(4) == Some(&inode))?;
    let (start, _) = line.split_once('-')?;
    u64::from_str_radix(start, 16).ok()
}
