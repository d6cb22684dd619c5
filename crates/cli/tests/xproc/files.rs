//! The table's file: what is no table, tables that exist, creators that are killed or meet, files that
//! are replaced under running processes.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::{HeartbeatError, HeartbeatTable};
use bumpless_substrate::futex;
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, PathState, Region};
use bumpless_substrate::sync::{AtomicU32, Ordering};
use rustix::fs::{CWD, FileType, Mode};

use crate::child::{Answer, Child};
use crate::death::units;
use crate::false_deaths::await_time;
use crate::layout::TableFile;
use crate::lines::Next;
use crate::roles;
use crate::scene::Scene;

/// Whoever waits for a creator waits for its lock, which is free when it is dead: much longer is a wait for
/// something that never comes.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Asserts that a text names each of these.
#[track_caller]
fn assert_names(text: &str, wanted: &[&str]) {
    for part in wanted {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// 21.
pub fn what_is_no_table_is_refused_by_name(scene: &Scene) {
    drop(scene.table(4));
    let path = scene.table_path();
    let whole = TableFile::open(&path, 4).bytes();
    let len = whole.len();
    let changed = |at: usize, bytes: &[u8]| {
        let mut file = whole.clone();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let word_at = |at: usize| u32::from_ne_bytes(whole[at..at + 4].try_into().expect("4 bytes"));
    let swapped = word_at(16).swap_bytes();
    let (short, full) = (format!("{} B", len - 1), format!("wanted {len} B"));
    let cases: [(Vec<u8>, &[&str]); 10] = [
        (Vec::new(), &["length of 0 B", "wanted 64 B"]),
        (whole[..len - 1].to_vec(), &[&short, &full]),
        (changed(0, b"BUMPLOSS"), &["found magic", "wanted 0x"]),
        (changed(8, b"OTHR"), &["kind \"OTHR\"", "wanted \"HBTB\""]),
        (
            changed(12, &9_u32.to_ne_bytes()),
            &["layout version 9", "wanted 1"],
        ),
        (
            changed(16, &swapped.to_ne_bytes()),
            &["byte-order mark 0x04030201", "wanted 0x01020304"],
        ),
        (
            changed(20, &72_u32.to_ne_bytes()),
            &["records of 72 B", "wanted 64 B"],
        ),
        (
            changed(24, &0_u32.to_ne_bytes()),
            &["capacity 0", "1 to 65536"],
        ),
        (
            changed(28, &0_u32.to_ne_bytes()),
            &["ready word 0", "wanted 1"],
        ),
        (
            changed(40, &[7; 16]),
            &["boot id [0707070707070707", "wanted ["],
        ),
    ];
    for (file, wanted) in cases {
        std::fs::write(&path, file).expect("room");
        assert_refused_by_name(&path, wanted);
    }
    // A table of another boot that nobody has open is no error for `create`.
    assert_eq!(
        HeartbeatTable::create(&path, 4)
            .expect("revived")
            .capacity(),
        4
    );
    std::fs::write(&path, &whole).expect("room");
    HeartbeatTable::attach(&path).expect("whole again");

    let remove = |path: &Path| std::fs::remove_file(path).expect("a file");
    remove(&path);
    assert_refused_by_name(&path, &["no such file"]);
    std::os::unix::fs::symlink("elsewhere", &path).expect("a symlink");
    assert_refused_by_name(&path, &["found a symlink", "wanted a regular file"]);
    remove(&path);
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
    assert_refused_by_name(&path, &["found a FIFO", "wanted a regular file"]);
    remove(&path);
    std::fs::create_dir(&path).expect("a folder");
    assert_refused_by_name(&path, &["found a directory", "wanted a regular file"]);
}

/// Asserts that neither a worker nor an observer gets a table there, and why.
#[track_caller]
fn assert_refused_by_name(path: &Path, wanted: &[&str]) {
    for open in [HeartbeatTable::attach, HeartbeatTable::open_read_only] as [fn(_) -> _; 2] {
        let error: HeartbeatError = open(path).expect_err("no table");
        assert_names(&error.to_string(), wanted);
        assert_names(&error.to_string(), &[&path.display().to_string()]);
    }
}

/// 22.
pub fn create_on_a_live_table_attaches(scene: &Scene) {
    drop(scene.table(4));
    let mut owner = scene.worker();
    owner.done("mark 3");
    owner.stop();
    let file = TableFile::open(&scene.table_path(), 4);
    let before = file.bytes();
    let table = HeartbeatTable::create(scene.table_path(), 4).expect("the same table");
    assert_eq!(table.snapshot(0_usize).map(|s| s.pid), Some(owner.pid()));
    let mut other = Child::start("member", &[]);
    let create = format!("create {} 5", scene.table_path().display());
    let text = other.refused(&create, "Region.CapacityDiffers");
    assert_names(&text, &["capacity 4", "wanted 5"]);
    assert!(file.bytes() == before, "something was written");
    owner.resume();
    owner.done("beat");
    owner.done("complete 3");
}

/// 23.
// At every system call: the substrate's own tests. Here: at any moment, beside an attacher that never
// looks away.
pub fn killed_creator_leaves_nothing_half_made(scene: &Scene) {
    const KILLS: u32 = 400;
    /// Until both sides of the moment were met: where the machine lets the creator wait, it gets ever more
    /// time, and in between none.
    const LIMIT: Duration = Duration::from_secs(120);
    let began = Instant::now();
    let mut attacher = Child::start("attacher", &[]);
    let (mut before, mut after) = (0, 0);
    for kill in 0.. {
        let has_met_both = before > 0 && after > 0;
        if kill >= KILLS && (has_met_both || began.elapsed() > LIMIT) {
            break;
        }
        let path = scene.path(&format!("table-{kill}"));
        attacher.done(&format!("{}", path.display()));
        let mut creator = Child::start("member", &[]);
        creator.done("idle");
        creator.tell(&format!("create {} 64", path.display()));
        let beyond = kill.saturating_sub(KILLS);
        let until = match beyond % 3 {
            0 => Duration::from_micros(u64::from(kill)),
            1 => Duration::ZERO,
            _ => Duration::from_millis(u64::from(beyond)),
        };
        let start = Instant::now();
        // On a busy machine the creator may need our processor: every second time it gets it.
        if kill % 2 == 1 {
            await_time(until);
        }
        while start.elapsed() < until {
            std::hint::spin_loop();
        }
        creator.kill();
        if path.exists() {
            after += 1;
        } else {
            before += 1;
        }
        let start = Instant::now();
        let table = HeartbeatTable::create(&path, 64).expect("at once");
        let took = start.elapsed();
        assert!(took < AT_ONCE, "kill {kill}: {took:?}");
        table.register(std::process::id()).expect("a whole table");
        drop(table);
        for name in [path.clone(), path.with_extension("lock")] {
            let _ = std::fs::remove_file(name);
        }
    }
    assert!(
        before > 0 && after > 0,
        "{before} killed before, {after} after it was made"
    );
    attacher.done("end");
}

/// Attaches to the path that it was told last, again and again.
pub fn attacher() {
    let mut commands = roles::commands();
    let mut path = None;
    loop {
        match commands.next(Some(Duration::ZERO)) {
            Next::Quiet => {}
            Next::Line(line) => {
                roles::answer(&Ok(String::new()));
                path = Some(line);
            }
            Next::Closed => return,
        }
        let Some(path) = &path else { continue };
        match HeartbeatTable::attach(path) {
            Ok(table) => assert_eq!(table.capacity(), 64),
            Err(error) => {
                let refusal = roles::Refusal::from(error);
                assert_eq!(refusal.kind(), "Region.NotFound", "{refusal:?}");
            }
        }
    }
}

/// A word on which the starters of scenario 24 wait for their round.
const GATE: Format = Format {
    kind: *b"GATE",
    version: 1,
    record_size: 64,
    max_capacity: 1,
    region_len: |_| PREAMBLE_LEN + 64,
    revived: |_| (),
};

/// 24.
pub fn many_creators_at_once_share_one_table(scene: &Scene) {
    const PROCESSES: usize = 64;
    const ROUNDS: u32 = 100;
    let gate_path = scene.path("gate");
    let gate = Region::create(&gate_path, &GATE, 1, Access::Private, |_| ());
    let (gate, _) = gate.expect("a gate");
    let gate: &AtomicU32 = gate.at(PREAMBLE_LEN).expect("a word");
    let mut starters: Vec<Child> = (0..PROCESSES)
        .map(|_| Child::start("starter", &[gate_path.clone().into()]))
        .collect();
    for round in 1..=ROUNDS {
        let path = scene.path(&format!("table-{round}"));
        for starter in &mut starters {
            starter.done(&path.display().to_string());
        }
        // Relaxed: a number on its own; the wake is a system call.
        gate.store(round, Ordering::Relaxed);
        futex::wake(gate, u32::MAX);
        let answers: BTreeSet<String> = starters
            .iter_mut()
            .map(|starter| match starter.answer() {
                Answer::Done(what) => what,
                refused => panic!("round {round}: {refused:?}"),
            })
            .collect();
        // Each says the table's creation id and its slot.
        assert_eq!(answers.len(), PROCESSES, "round {round}: {answers:?}");
        let ids: BTreeSet<_> = answers
            .iter()
            .map(|answer| answer.split(' ').next())
            .collect();
        assert_eq!(ids.len(), 1, "round {round}: {ids:?}");
    }
}

/// In each round creates the table it was told of, when the gate opens, and registers.
pub fn starter(arguments: &[String]) {
    let gate = Region::attach(Path::new(&arguments[0]), &GATE).expect("a gate");
    let gate: &AtomicU32 = gate.at(PREAMBLE_LEN).expect("a word");
    let mut commands = roles::commands();
    let mut table = None;
    while let Next::Line(path) = commands.next(None) {
        // All have answered by now: the table of the round before may go.
        drop(table.take());
        // Relaxed: a number on its own.
        let closed = gate.load(Ordering::Relaxed);
        roles::answer(&Ok(String::new()));
        // Relaxed: as above.
        while gate.load(Ordering::Relaxed) == closed {
            futex::wait(gate, closed, None);
        }
        let reply = HeartbeatTable::create(&path, 64).and_then(|created| {
            let handle = table.insert(created).register(std::process::id())?;
            let id = table.as_ref().map(HeartbeatTable::creation_id);
            Ok(format!("{id:?} {}", handle.slot()))
        });
        roles::answer(&reply.map_err(Into::into));
    }
}

/// 25.
pub fn replaced_file_is_noticed(scene: &Scene) {
    let table = scene.table(4);
    let path = scene.table_path();
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let mut worker = scene.worker();
    worker.done("mark 2");
    assert_eq!(watchdog.scan().path_state, None);
    std::fs::remove_file(&path).expect("the table");
    let mut newcomer = Child::start("member", &[]);
    newcomer.done(&format!("create {} 4", path.display()));
    newcomer.done("register");
    assert_eq!(watchdog.scan().path_state, Some(PathState::Superseded));
    let text = worker.refused("beat", "Superseded");
    assert_names(&text, &[&path.display().to_string()]);
    worker.refused("register", "Superseded");
    // What it had begun it may finish.
    worker.done("complete 2");
    worker.done("unregister");
    worker.done(&format!("attach {}", path.display()));
    worker.done("register");
    worker.done("beat");
    newcomer.done("beat");
    let met = HeartbeatTable::attach(&path).expect("the new table");
    assert_eq!(met.iter_live().count(), 2, "both are in the new one");

    std::fs::remove_file(&path).expect("the new table");
    let watchdog = FailoverWatchdog::with_grace(&met, 3);
    assert_eq!(watchdog.scan().path_state, Some(PathState::Orphaned));
    worker.refused("beat", "Orphaned");
}

/// 45.
pub fn reset_of_a_live_table_cuts_the_old_one_off(scene: &Scene) {
    let old = scene.table(4);
    let mut worker = scene.worker();
    worker.done("mark 1 2");
    let path = scene.table_path();
    let new = HeartbeatTable::reset(&path, 4).expect("a new table");
    assert_ne!(new.creation_id(), old.creation_id());
    let file = TableFile::open(&path, 4);
    let before = file.bytes();
    // At once, without a watchdog's scan.
    worker.refused("beat", "Superseded");
    worker.refused("register", "Superseded");
    worker.done("mark 3");
    worker.done("complete 1");
    worker.done("unregister");
    assert!(file.bytes() == before, "something reached the new table");
    assert_eq!(new.iter_live().count(), 0);
    let watchdog = FailoverWatchdog::with_grace(&old, 3);
    let report = watchdog.scan();
    assert_eq!(report.path_state, Some(PathState::Superseded));
    let [(slot, _)] = report.dead_slots[..] else {
        panic!("{report:?}");
    };
    assert_eq!(slot.units, units(&[2, 3]), "drained in the old table");
    watchdog.clear_dead_bitmap(slot).expect("the first");
    worker.done(&format!("attach {}", path.display()));
    worker.done("register");
    assert_eq!(new.iter_live().count(), 1);
}
