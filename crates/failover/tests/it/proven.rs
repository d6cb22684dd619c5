//! Owners in other processes: what is proven of them is reported and their slots are used again; what
//! is not stays in quarantine, and says so. The same in both tiers, but for who proves it.

use std::collections::BTreeSet;

use bumpless_failover::{FailoverWatchdog, SlotRef, Verdict};
use bumpless_heartbeat::{Certificate, HeartbeatTable};
use bumpless_substrate::claim::Claim;
use bumpless_substrate::proof::{Evidence, Proof, ProofSource};

use crate::peer::{self, Peer, eventually};
use crate::scene::{Scene, only, units};

const IS_PORTABLE: bool = cfg!(bumpless_portable);
/// Beyond the kernel's range.
const NOBODYS_PID: u32 = 4_194_305;

/// Registers with these units in flight, and lives until it is killed.
fn own_a_slot(units: &[u8]) -> ! {
    let table = HeartbeatTable::attach(peer::path()).expect("a table");
    let handle = table.register(std::process::id()).expect("a free slot");
    for unit in units {
        table.mark_in_flight(handle, *unit).expect("our slot");
    }
    peer::say(handle.slot());
    peer::listen();
    peer::done()
}

fn start_owner<F: Fn()>(test: F, scene: &Scene) -> (Peer, usize) {
    let path = scene.path("table");
    let path = path.to_str().expect("a path in UTF-8");
    let mut owner = Peer::start(test, "owner", &[("path", path)]);
    let slot = owner.hear().parse().expect("a slot");
    (owner, slot)
}

/// Scans until the slot is reported with such a verdict; not for ever.
fn scan_until(watchdog: &FailoverWatchdog<'_>, wanted: fn(&SlotRef) -> bool) -> SlotRef {
    let mut found = None;
    eventually("the slot is reported", || {
        let report = watchdog.scan();
        let mut slots = report.dead_slots.iter().map(|(slot, _)| *slot);
        found = slots.find(wanted);
        found.is_some()
    });
    found.expect("found above")
}

#[test]
fn processes_that_register_at_once_get_slots_of_their_own() {
    const EACH: usize = 4;
    if peer::plays("one of many") {
        let table = HeartbeatTable::attach(peer::path()).expect("a table");
        peer::say("ready");
        while peer::listen().is_some() {
            let handles: Vec<_> = (0..EACH)
                .map(|_| table.register(std::process::id()).expect("a free slot"))
                .collect();
            let slots = handles.iter().map(|handle| handle.slot().to_string());
            peer::say(slots.collect::<Vec<_>>().join(" "));
            peer::listen();
            for handle in handles {
                table.beat(handle).expect("our slot");
                table.unregister(handle).expect("our slot");
            }
            peer::say("gone");
        }
        peer::done();
    }
    let scene = Scene::new();
    let table = scene.table(8 * EACH);
    let path = scene.path("table");
    let path = path.to_str().expect("a path in UTF-8");
    let test = processes_that_register_at_once_get_slots_of_their_own;
    let mut peers: Vec<Peer> = (0..8)
        .map(|_| Peer::start(test, "one of many", &[("path", path)]))
        .collect();
    for peer in &mut peers {
        assert_eq!(peer.hear(), "ready");
    }
    for round in 0..20 {
        peers.iter_mut().for_each(|peer| peer.tell("register"));
        let said: Vec<String> = peers.iter_mut().map(Peer::hear).collect();
        let slots: BTreeSet<&str> = said.iter().flat_map(|line| line.split(' ')).collect();
        assert_eq!(slots.len(), 8 * EACH, "round {round}: {said:?}");
        let shown: BTreeSet<u32> = table.occupancy().iter().collect();
        assert_eq!(shown.len(), 8 * EACH, "no owner is hidden from the scan");
        peers.iter_mut().for_each(|peer| peer.tell("unregister"));
        for peer in &mut peers {
            assert_eq!(peer.hear(), "gone");
        }
    }
}

#[test]
fn an_owner_that_ends_and_comes_back_to_a_contended_slot_is_never_hidden() {
    if peer::plays("coming and going") {
        let table = HeartbeatTable::attach(peer::path()).expect("a table");
        peer::say("ready");
        peer::listen();
        for _ in 0..2_000 {
            let Ok(handle) = table.register(std::process::id()) else {
                continue;
            };
            let is_shown = table
                .occupancy()
                .iter()
                .any(|slot| slot as usize == handle.slot());
            if !is_shown {
                peer::say("hidden");
                peer::done();
            }
            table.unregister(handle).expect("our slot");
        }
        peer::say("always shown");
        peer::done();
    }
    let scene = Scene::new();
    let _table = scene.table(1);
    let path = scene.path("table");
    let path = path.to_str().expect("a path in UTF-8");
    let test = an_owner_that_ends_and_comes_back_to_a_contended_slot_is_never_hidden;
    let mut peers: Vec<Peer> = (0..3)
        .map(|_| Peer::start(test, "coming and going", &[("path", path)]))
        .collect();
    for peer in &mut peers {
        assert_eq!(peer.hear(), "ready");
    }
    peers.iter_mut().for_each(|peer| peer.tell("go"));
    for peer in &mut peers {
        assert_eq!(peer.hear(), "always shown");
    }
}

#[test]
fn a_dead_owner_is_proven_gone_and_its_slot_is_used_again() {
    if peer::plays("owner") {
        own_a_slot(&[5]);
    }
    let scene = Scene::new();
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    assert!(watchdog.scan().is_empty());
    let test = a_dead_owner_is_proven_gone_and_its_slot_is_used_again;
    let (mut owner, slot) = start_owner(test, &scene);
    assert!(watchdog.scan().is_empty());
    let certificate = table.snapshot(slot).expect("an owner").certificate;
    owner.kill();
    owner.reap();
    let report = (0..5).map(|_| watchdog.scan()).find(|r| !r.is_empty());
    let dead = only(&report.expect("a report within five epochs"));
    let (armed, source) = if IS_PORTABLE {
        (Certificate::None, ProofSource::Pid)
    } else {
        (Certificate::Armed, ProofSource::Certificate)
    };
    let proof = Proof::Gone;
    assert_eq!(certificate, armed);
    assert_eq!(dead.verdict, Verdict::Died);
    assert_eq!(dead.evidence, Evidence { proof, source });
    assert_eq!((dead.slot as usize, dead.pid), (slot, owner.pid()));
    assert_eq!(dead.units, units(&[5]));

    let error = table.register(std::process::id()).unwrap_err().to_string();
    assert!(error.contains("1 units not acknowledged"), "{error}");
    watchdog.clear_dead_bitmap(dead).expect("ours to take");
    let next = table.register(std::process::id()).expect("a slot again");
    assert_eq!((next.slot(), next.generation()), (slot, 2));
}

/// A zombie: without a pidfd it cannot be told from a process that hangs.
#[cfg(bumpless_portable)]
#[test]
fn an_unreaped_owner_is_silent_and_keeps_its_slot_until_it_is_reaped() {
    if peer::plays("owner") {
        own_a_slot(&[5]);
    }
    let scene = Scene::new();
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    assert!(watchdog.scan().is_empty());
    let test = an_unreaped_owner_is_silent_and_keeps_its_slot_until_it_is_reaped;
    let (mut owner, slot) = start_owner(test, &scene);
    owner.kill();
    let silent = scan_until(&watchdog, |slot| slot.verdict != Verdict::Died);
    assert!(
        matches!(silent.verdict, Verdict::Silent { .. }),
        "{silent:?}"
    );
    assert_eq!(silent.evidence, Evidence::UNKNOWN);
    assert_eq!(silent.units, units(&[5]));
    watchdog.clear_dead_bitmap(silent).expect("ours to take");
    let error = table.register(std::process::id()).unwrap_err().to_string();
    let pid = format!("slot {slot}: pid {}", owner.pid());
    assert!(error.contains(&pid), "{error}");

    owner.reap();
    let dead = scan_until(&watchdog, |slot| slot.verdict == Verdict::Died);
    assert_eq!(dead.evidence.source, ProofSource::Pid);
    assert_eq!((dead.units.len(), dead.deaths), (0, 1));
    let next = table.register(std::process::id()).expect("a slot again");
    assert_eq!((next.slot(), next.generation()), (slot, 2));
}

#[test]
fn a_claimer_that_died_is_gone_where_slots_have_locks_and_else_in_transition_for_ever() {
    let scene = Scene::new();
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    assert!(watchdog.scan().is_empty());
    table.occupancy().set(1);
    let claimer = table.cells(1).expect("a slot").slot;
    claimer
        .claim(Claim::FREE, NOBODYS_PID)
        .expect("a free slot");
    if IS_PORTABLE {
        let suspects: Vec<SlotRef> = (0..20).flat_map(|_| watchdog.scan().suspects).collect();
        let verdict = Verdict::InTransition { pid: NOBODYS_PID };
        assert!(suspects.len() > 10, "said again and again: {suspects:?}");
        for suspect in suspects {
            assert_eq!((suspect.slot, suspect.verdict), (1, verdict));
            assert_eq!(suspect.evidence, Evidence::UNKNOWN);
        }
        let error = table.register(std::process::id()).unwrap_err().to_string();
        assert!(
            error.contains(&format!("slot 1: pid {NOBODYS_PID}")),
            "{error}"
        );
    } else {
        let dead = scan_until(&watchdog, |slot| slot.verdict == Verdict::Died);
        assert_eq!(dead.evidence.source, ProofSource::ByteLock);
        let next = table.register(std::process::id()).expect("a slot again");
        assert_eq!((next.slot(), next.generation()), (1, 2));
    }
}

#[test]
fn of_two_recyclers_one_gets_the_slot_and_the_death_is_counted_once() {
    const ROUNDS: usize = 10;
    if peer::plays("owner") {
        own_a_slot(&[]);
    }
    if peer::plays("recycler") {
        let table = HeartbeatTable::attach(peer::path()).expect("a table");
        peer::say("ready");
        while peer::listen().is_some() {
            let taken = table.register(std::process::id());
            peer::say(taken.is_ok());
            peer::listen();
            if let Ok(handle) = taken {
                table.unregister(handle).expect("our slot");
            }
            peer::say("given back");
        }
        peer::done();
    }
    let scene = Scene::new();
    let table = scene.table(2);
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    assert!(watchdog.scan().is_empty());
    let test = of_two_recyclers_one_gets_the_slot_and_the_death_is_counted_once;
    let path = scene.path("table");
    let path = path.to_str().expect("a path in UTF-8");
    let mut recyclers: Vec<Peer> = (0..2)
        .map(|_| Peer::start(test, "recycler", &[("path", path)]))
        .collect();
    for recycler in &mut recyclers {
        assert_eq!(recycler.hear(), "ready");
    }
    for round in 0..ROUNDS {
        let (mut owner, slot) = start_owner(test, &scene);
        owner.kill();
        owner.reap();
        recyclers.iter_mut().for_each(|r| r.tell("register"));
        let taken: Vec<String> = recyclers.iter_mut().map(Peer::hear).collect();
        let owners = taken.iter().filter(|taken| *taken == "true").count();
        assert_eq!(owners, 1, "round {round}");
        recyclers.iter_mut().for_each(|r| r.tell("unregister"));
        for recycler in &mut recyclers {
            assert_eq!(recycler.hear(), "given back");
        }
        let deaths = table.cells(slot).expect("a slot").verdict.deaths();
        assert_eq!(deaths.waiting() as usize, round + 1, "{deaths:?}");
    }
}
