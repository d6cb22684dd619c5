//! The kernel's certificate: a mark is read for the owner that it was made of, and for nobody else.

use std::sync::Arc;

use bumpless_failover::Verdict;
use bumpless_failover::judge::{Mode, Scan};
use bumpless_heartbeat::slot::SlotError;
use bumpless_substrate::claim::Claim;
use bumpless_substrate::layout::Shared;
use bumpless_substrate::proof::ProofSource;
use bumpless_substrate::sync::{AtomicU64, Ordering};
use loom::thread;

use crate::cells::{B, Cells, Owners, first_epoch, unit, units};
use crate::seeing::check_seeing;
use crate::world::{World, scan};

const HIGH: u32 = 40;

/// `FUTEX_OWNER_DIED` and `FUTEX_WAITERS`, of `linux/futex.h`.
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;
const TID: u32 = 77;

fn arm(cells: &Cells) {
    // Relaxed: published by LIVE, as the certificate of the keeper thread is.
    cells
        .slot
        .keeper_word()
        .store(TID | WAITERS, Ordering::Relaxed);
}

/// What the kernel does when the keeper thread ends: a compare-and-swap, which is a full barrier.
fn mark(cells: &Cells) {
    let word = cells.slot.keeper_word();
    // AcqRel: the owner's stores before the mark; pairs with the acquire fence behind its load.
    word.compare_exchange(
        TID | WAITERS,
        OWNER_DIED | WAITERS,
        Ordering::AcqRel,
        Ordering::Relaxed,
    )
    .expect("armed");
}

/// The dead owner's mark is still in the slot while somebody recycles it; the watchdog must not take
/// the new owner for dead.
#[test]
fn the_mark_of_a_former_owner_is_never_read_for_the_present_one() {
    let wanted = ["the dead one", "nobody"];
    check_seeing("certificate, recycled slot", 2, &wanted, |outcomes| {
        let (world, dead) = World::owned(&[]);
        let mut watchdog = world.watchdog();
        arm(&world.cells);
        mark(&world.cells);
        let watchdog = thread::spawn(move || {
            let deaths_only = Scan {
                mode: Mode::DeathsOnly,
                ..scan(first_epoch(1))
            };
            watchdog.judge(&deaths_only).1
        });
        let next = register_armed(&world.cells, dead);
        let finding = watchdog.join().unwrap();
        let slot = &world.cells.slot;
        slot.mark(next, unit(HIGH))
            .expect("fenced by its predecessor's mark");
        slot.beat(next, first_epoch(2) + 1)
            .expect("fenced by its predecessor's mark");
        assert_eq!(
            world.cells.verdict.deaths().waiting(),
            1,
            "one death, told once"
        );
        match finding {
            Some(finding) => {
                assert_eq!((finding.claim, finding.verdict), (dead, Verdict::Died));
                outcomes.saw("the dead one");
            }
            None => outcomes.saw("nobody"),
        }
    });
}

/// As `HeartbeatTable::claim_locked`: recycle, claim, arm, fill, publish.
fn register_armed(cells: &Cells, dead: Claim) -> Claim {
    cells.verdict.record_death(dead);
    let claimable = cells.slot.recycle(dead);
    cells
        .take_arming(dead, B, claimable, arm)
        .expect("gone and empty")
}

/// The owner dies with a unit in flight; who finds the mark has the unit and what was written about it.
#[test]
fn who_sees_the_mark_has_all_that_the_dead_owner_did() {
    let wanted = ["not marked yet", "died"];
    check_seeing("certificate, death", 3, &wanted, |outcomes| {
        let (world, live) = World::owned(&[HIGH]);
        arm(&world.cells);
        let mut watchdog = world.watchdog();
        let payload = Arc::new(AtomicU64::zeroed());
        let watchdog = {
            let payload = Arc::clone(&payload);
            thread::spawn(move || {
                let deaths_only = Scan {
                    mode: Mode::DeathsOnly,
                    ..scan(first_epoch(1))
                };
                let finding = watchdog.judge(&deaths_only).1;
                // Relaxed: what the mark publishes.
                (finding, payload.load(Ordering::Relaxed))
            })
        };
        let slot = &world.cells.slot;
        slot.complete(live, unit(HIGH))
            .expect("fenced before it died");
        slot.mark(live, unit(0)).expect("fenced before it died");
        // Relaxed: as above.
        payload.store(7, Ordering::Relaxed);
        mark(&world.cells);
        let (finding, payload) = watchdog.join().unwrap();
        let Some(finding) = finding else {
            assert_ne!(slot.beat(live, first_epoch(1) + 1), Err(SlotError::Fenced));
            outcomes.saw("not marked yet");
            return;
        };
        assert_eq!((finding.claim, finding.verdict), (live, Verdict::Died));
        assert_eq!(finding.evidence.source, ProofSource::Certificate);
        assert_eq!(
            (finding.units, payload),
            (units(&[0]), 7),
            "an old look at the dead one"
        );
        outcomes.saw("died");
        world.bury(1);
        world.cells.slot.acknowledge(1, finding.units);
        world
            .cells
            .register(B, Owners::GoneUpTo(1))
            .expect("acknowledged and empty");
    });
}
