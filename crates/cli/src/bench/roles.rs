//! The child of a measurement: a worker that registers, marks its units, and beats until it is killed.
//!
//! Contract: it says `ready SLOT GENERATION` on standard output when all that was asked for is in the
//! table, and never ends by itself unless something fails. It dies with its parent.

use std::time::Duration;

use bumpless_heartbeat::{HeartbeatTable, Profile, Worker};
use bumpless_substrate::keeper::WAITERS;
use bumpless_substrate::sync::Ordering;

use super::args::RoleArguments;
use super::error::BenchError;
use super::show;

/// A thread id that no thread has: they end at 2^22.
const NOBODY: u32 = 0x3fff_fffe;

/// Plays the worker. Returns only with an error.
///
/// # Errors
/// [`BenchError::Memory`], [`BenchError::Table`].
pub fn play(arguments: &RoleArguments) -> Result<(), BenchError> {
    // Before it registers: a worker that beats is never silent for so long.
    let memory = touched(arguments.rss)?;
    let table = HeartbeatTable::attach(&arguments.table)?;
    let profile = Profile {
        grace_epochs: u16::MAX,
        ..Profile::default()
    };
    let worker = Worker::register(&table, profile)?;
    if arguments.beats_only {
        spoil_certificate(&table, worker.handle().slot());
    }
    for unit in &arguments.units {
        worker.mark(*unit)?;
    }
    let handle = worker.handle();
    worker.beat()?;
    table.set_grace(handle, arguments.grace)?;
    show(&format!(
        "ready {} {}\n",
        handle.slot(),
        handle.generation()
    ))?;
    loop {
        // If it was fenced, because the machine is busy, its parent knows.
        let _ = worker.beat();
        std::thread::sleep(Duration::from_nanos(arguments.period_ns));
        std::hint::black_box(&memory);
    }
}

/// So many bytes, every page of them written to.
fn touched(bytes: u64) -> Result<Vec<u8>, BenchError> {
    let mut memory = Vec::new();
    memory
        .try_reserve_exact(usize::try_from(bytes).unwrap_or(usize::MAX))
        .map_err(|error| BenchError::Memory { bytes, error })?;
    memory.resize(memory.capacity(), 1);
    Ok(memory)
}

/// Makes the certificate name a thread that does not exist. The kernel leaves a word alone that does not
/// name the dying thread, and to a watchdog it looks armed, which is a reason to ask for no other proof:
/// so the missed beats are all that it learns.
fn spoil_certificate(table: &HeartbeatTable, slot: usize) {
    if let Some(cells) = table.cells(slot) {
        // Relaxed: a value on its own; the process is killed much later.
        cells
            .slot
            .keeper_word()
            .store(WAITERS | NOBODY, Ordering::Relaxed);
    }
}
