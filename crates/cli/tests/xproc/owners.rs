//! Owners whose process does something unusual: reopens files, executes another program, dumps core,
//! lives on without its first thread.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use bumpless_failover::{FailoverWatchdog, ReclaimReport, SlotRef, Verdict};
use bumpless_heartbeat::{Certificate, HeartbeatTable, UnitSet};
use bumpless_substrate::locks::LockState;
use bumpless_substrate::proof::{Proof, ProofSource};
use rustix::process::{Resource, Rlimit};

use crate::child::{Child, await_until};
use crate::death::{assert_acknowledged, scan_until_reported, units};
use crate::roles;
use crate::scene::Scene;

const GRACE_EPOCHS: u64 = 3;

/// How long a process of a few hundred mebibytes may take to end, on a busy machine.
const END_LIMIT: Duration = Duration::from_secs(300);

/// 14.
pub fn executing_another_program_is_a_death(scene: &Scene) {
    // For the watchdog, the worker, and the worker's next program.
    let table = scene.table(3);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let mut worker = scene.worker();
    worker.done("mark 2 5");
    assert!(watchdog.scan().is_empty());
    // The new program answers: same process, same pipes.
    worker.done("exec");
    worker.done(&format!("attach {}", scene.table_path().display()));
    let new_slot = registered_slot(&worker.done("register"));
    worker.done("mark 5");
    let (dead, scans) = scan_until_reported(&watchdog, worker.pid());
    assert_eq!((dead.verdict, scans), (Verdict::Died, 1));
    assert_eq!(dead.units, units(&[2, 5]));
    assert_ne!(dead.slot, new_slot, "the same pid, and another owner");
    let taken = watchdog.clear_dead_bitmap(dead).expect("the first");
    assert_eq!((taken.units, taken.deaths), (units(&[2, 5]), 1));
    worker.done("beat");
    assert!(watchdog.scan().is_empty(), "the new program lives");
    let heir = registered_slot(&scene.member().done("register"));
    assert_eq!(heir, dead.slot, "the old program's slot is reused");
    worker.done("complete 5");
    worker.done("unregister");
}

/// This program again, in the same process, as a member that answers at once.
pub fn execute_anew() -> std::io::Error {
    let program = std::env::current_exe().expect("the path of this program");
    Command::new(program)
        .args([roles::ROLE_ARGUMENT, "executed member"])
        .exec()
}

/// 16.
pub fn opening_and_closing_the_files_again_is_no_death(scene: &Scene) {
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let mut worker = scene.member();
    let slot = registered_slot(&attach_and_register(&mut worker, &scene.table_path()));
    worker.done("mark 3");
    assert!(watchdog.scan().is_empty());
    let path = scene.table_path().display().to_string();
    for _ in 0..10 {
        assert_eq!(
            worker.done(&format!("reopen {path} 200")),
            "table, table.lock"
        );
        assert_eq!(table.lock_state(slot).ok(), Some(LockState::Held));
        let snapshot = table.snapshot(slot).expect("an owner");
        assert_eq!(snapshot.certificate, Certificate::Armed);
        worker.done("beat");
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
        scene.member().refused("register", "TableFull");
    }
    worker.done("complete 3");
    worker.done("unregister");
}

/// Opens and closes each file beside the table, and the table itself through the library; the files'
/// names.
pub fn reopen(path: &str, times: usize) -> Result<String, roles::Refusal> {
    let folder = Path::new(path).parent().expect("a folder");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        for _ in 0..times {
            File::options().read(true).write(true).open(entry.path())?;
        }
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    for _ in 0..times {
        HeartbeatTable::attach(path)?;
        HeartbeatTable::open_read_only(path)?;
    }
    names.sort();
    Ok(names.join(", "))
}

/// 34.
pub fn a_core_dump_delays_the_death_and_doubles_nothing(scene: &Scene) {
    const MEBIBYTES: u64 = 256;
    let table = scene.table(64);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    let mut worker = scene.worker();
    worker.done("mark 0 63 127");
    assert!(watchdog.scan().is_empty());
    let folder = scene.path("core");
    std::fs::create_dir(&folder).expect("a folder");
    worker.done(&format!("dump-core {} {MEBIBYTES}", folder.display()));
    let aborted = Instant::now();
    let mut silent: Option<SlotRef> = None;
    let mut acknowledged = UnitSet::EMPTY;
    let mut report = ReclaimReport::default();
    let mut names = None;
    await_until(END_LIMIT, "the death of who dumps core", || {
        watchdog.scan_into(&mut report);
        let reported = report.dead_slots.first();
        let Some((slot, _)) = reported.filter(|(slot, _)| slot.pid == worker.pid()) else {
            return false;
        };
        let left: Vec<String> = slot
            .units
            .iter()
            .map(|u| slot.unit_name(u).to_string())
            .collect();
        let first_names = names.get_or_insert_with(|| left.clone());
        assert!(left.iter().all(|name| first_names.contains(name)), "{slot}");
        let taken = match slot.verdict {
            Verdict::Silent { .. } if silent.is_none() => {
                silent = Some(*slot);
                // One unit; the others are reported again, by then perhaps as a dead one's.
                let unit = slot.units.iter().next().expect("a unit");
                watchdog.acknowledge_unit(*slot, unit)
            }
            Verdict::Died => watchdog.clear_dead_bitmap(*slot),
            _ => return false,
        };
        let taken = taken.expect("the first");
        assert!(
            taken.units.iter().all(|unit| !acknowledged.contains(unit)),
            "{slot}: twice"
        );
        acknowledged = acknowledged.iter().chain(taken.units.iter()).collect();
        if slot.verdict != Verdict::Died {
            return false;
        }
        assert_eq!(taken.deaths, 1);
        let silent_generation = silent.map_or(slot.generation, |silent| silent.generation);
        assert_eq!(slot.generation, silent_generation);
        true
    });
    let died = aborted.elapsed();
    assert_eq!(acknowledged, units(&[0, 63, 127]));
    worker.await_ended();
    let cores = std::fs::read_dir(&folder).expect("the folder");
    let lengths = cores.map(|core| core.expect("a file").metadata().expect("a length").len());
    let mebibytes = lengths.sum::<u64>() >> 20;
    assert!(mebibytes >= MEBIBYTES, "a core of {mebibytes} MiB");
    let report = watchdog.scan();
    assert!(report.is_empty(), "{report:?}");
    let first = silent.map_or("died at once".to_owned(), |silent| {
        silent.verdict.to_string()
    });
    scene.note(&format!(
        "core of {mebibytes} MiB: first {first}, died after {} ms",
        died.as_millis()
    ));
}

/// Why a core dump does not become a file in the process's folder.
pub fn missing() -> Option<String> {
    let path = "/proc/sys/kernel/core_pattern";
    let pattern = std::fs::read_to_string(path).unwrap_or_default();
    let limit = rustix::process::getrlimit(Resource::Core).maximum;
    if pattern.trim().is_empty() || pattern.starts_with(['|', '/', '@']) {
        Some(format!("core dumps go to `{}`", pattern.trim()))
    } else {
        limit.map(|limit| format!("core dumps are limited to {limit} bytes"))
    }
}

/// Touches so much memory, answers, and aborts with a core dump in `folder`.
pub fn dump_core(folder: &str, mebibytes: usize) -> Result<String, roles::Refusal> {
    std::env::set_current_dir(folder)?;
    let unlimited = Rlimit {
        current: None,
        maximum: None,
    };
    rustix::process::setrlimit(Resource::Core, unlimited)?;
    let memory = vec![1_u8; mebibytes << 20];
    std::hint::black_box(&memory);
    roles::answer(&Ok(String::new()));
    std::process::abort()
}

/// 35.
pub fn a_process_lives_on_without_its_first_thread(scene: &Scene) {
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, GRACE_EPOCHS);
    assert!(watchdog.scan().is_empty());
    let mut worker = scene.worker();
    worker.done("mark 9");
    worker.done("end-first-thread");
    await_until(END_LIMIT, "the end of the first thread", || {
        worker.state_letter() == 'Z'
    });
    assert_lives(&table, &watchdog, &mut worker);
    worker.done("complete 9");
    worker.done("unregister");
    // Who it is, it now has to find out without its first thread.
    worker.done("register");
    assert_lives(&table, &watchdog, &mut worker);
    worker.done("mark 10");
    worker.kill();
    let (slot, scans) = scan_until_reported(&watchdog, worker.pid());
    assert_eq!((slot.verdict, scans), (Verdict::Died, 1));
    let taken = watchdog.clear_dead_bitmap(slot).expect("the first");
    assert_eq!(taken.units, units(&[10]));
    assert_acknowledged(&watchdog, slot);
}

fn assert_lives(table: &HeartbeatTable, watchdog: &FailoverWatchdog<'_>, worker: &mut Child) {
    let (slot, _) = table
        .iter_live()
        .find(|(_, snapshot)| snapshot.pid == worker.pid())
        .expect("its slot");
    let claim = table.cells(slot).expect("a slot").slot.claimed_by();
    let evidence = table.examine(slot, claim);
    assert_eq!(
        (evidence.proof, evidence.source),
        (Proof::Alive, ProofSource::Pid)
    );
    for _ in 0..20 {
        worker.done("beat");
        let report = watchdog.scan();
        assert!(report.is_empty(), "{report:?}");
    }
}

/// The slot in the answer to `register`.
pub fn registered_slot(answer: &str) -> u32 {
    let slot = answer.split(' ').next().map_or(0, roles::number);
    u32::try_from(slot).expect("a slot")
}

/// The answer to `register`.
pub fn attach_and_register(member: &mut Child, table: &Path) -> String {
    member.done(&format!("attach {}", table.display()));
    member.done("register")
}
