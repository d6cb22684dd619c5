//! Owners that come and go as fast as they can, beside a watchdog that scans as fast as it can.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bumpless_failover::{FailoverWatchdog, OnSilence, ReclaimReport, SlotRef, Verdict};
use bumpless_heartbeat::{
    Handle, HeartbeatError, HeartbeatTable, Label, Observed, Profile, SlotRole, UnitSet,
};

use crate::child::{Answer, Child};
use crate::lines::Next;
use crate::roles;
use crate::scene::{Scene, table_state};
use crate::tally::{Tally, mixed};

/// Nobody is late here: who comes and goes this fast is not asked to beat.
const ENDLESS_GRACE_EPOCHS: u64 = 1 << 40;

/// 32.
pub fn snapshots_of_a_churning_table_are_never_torn(scene: &Scene) {
    const CHURNERS: u32 = 2;
    const CYCLES_MIN: u32 = 1_000_000;
    /// Where the churners would be done before, they go on.
    const LOOKS_MIN: u64 = 10_000;
    let table = scene.table(64);
    // A churner's own grace may be a few of these scans, for which the machine lets it wait.
    let watchdog = FailoverWatchdog::with_grace(&table, ENDLESS_GRACE_EPOCHS)
        .on_silence(OnSilence::ReportOnly);
    let mut report = ReclaimReport::default();
    watchdog.scan_into(&mut report);
    let arguments = [
        scene.table_path().into(),
        (CYCLES_MIN / CHURNERS).to_string().into(),
    ];
    let mut churners: Vec<Child> = (0..CHURNERS)
        .map(|_| Child::start("churner", &arguments))
        .collect();
    let pids: Vec<u32> = churners.iter().map(Child::pid).collect();
    // By slot: generation and epoch of the last look, of which neither may fall.
    let mut last: HashMap<usize, (u32, u64)> = HashMap::new();
    let (mut looks, mut is_enough) = (0_u64, false);
    let mut cycles = Vec::new();
    while cycles.len() < churners.len() {
        watchdog.scan_into(&mut report);
        // Who was made to wait between its own fence and its release is fenced, and has nothing to hand back.
        let fenced = report.dead_slots.iter().map(|(slot, _)| slot);
        let mut told = fenced.chain(&report.suspects);
        assert!(told.all(is_late_by_its_own_grace), "{report:?}");
        for slot in 0..table.capacity() {
            match table.observe(slot) {
                Observed::Vacant => {}
                Observed::InTransition { pid } => assert!(pids.contains(&pid), "pid {pid}"),
                Observed::Consistent(seen) if seen.role == SlotRole::Watchdog => {
                    assert_eq!(seen.pid, std::process::id());
                }
                Observed::Consistent(seen) => {
                    looks += 1;
                    assert!(pids.contains(&seen.pid), "{seen:?}");
                    let profile = profile_of(seen.pid);
                    assert_eq!(
                        (seen.role, seen.grace_epochs),
                        (profile.role, profile.grace_epochs)
                    );
                    assert!(seen.in_flight_bitmap.is_empty(), "{seen:?}");
                    let mut lowest = last.insert(slot, (seen.generation, seen.last_seen_epoch));
                    if let Some(owner) = table.identity(slot)
                        && owner.generation == seen.generation
                    {
                        let registered = owner.registration;
                        assert_eq!(registered.profile.label, profile.label, "{seen:?}");
                        lowest = lowest.max(Some((seen.generation, registered.epoch)));
                    }
                    let found = (seen.generation, seen.last_seen_epoch);
                    assert!(Some(found) >= lowest, "{found:?} after {lowest:?}");
                    assert!(seen.last_seen_epoch <= table.global_epoch());
                }
            }
        }
        if looks >= LOOKS_MIN && !is_enough {
            churners
                .iter_mut()
                .for_each(|churner| churner.tell("enough"));
            is_enough = true;
        }
        for churner in &mut churners {
            match churner.answer_so_far() {
                Some(Answer::Done(count)) => cycles.push(roles::number(&count) as u64),
                Some(refused) => panic!("{refused:?}"),
                None => {}
            }
        }
    }
    let cycles: u64 = cycles.iter().sum();
    assert!(cycles >= u64::from(CYCLES_MIN), "only {cycles} cycles");
    let generations: u64 = (0..table.capacity())
        .filter_map(|slot| table.cells(slot))
        .map(|cells| u64::from(cells.slot.peek_claim().generation()))
        .sum();
    assert_eq!(generations, cycles + 1, "and the watchdog's own");
}

/// What a churner says of itself: everything follows from its pid.
fn profile_of(pid: u32) -> Profile {
    let mixed = mixed(u64::from(pid)) as u32;
    Profile {
        role: SlotRole::Other(0x100 | mixed as u16),
        grace_epochs: (mixed >> 16) as u16,
        label: Label::new(&format!("churner {pid}")).unwrap_or_default(),
    }
}

/// Nothing else is to be said of a churner that the machine lets wait, but that it waits half way in or out.
fn is_late_by_its_own_grace(suspect: &SlotRef) -> bool {
    match suspect.verdict {
        Verdict::Silent {
            lag_epochs,
            grace_epochs,
        } => {
            let own = u64::from(profile_of(suspect.pid).grace_epochs);
            grace_epochs == own && lag_epochs > own && suspect.units.is_empty()
        }
        Verdict::InTransition { pid } => pid == suspect.pid,
        _ => false,
    }
}

/// Registers and unregisters, at least so often, and until it is told that this is enough. Answers how often.
pub fn churner(arguments: &[String]) {
    let table = HeartbeatTable::attach(&arguments[0]).expect("the table");
    let pid = std::process::id();
    let profile = profile_of(pid);
    let mut commands = roles::commands();
    let cycles_min = roles::number(&arguments[1]);
    let (mut cycles, mut is_enough) = (0, false);
    while cycles < cycles_min || !is_enough {
        let handle = table.register_as(pid, profile).expect("a free slot");
        table.beat(handle).expect("our slot");
        table.unregister(handle).expect("our slot");
        cycles += 1;
        if cycles % 1_024 == 0 {
            is_enough |= commands.next(Some(Duration::ZERO)) != Next::Quiet;
        }
    }
    roles::answer(&Ok(cycles.to_string()));
    let _ = commands.next(None);
}

/// Each so many rounds of 38 the three meet, whatever the machine lets run beside what.
const MEETS_EACH: u64 = 32;
/// So often at least; where a meeting takes long, on a busy machine, no more often than time is.
const MEETINGS_MIN: u64 = 100;
const MEETINGS_TIME: Duration = Duration::from_secs(60);

/// 38.
pub fn mark_beside_unregister_never_reaches_the_next_owner(scene: &Scene) {
    const ROUNDS: u64 = 100_000;
    // For the watchdog, and one for all others.
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, ENDLESS_GRACE_EPOCHS);
    let mut report = ReclaimReport::default();
    watchdog.scan_into(&mut report);
    let arguments = [scene.table_path().into(), ROUNDS.to_string().into()];
    let mut owner = Child::start("two-threaded owner", &arguments);
    let mut heir = Child::start("heir", &arguments[..1]);
    let mut acknowledged = Tally::default();
    let mut lost = None;
    loop {
        watchdog.scan_into(&mut report);
        for (slot, _) in &report.dead_slots {
            assert_eq!((slot.verdict, slot.pid), (Verdict::Released, owner.pid()));
            let taken = watchdog.clear_dead_bitmap(*slot).expect("the first");
            acknowledged.add(slot.slot, slot.generation, taken.units);
        }
        if lost.is_some() && report.is_empty() {
            break;
        }
        lost = lost.or_else(|| owner.answer_so_far());
        std::thread::yield_now();
    }
    assert_eq!(lost, Some(acknowledged.as_answer()));
    assert!(acknowledged.count() >= MEETINGS_MIN, "{acknowledged:?}");
    let Answer::Done(turns) = heir.ask("stop") else {
        panic!("{}", table_state());
    };
    assert!(
        roles::number(&turns) as u64 >= MEETINGS_MIN,
        "only {turns} turns"
    );
}

/// One thread registers and unregisters, the other marks units with whatever handle it finds. Answers
/// with the tally of the units marked, none of which is ever completed. Where they meet, the slot is left only
/// once a unit was marked, and taken again only once the heir has had it.
pub fn two_threaded_owner(arguments: &[String]) {
    let table = HeartbeatTable::attach(&arguments[0]).expect("the table");
    let current: Mutex<Option<Handle>> = Mutex::new(None);
    let ended = AtomicBool::new(false);
    // The generation that last had a unit marked.
    let marked_in = AtomicU32::new(0);
    let marked = std::thread::scope(|scope| {
        let marker = scope.spawn(|| {
            let mut marked = Tally::default();
            // Relaxed: a flag on its own.
            while !ended.load(Ordering::Relaxed) {
                let handle = *current.lock().expect("no panic");
                match handle {
                    Some(handle) => mark_until_refused(&table, handle, &marked_in, &mut marked),
                    // Who spins here keeps the lock from the other one.
                    None => std::thread::yield_now(),
                }
            }
            marked
        });
        let began = Instant::now();
        for round in 0..roles::number(&arguments[1]) as u64 {
            let meets = round % MEETS_EACH == 0;
            if round / MEETS_EACH >= MEETINGS_MIN && began.elapsed() > MEETINGS_TIME {
                break;
            }
            let handle = roles::register_when_free(&table);
            *current.lock().expect("no panic") = Some(handle);
            // Relaxed: a count on its own.
            while meets && marked_in.load(Ordering::Relaxed) != handle.generation() {
                std::thread::yield_now();
            }
            for _ in 0..mixed(round) % 1_024 {
                std::hint::spin_loop();
            }
            // The marker keeps its copy, and goes on marking.
            *current.lock().expect("no panic") = None;
            table.unregister(handle).expect("our slot");
            let slot = table.cells(handle.slot()).expect("it was ours").slot;
            while meets && slot.peek_claim().generation() == handle.generation() {
                std::thread::yield_now();
            }
        }
        // Relaxed: as above.
        ended.store(true, Ordering::Relaxed);
        marker.join().expect("no panic")
    });
    roles::answer(&Ok(marked.to_string()));
    let _ = roles::commands().next(None);
}

fn mark_until_refused(
    table: &HeartbeatTable,
    handle: Handle,
    marked_in: &AtomicU32,
    marked: &mut Tally,
) {
    let (slot, generation) = (handle.slot() as u32, handle.generation());
    for bit in (0..128).cycle() {
        match table.mark_in_flight(handle, bit) {
            Ok(()) => {
                marked.add(slot, generation, UnitSet::from_bits(1 << bit));
                // Relaxed: a count on its own.
                marked_in.store(generation, Ordering::Relaxed);
            }
            Err(HeartbeatError::AlreadyMarked { .. }) => {}
            Err(HeartbeatError::StaleHandle { .. } | HeartbeatError::Fenced { .. }) => return,
            Err(other) => panic!("{other}"),
        }
    }
}

/// Takes the slot whenever it is free, and finds it untouched for as long as it has it. Answers with
/// the number of its turns.
pub fn heir(arguments: &[String]) {
    let table = HeartbeatTable::attach(&arguments[0]).expect("the table");
    let mut commands = roles::commands();
    let mut turns = 0;
    while commands.next(Some(Duration::ZERO)) == Next::Quiet {
        let Ok(handle) = table.register(std::process::id()) else {
            std::thread::yield_now();
            continue;
        };
        for look in 0..20 {
            let seen = table.snapshot(handle).expect("our slot");
            let is_ours = seen.in_flight_bitmap.is_empty() && !seen.is_fenced;
            assert!(
                is_ours && seen.generation == handle.generation(),
                "{seen:?}"
            );
            table.beat(handle).expect("our slot");
            table.mark_in_flight(handle, look).expect("our slot");
            table.clear_in_flight(handle, look).expect("our slot");
        }
        table.unregister(handle).expect("our slot");
        turns += 1;
    }
    roles::answer(&Ok(turns.to_string()));
}
