//! Damage and clocks: what no peer can do, whatever it writes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bumpless_failover::{FailoverWatchdog, ReclaimReport};
use bumpless_heartbeat::{Handle, HeartbeatTable, Label, Profile, SlotRole};
use bumpless_substrate::claim::{Claim, ClaimState};
use rustix::time::{ClockId, clock_gettime};

use crate::child::Child;
use crate::layout::{PREAMBLE_LEN, TableFile};
use crate::roles;
use crate::scene::Scene;
use crate::tally::mixed;

const SLOTS: usize = 32;

/// The longest that a call may compute, a hundred times what the slowest one does; a call that hangs computes
/// for ever.
const CALL_LIMIT: Duration = Duration::from_millis(10);

/// How often all calls are made on the same damage, at most, to find what they compute.
const TRIES: u32 = 10;

/// 28. In a child, which an access outside of its mapping would kill.
pub fn random_bytes_harm_no_call(scene: &Scene) {
    const SEEDS: usize = 200;
    let arguments = [scene.path("damaged").into(), SEEDS.to_string().into()];
    let mut child = Child::start("damaged", &arguments);
    let slowest = child.done("go");
    let [ref call, ref micros] = slowest.split(' ').map(str::to_owned).collect::<Vec<_>>()[..]
    else {
        panic!("{slowest}");
    };
    let slowest = Duration::from_micros(roles::number(micros) as u64);
    assert!(slowest < CALL_LIMIT, "{call} took {slowest:?}");
    scene.note(&format!("at most {slowest:?} in {call}"));
}

/// Fills tables with bytes of all sorts and makes every call. Answers with the slowest call and its
/// time on the processor, in microseconds.
pub fn damaged(arguments: &[String]) {
    let path = Path::new(&arguments[0]);
    let mut commands = roles::commands();
    let _ = commands.next(None);
    let mut slowest = (Duration::ZERO, "none");
    for seed in 0..roles::number(&arguments[1]) as u64 {
        // A call that computes for ever does so each time; what the machine takes away, also from below a
        // virtual one, it does not.
        let mut quickest = with_damage(path, seed);
        for _ in 1..TRIES {
            if quickest.0 >= CALL_LIMIT {
                quickest = quickest.min(with_damage(path, seed));
            }
        }
        slowest = slowest.max(quickest);
    }
    roles::answer(&Ok(format!("{} {}", slowest.1, slowest.0.as_micros())));
    let _ = commands.next(None);
}

/// Makes every call on a table that was damaged in the way of `seed`; the slowest.
fn with_damage(path: &Path, seed: u64) -> Slowest {
    let mut slowest = (Duration::ZERO, "none");
    let table = HeartbeatTable::create(path, SLOTS).expect("a table");
    let us = std::process::id();
    let handles: Vec<Handle> = (0..4).map(|_| table.register(us).expect("free")).collect();
    let watchdog = FailoverWatchdog::with_grace(&table, 1);
    let mut report = watchdog.scan();
    let file = TableFile::open(path, SLOTS as u64);
    let before = file.bytes();
    file.set_bytes(PREAMBLE_LEN, &damage(seed, &before));
    for round in 0..3 {
        every_call(
            &table,
            &watchdog,
            &handles,
            &mut report,
            round,
            &mut slowest,
        );
    }
    let observer = HeartbeatTable::open_read_only(path).expect("the preamble is whole");
    every_look(&observer, &mut slowest);
    let after = file.bytes();
    let preamble = ..PREAMBLE_LEN as usize;
    assert_eq!(
        (after.len(), &after[preamble]),
        (before.len(), &before[preamble])
    );
    drop(watchdog);
    drop(table);
    std::fs::remove_file(path).expect("the table");
    slowest
}

/// What lies behind the preamble from now on: all bits set or clear, noise, or noise with claims that
/// look like owners.
fn damage(seed: u64, before: &[u8]) -> Vec<u8> {
    let len = before.len() - PREAMBLE_LEN as usize;
    let mut bytes: Vec<u8> = match seed % 4 {
        0 if seed.is_multiple_of(8) => vec![0xff; len],
        0 => vec![0; len],
        _ => (0..len as u64)
            .map(|at| mixed(seed << 32 | at) as u8)
            .collect(),
    };
    if seed % 4 == 3 {
        for slot in 0..SLOTS as u64 {
            let noise = mixed(seed << 40 | slot);
            let states = [ClaimState::Claiming, ClaimState::Live, ClaimState::Released];
            let state = states[noise as usize % 3];
            let generation = (noise >> 8) as u32 & 0xff;
            let claim = Claim::new((noise >> 32) as u32 & 0x7fff, generation, state);
            let at = (384 - PREAMBLE_LEN + 64 * slot) as usize;
            bytes[at..at + 8].copy_from_slice(&claim.bits().to_ne_bytes());
            for word in 0..4 {
                let work = u64::from(generation) << 32 | noise << (word * 8) & 0xffff_ffff;
                let at = at + 16 + 8 * word;
                bytes[at..at + 8].copy_from_slice(&work.to_ne_bytes());
            }
        }
    }
    bytes
}

type Slowest = (Duration, &'static str);

/// One call, timed on the processor: waiting for it is no fault of the call.
fn timed<T>(slowest: &mut Slowest, name: &'static str, call: impl FnOnce() -> T) -> T {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time");
    let start = now();
    let result = call();
    *slowest = (*slowest).max((now() - start, name));
    result
}

fn every_call(
    table: &HeartbeatTable,
    watchdog: &FailoverWatchdog<'_>,
    handles: &[Handle],
    report: &mut ReclaimReport,
    round: usize,
    slowest: &mut Slowest,
) {
    let us = std::process::id();
    let profile = Profile {
        grace_epochs: 5,
        role: SlotRole::Coordinator,
        label: Label::new("after the damage").expect("a label"),
    };
    // Results are not looked at: errors are as right as successes here.
    for handle in handles {
        let handle = *handle;
        let _ = timed(slowest, "beat", || table.beat(handle));
        for unit in [0_u8, 31, 32, 127] {
            let _ = timed(slowest, "mark", || table.mark_in_flight(handle, unit));
            let _ = timed(slowest, "complete", || table.clear_in_flight(handle, unit));
        }
        let _ = timed(slowest, "set_role", || {
            table.set_role(handle, SlotRole::Worker)
        });
        let _ = timed(slowest, "set_grace", || table.set_grace(handle, 1));
        let _ = timed(slowest, "set_label", || {
            table.set_label(handle, profile.label)
        });
    }
    every_look(table, slowest);
    let _ = timed(slowest, "tick", || table.tick_global_epoch());
    let _ = timed(slowest, "check_path", || table.check_path());
    timed(slowest, "scan", || watchdog.scan_into(report));
    for (slot, _) in &report.dead_slots {
        let _ = slot.to_string();
        if let Some(unit) = slot.units.iter().next() {
            let _ = timed(slowest, "acknowledge_unit", || {
                watchdog.acknowledge_unit(*slot, unit)
            });
        }
        let _ = timed(slowest, "clear_dead_bitmap", || {
            watchdog.clear_dead_bitmap(*slot)
        });
    }
    let registered = timed(slowest, "register", || table.register_as(us, profile));
    if let Err(error) = &registered {
        let _ = error.to_string();
    }
    if let Ok(handle) = registered {
        let _ = timed(slowest, "unregister", || table.unregister(handle));
    }
    if round == 2 {
        for handle in handles {
            let _ = timed(slowest, "unregister", || table.unregister(*handle));
        }
    }
}

fn every_look(table: &HeartbeatTable, slowest: &mut Slowest) {
    for slot in 0..=SLOTS {
        timed(slowest, "observe", || {
            drop(format!("{:?}", table.observe(slot)))
        });
        timed(slowest, "identity", || {
            drop(format!("{:?}", table.identity(slot)))
        });
        if let Some(cells) = table.cells(slot) {
            let claim = cells.slot.peek_claim();
            let _ = timed(slowest, "examine", || table.examine(slot, claim));
            let _ = timed(slowest, "lock_state", || table.lock_state(slot as u32));
        }
    }
    let _ = timed(slowest, "iter_live", || table.iter_live().count());
    let _ = timed(slowest, "find_by_label", || table.find_by_label("nobody"));
    let _ = timed(slowest, "global_epoch", || table.global_epoch());
}

/// 29.
// Checked in the sources: no layer below the tool's reads a clock that can be set, so stepping one can
// change nothing. (Stepping it here would step it for the whole machine.)
pub fn no_source_reads_the_wall_clock(_scene: &Scene) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for name in ["substrate", "heartbeat", "failover"] {
        collect(&crates.join(name).join("src"), &mut sources);
    }
    let mut reads_monotonic = 0;
    for path in &sources {
        let text = std::fs::read_to_string(path).expect("a source");
        for clock in [
            "SystemTime",
            "UNIX_EPOCH",
            "Realtime",
            "REALTIME",
            "gettimeofday",
            "ClockId::Tai",
        ] {
            assert!(!text.contains(clock), "{} names {clock}", path.display());
        }
        reads_monotonic += usize::from(text.contains("ClockId::Monotonic"));
    }
    assert!(sources.len() > 30 && reads_monotonic > 0, "{sources:?}");
}

fn collect(folder: &Path, sources: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(path);
        }
    }
}
