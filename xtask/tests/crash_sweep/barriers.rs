//! What victims do at a barrier, and the one who waits there with them.
//!
//! Contract: the waiter is a thread of the sweep that has joined the barrier before the victim came. It
//! looks by itself only twice a second: what releases it before that is the victim, or its death.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bumpless_barrier::{BarrierError, EpochBarrier};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::sync::Ordering;

use crate::findings::{Findings, Kind};
use crate::stage::Stage;
use crate::victim::Window;

/// The interval that a watchdog would look in, if there were one.
const PERIOD_NS: u64 = 1_000_000_000;
/// How long the waiter waits for one epoch.
const EPOCH_LIMIT: Duration = Duration::from_secs(20);
/// How long somebody else is awaited, which starts a process.
const ARRIVAL_LIMIT: Duration = Duration::from_secs(30);
/// How many epochs it goes through when the victim is dead.
const EPOCHS_AFTER: u64 = 4;
const NAME: &str = "phase";

/// Where the low byte of the bell lies in the barrier's file, and where the members' words.
const BELL: usize = 72;
const WORDS: usize = 128;

/// The member that was there before the victim.
#[derive(Debug)]
pub struct Waiter {
    victim_is_dead: Sender<()>,
    came_to: Receiver<Result<()>>,
}

impl Waiter {
    /// A member that waits as soon as the victim has joined, or when it is dead.
    pub fn start(stage: &Stage, waits_for_victim: bool) -> Result<Self> {
        let (victim_is_dead, dead) = channel();
        let (tell, came_to) = channel();
        let path = stage.table();
        std::thread::spawn(move || {
            // Nobody listens when it has taken too long.
            let _ = tell.send(wait(&path, waits_for_victim, &tell, &dead));
        });
        // That it has joined.
        came_to.recv()??;
        Ok(Self {
            victim_is_dead,
            came_to,
        })
    }

    /// What came of its waiting.
    pub fn look(self, findings: &mut Findings) -> Result<()> {
        // It is waiting for this, or has failed, and says so below.
        let _ = self.victim_is_dead.send(());
        match self.came_to.recv()? {
            Ok(()) => {}
            Err(error) => findings.add(Kind::Hung, format!("at the barrier: {error:#}")),
        }
        Ok(())
    }
}

fn wait(
    path: &Path,
    waits_for_victim: bool,
    tell: &Sender<Result<()>>,
    victim_is_dead: &Receiver<()>,
) -> Result<()> {
    let table = HeartbeatTable::attach(path)?;
    // Relaxed: read again at each look.
    let period_ns = &table.header().period_ns;
    period_ns.store(PERIOD_NS, Ordering::Relaxed);
    let handle = table.register(std::process::id())?;
    let barrier = EpochBarrier::create(&table, NAME)?;
    let mut member = barrier.join(handle)?;
    tell.send(Ok(()))?;
    let mut released = Vec::new();
    if waits_for_victim {
        await_bytes(&barrier, |bytes| {
            let words = bytes[WORDS..].chunks(8);
            words.filter(|word| **word != [0; 8]).count() == 2
        })?;
        released.push(member.wait_timeout(EPOCH_LIMIT)?.epoch);
    }
    match victim_is_dead.recv_timeout(10 * EPOCH_LIMIT) {
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
        Err(RecvTimeoutError::Timeout) => return Ok(()),
    }
    for _ in 0..EPOCHS_AFTER {
        released.push(member.wait_timeout(EPOCH_LIMIT)?.epoch);
    }
    let rises = released.windows(2).all(|two| two[1] == two[0] + 1);
    ensure!(rises, "released in {released:?}");
    // And somebody else can take part.
    let mut next = barrier.join(table.register(std::process::id())?)?;
    ensure!(
        next.first_epoch() == barrier.epoch() + 1,
        "it is not the next epoch's"
    );
    drop(member);
    next.wait_timeout(EPOCH_LIMIT)?;
    Ok(())
}

/// Returns when somebody sleeps on the bell, which its lowest bit says.
fn await_sleeper(barrier: &EpochBarrier<'_>) -> Result<()> {
    await_bytes(barrier, |bytes| bytes[BELL] & 1 == 1)
}

/// Returns when the barrier's file is as wanted.
fn await_bytes(barrier: &EpochBarrier<'_>, is_so: impl Fn(&[u8]) -> bool) -> Result<()> {
    let began = Instant::now();
    while !is_so(&std::fs::read(barrier.path())?) {
        ensure!(
            began.elapsed() < ARRIVAL_LIMIT,
            "nobody else comes within {ARRIVAL_LIMIT:?}"
        );
        std::thread::sleep(Duration::from_micros(50));
    }
    Ok(())
}

/// Joining.
pub fn join(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let barrier = EpochBarrier::create(&table, NAME)?;
    let handle = table.register(std::process::id())?;
    window.open();
    let joined = barrier.join(handle);
    window.close();
    joined?;
    Ok(())
}

/// Arriving as the last one, and releasing who waits.
pub fn release(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let barrier = EpochBarrier::create(&table, NAME)?;
    let mut member = barrier.join(table.register(std::process::id())?)?;
    await_sleeper(&barrier)?;
    window.open();
    let released = member.wait_timeout(EPOCH_LIMIT);
    window.close();
    released?;
    Ok(())
}

/// Arriving before the others, and taking it back.
pub fn give_up(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let barrier = EpochBarrier::create(&table, NAME)?;
    let mut member = barrier.join(table.register(std::process::id())?)?;
    window.open();
    let given_up = member.wait_timeout(Duration::ZERO);
    window.close();
    let is_told = matches!(given_up, Err(BarrierError::TimedOut { .. }));
    ensure!(is_told, "{given_up:?}");
    Ok(())
}

/// Leaving those who wait for nobody else.
pub fn leave(stage: &Stage, window: &Window) -> Result<()> {
    let table = HeartbeatTable::attach(stage.table())?;
    let barrier = EpochBarrier::create(&table, NAME)?;
    let member = barrier.join(table.register(std::process::id())?)?;
    await_sleeper(&barrier)?;
    window.open();
    member.leave();
    window.close();
    Ok(())
}
