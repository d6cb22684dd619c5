//! Processes at a barrier: killed in the middle of anything, stopped, fenced, replaced.
//!
//! What "early" means is checked by the members themselves. Each writes into a cell of its slot in which
//! epoch it is about to arrive; when it is released, everybody who is waited for in that epoch and is
//! live *after* the look at its cell must have arrived.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use bumpless_barrier::{EpochBarrier, Presence};
use bumpless_failover::{FailoverWatchdog, Stop};
use bumpless_heartbeat::{Certificate, HeartbeatTable, NO_KEEPER, Profile};
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region};
use bumpless_substrate::sync::{AtomicU64, Ordering};

use crate::child::{Answer, Child, await_until};
use crate::false_deaths::await_time;
use crate::pace::Paced;
use crate::roles;
use crate::scene::Scene;
use crate::tally::mixed;

const SLOTS: usize = 64;

/// Longer than any epoch takes, also on a busy machine.
const EPOCH_LIMIT: Duration = Duration::from_secs(30);

/// 60.
pub fn barrier_of_sixteen_is_never_early_and_never_stuck_whoever_is_killed(scene: &Scene) {
    const MEMBERS: usize = 16;
    const EPOCHS: u64 = 10_000;
    const EPOCHS_BETWEEN_KILLS: u64 = 30;
    /// On a busy machine a start takes hundreds of epochs.
    const KILLS_MIN: u64 = 20;
    // Without any watchdog: certificates are all there is.
    let table = scene.table(SLOTS);
    let barrier = EpochBarrier::create(&table, "phase").expect("a barrier");
    let cells = Cells::create(&scene.path("cells"));
    let mut members: Vec<Child> = (0..MEMBERS).map(|_| joined(scene)).collect();
    members.iter_mut().for_each(|member| member.tell("go"));
    // Who has yet to say in which epoch it began.
    let mut is_new = [false; MEMBERS];
    let (mut kills, mut next_kill) = (0_u64, 0);
    loop {
        await_until(EPOCH_LIMIT, "the next epochs", || {
            barrier.epoch() >= next_kill
        });
        if barrier.epoch() > EPOCHS && kills > KILLS_MIN {
            break;
        }
        let victim = mixed(kills) as usize % MEMBERS;
        members[victim].kill();
        let mut replacement = started(scene);
        replacement.tell("go");
        members[victim] = replacement;
        is_new[victim] = true;
        kills += 1;
        next_kill = barrier.epoch() + mixed(kills) % (2 * EPOCHS_BETWEEN_KILLS);
    }
    // One more, with whom all others take part: at least one of them is told, whoever was told before.
    let firsts = members.iter_mut().zip(is_new).filter(|(_, is_new)| *is_new);
    let newest = firsts.map(|(member, _)| first_epoch(member)).max();
    await_until(EPOCH_LIMIT, "an epoch with all", || {
        Some(barrier.epoch()) > newest
    });
    members.pop().expect("the last one").kill();
    // Some epochs ahead, so that most leave in the same one.
    let last = barrier.epoch() + 1_000;
    // Relaxed: a value on its own.
    cells.last().store(last, Ordering::Relaxed);
    let mut absent = 0;
    for member in &mut members {
        match member.answer() {
            Answer::Done(told) => absent += roles::number(&told),
            refused => panic!("{refused:?}"),
        }
    }
    assert!(absent > 0, "nobody was told of any of {kills} deaths");
    scene.note(&format!("{last} epochs, {kills} kills"));
}

/// 61.
pub fn stopped_member_holds_the_others_up_until_it_is_fenced(scene: &Scene) {
    const ROUNDS: usize = 5;
    /// After a gap of two of these, as a busy machine makes, it takes nobody's silence for a hang.
    const PERIOD: Duration = Duration::from_millis(50);
    let table = scene.table(SLOTS);
    let barrier = EpochBarrier::create(&table, "phase").expect("a barrier");
    let _cells = Cells::create(&scene.path("cells"));
    // The harness itself may be late on a busy machine: it is not what is watched here.
    let profile = Profile {
        grace_epochs: u16::MAX,
        ..Profile::default()
    };
    let own = table
        .register_as(std::process::id(), profile)
        .expect("a free slot");
    let mut member = barrier.join(own).expect("our slot");
    let (watchdog, stop) = (FailoverWatchdog::with_grace(&table, 3), Stop::new());
    let mut longest = Duration::ZERO;
    std::thread::scope(|scope| {
        let stop = RequestOnDrop(&stop);
        scope.spawn(|| watchdog.run(PERIOD, stop.0, |_| ()));
        for _ in 0..ROUNDS {
            let mut other = joined(scene);
            other.tell("go");
            let mut fenced = None;
            for _ in 0..20 {
                let released = member.wait_timeout(EPOCH_LIMIT).expect("released");
                fenced = fenced.or(released.absent.last().copied());
            }
            other.stop();
            let stopped = Instant::now();
            // Also when it has been late before, on a busy machine.
            let fenced = loop {
                match fenced {
                    Some(absent) => break absent,
                    None => {
                        fenced = member
                            .wait_timeout(EPOCH_LIMIT)
                            .expect("released")
                            .absent
                            .pop()
                    }
                }
            };
            longest = longest.max(stopped.elapsed());
            assert_eq!(fenced.presence, Presence::Fenced);
            // The others have gone on; the late one is told, and changes nothing.
            for _ in 0..3 {
                let _ = member.wait_timeout(EPOCH_LIMIT).expect("released");
            }
            other.resume();
            let told = other.answer();
            assert!(
                matches!(&told, Answer::Refused { kind, .. } if kind == "Table.Fenced"),
                "{told:?}"
            );
            for _ in 0..3 {
                let _ = member.wait_timeout(EPOCH_LIMIT).expect("released");
            }
        }
    });
    scene.note(&format!("stopped to released: at most {longest:?}"));
}

/// 62.
pub fn death_of_the_one_awaited_releases_the_others_at_once(scene: &Scene) {
    const ROUNDS: usize = 20;
    const AT_ONCE: Duration = Duration::from_millis(200);
    let table = scene.table(SLOTS);
    // Nobody looks by itself sooner than in a second: what is seen before is told by the kernel.
    table
        .header()
        .period_ns
        .store(10_000_000_000, Ordering::Relaxed);
    let barrier = EpochBarrier::create(&table, "phase").expect("a barrier");
    let _cells = Cells::create(&scene.path("cells"));
    let own = table.register(std::process::id()).expect("a free slot");
    let mut member = barrier.join(own).expect("our slot");
    let mut beside = joined(scene);
    beside.tell("go");
    let mut latencies = Paced::new();
    for _ in 0..ROUNDS {
        // It has joined and does not arrive.
        let victim = joined(scene);
        let pid = victim.pid();
        let killer = std::thread::spawn(move || {
            await_time(Duration::from_millis(20));
            let killed = Instant::now();
            victim.kill();
            killed
        });
        let absent = loop {
            let released = member.wait_timeout(EPOCH_LIMIT).expect("released");
            if let Some(absent) = released.absent.last() {
                break *absent;
            }
        };
        let released = Instant::now();
        let killed = killer.join().expect("no panic");
        assert_eq!(absent.presence, Presence::Died, "pid {pid}");
        latencies.push(released.saturating_duration_since(killed));
        // The dead is told of once more at most.
        for _ in 0..3 {
            let _ = member.wait_timeout(EPOCH_LIMIT).expect("released");
        }
    }
    let [middle, longest] = latencies.assert_at_once(AT_ONCE);
    scene.note(&format!(
        "killed to released: p50 {middle:?}, at most {longest:?}"
    ));
}

/// 63.
pub fn death_without_certificate_is_proven_by_those_who_wait(scene: &Scene) {
    const ROUNDS: usize = 5;
    let table = scene.table(SLOTS);
    let barrier = EpochBarrier::create(&table, "phase").expect("a barrier");
    let _cells = Cells::create(&scene.path("cells"));
    let own = table.register(std::process::id()).expect("a free slot");
    let mut member = barrier.join(own).expect("our slot");
    for _ in 0..ROUNDS {
        let victim = joined(scene);
        let mut theirs = table
            .iter_live()
            .filter(|(_, seen)| seen.pid == victim.pid());
        let (slot, _) = theirs.next().expect("its slot");
        let cells = table.cells(slot).expect("its slot");
        // As where the kernel keeps no robust lists; it marks no word that does not name the dying.
        // Relaxed: a value on its own.
        cells.slot.keeper_word().store(NO_KEEPER, Ordering::Relaxed);
        victim.kill();
        let absent = loop {
            let released = member.wait_timeout(EPOCH_LIMIT).expect("released");
            if let Some(absent) = released.absent.last() {
                break *absent;
            }
        };
        assert_eq!(absent.slot as usize, slot);
        assert_eq!(cells.slot.certificate(), Certificate::None);
        for _ in 0..3 {
            let _ = member.wait_timeout(EPOCH_LIMIT).expect("released");
        }
    }
}

/// Whatever ends a scenario ends its watchdog.
struct RequestOnDrop<'a>(&'a Stop);

impl Drop for RequestOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// A process that joins as soon as it can, and goes on when it is told.
fn started(scene: &Scene) -> Child {
    let arguments: [OsString; 2] = [scene.table_path().into(), scene.path("cells").into()];
    Child::start("barrier member", &arguments)
}

/// A process that has joined.
fn joined(scene: &Scene) -> Child {
    let mut member = started(scene);
    first_epoch(&mut member);
    member
}

/// Returns when a process has joined: the first epoch in which it is waited for.
fn first_epoch(member: &mut Child) -> u64 {
    let Answer::Done(first) = member.answer() else {
        panic!("did not join");
    };
    let epoch = first.strip_prefix("first epoch ").map(roles::number);
    epoch.expect("a first epoch") as u64
}

/// Joins, arrives in every epoch up to the last, if one is set, and checks each release; the answer is how
/// many absent ones it was told of.
pub fn member(arguments: &[String]) {
    let [table, cells] = arguments else {
        panic!("table, cells");
    };
    let table = HeartbeatTable::attach(table).expect("the table");
    let cells = Cells::create(Path::new(cells));
    let barrier = EpochBarrier::create(&table, "phase").expect("the barrier");
    let handle = roles::register_when_free(&table);
    let own = handle.slot();
    cells.of(own).forget();
    let mut member = barrier.join(handle).expect("our slot");
    let first = member.first_epoch();
    cells.of(own).publish(handle.generation(), first);
    roles::answer(&Ok(format!("first epoch {first}")));
    let mut commands = roles::commands();
    let _go = commands.next(None);
    let (mut epoch, mut absent) = (first, 0);
    loop {
        // Relaxed: the barrier is what orders it, and what is tested.
        cells.of(own).arrived.store(epoch, Ordering::Relaxed);
        match member.wait_timeout(EPOCH_LIMIT) {
            Ok(released) => {
                assert_eq!(released.epoch, epoch, "another epoch than the one awaited");
                absent += released.absent.len();
            }
            Err(error) => {
                roles::answer(&Err(error.into()));
                break;
            }
        }
        cells.check_arrived(&table, own, epoch);
        // Relaxed: a value on its own, set long before.
        if epoch >= cells.last().load(Ordering::Relaxed) {
            // First: from its leaving on nobody waits for it.
            cells.of(own).forget();
            drop(member);
            roles::answer(&Ok(absent.to_string()));
            break;
        }
        epoch += 1;
    }
    let _end = commands.next(None);
}

bumpless_substrate::shared_struct! {
    /// What a member says of itself, for the others to check.
    pub struct Cell[size = 24, align = 8] {
        /// Its generation; 0 while it joins. Written by the member, as the others.
        0 => owner: AtomicU64,
        /// The first epoch in which it is waited for.
        8 => first: AtomicU64,
        /// The epoch in which it has arrived, or is about to.
        16 => arrived: AtomicU64,
    }
}

impl Cell {
    fn forget(&self) {
        // Release pairs with the Acquire of `check_arrived`.
        self.owner.store(0, Ordering::Release);
    }

    fn publish(&self, generation: u32, first: u64) {
        self.first.store(first, Ordering::Relaxed);
        self.arrived.store(first - 1, Ordering::Relaxed);
        // Release pairs with the Acquire of `check_arrived`.
        self.owner.store(generation.into(), Ordering::Release);
    }
}

/// Where the last epoch lies.
const LAST_AT: u64 = PREAMBLE_LEN + 24 * SLOTS as u64;

const CELLS: Format = Format {
    kind: *b"CELL",
    version: 1,
    record_size: 24,
    max_capacity: SLOTS as u32,
    region_len: |capacity| PREAMBLE_LEN + 24 * capacity as u64 + 8,
    revived: |_| (),
};

/// A cell for each slot, and behind them the last epoch.
struct Cells(Region);

impl Cells {
    fn create(path: &Path) -> Self {
        let endless = |region: &Region| {
            let last: Result<&AtomicU64, _> = region.at(LAST_AT);
            // Relaxed: nobody else has it yet.
            last.expect("a word").store(u64::MAX, Ordering::Relaxed);
        };
        let made = Region::create(path, &CELLS, SLOTS as u32, Access::Private, endless);
        Self(made.expect("the cells").0)
    }

    /// The last epoch.
    fn last(&self) -> &AtomicU64 {
        self.0.at(LAST_AT).expect("a word")
    }

    fn of(&self, slot: usize) -> &Cell {
        &self.all()[slot]
    }

    fn all(&self) -> &[Cell] {
        let cells = self.0.slice(PREAMBLE_LEN, SLOTS as u32);
        cells.expect("as many as there are slots")
    }

    /// Panics if a live member that is waited for in an epoch that was released has not arrived in it.
    fn check_arrived(&self, table: &HeartbeatTable, own: usize, epoch: u64) {
        for (slot, cell) in self.all().iter().enumerate() {
            // Acquire pairs with the Release of `publish` and `forget`.
            let owner = cell.owner.load(Ordering::Acquire);
            if owner == 0 || slot == own {
                continue;
            }
            let first = cell.first.load(Ordering::Relaxed);
            let arrived = cell.arrived.load(Ordering::Acquire);
            let is_live = table.snapshot(slot).is_some_and(|seen| {
                u64::from(seen.generation) == owner
                    && !seen.is_fenced
                    && seen.certificate != Certificate::Died
            });
            if is_live && cell.owner.load(Ordering::Acquire) == owner && first <= epoch {
                assert!(
                    arrived == epoch || arrived == epoch + 1,
                    "slot {slot} has come to epoch {arrived}, and {epoch} was released"
                );
            }
        }
    }
}
