//! A worker process: takes offers out of its lane, works, publishes, completes.
//!
//! ```text
//!   register ─ say who we are ─┬─▶ offer? ─ mark ─ take ─ work ─ publish ─ complete ─┐
//!                              └───────────────────────◀───────────────────────────┘
//!                                   │ none: ring the parent, sleep       │ fenced
//!                                   ▼ closed                             ▼
//!                                unregister, end                      unregister, end
//! ```
//! Contract: a unit is marked before it is taken and completed after its result is published. A second
//! thread beats, so that slow input is no silence. A worker that was fenced offers no more than the
//! result it is about to have, which is refused, and ends: the parent has a new one in its place.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use bumpless_heartbeat::{HeartbeatError, HeartbeatTable, Label, Profile, Unit, Worker};
use bumpless_substrate::sync::{AtomicU32, Ordering};

use super::args::WorkerArguments;
use super::entry::{Entry, Outcome};
use super::error::PoolError;
use super::exec::Exec;
use super::hash::{STEP_BYTES, hash};
use super::lane::{Lane, Lanes, Owner};

/// A fenced worker that has more than this left to hash gives up. What is less is finished and
/// published: it cannot be committed any more, and the parent counts it as refused.
const WORTH_ABANDONING_BYTES: u64 = 256 << 20;

/// So many results wait before the parent is told; it looks by itself once per period too.
const RING_EVERY: u32 = 8;

/// How long a worker sleeps at most before it looks again.
const SLEEP: Duration = Duration::from_millis(500);

/// The hidden subcommand.
pub fn run_worker(arguments: &WorkerArguments) -> ExitCode {
    match serve_lane(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell!("bumpless: worker pid {}: {error}", std::process::id());
            ExitCode::FAILURE
        }
    }
}

fn serve_lane(arguments: &WorkerArguments) -> Result<(), PoolError> {
    let lanes = Lanes::attach(&arguments.lanes)?;
    let lane_index = arguments.lane as usize;
    let Some(lane) = lanes.lane(lane_index) else {
        return Ok(());
    };
    let table = HeartbeatTable::attach(&arguments.table)?;
    let label = Label::new("pool worker")?;
    let worker = Worker::register(
        &table,
        Profile {
            label,
            ..Profile::default()
        },
    )?;
    let handle = worker.handle();
    lane.set_owner(Owner {
        slot: handle.slot() as u32,
        generation: handle.generation(),
    });

    let exec = arguments.output_dir.as_deref().map(|output_dir| Exec {
        words: &arguments.words,
        output_dir,
        lane,
        pid_place: lanes.exec_pid_place(arguments.lane),
    });
    let lost = AtomicU32::new(0);
    std::thread::scope(|scope| {
        // Dropped when the desk is left, by a panic too: the pulse ends.
        let (_working, left) = channel();
        let interval = Duration::from_nanos(arguments.period_ns / 2);
        scope.spawn({
            let (worker, lost) = (&worker, &lost);
            move || pulse(worker, interval, &left, lost, lane)
        });
        let mut desk = Desk {
            worker: &worker,
            lanes: &lanes,
            lane,
            entries: lanes.entries(lane_index),
            exec,
            lost: &lost,
            buffer: vec![0; STEP_BYTES],
            unannounced: 0,
        };
        desk.serve()
    })
}

/// Beats until the desk is left or the slot is lost.
fn pulse(
    worker: &Worker<'_>,
    interval: Duration,
    left: &Receiver<()>,
    lost: &AtomicU32,
    lane: &Lane,
) {
    while worker.beat().is_ok() {
        if left.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
    // Relaxed: a flag on its own; the slot's fence is the truth.
    lost.store(1, Ordering::Relaxed);
    lane.bell.ring();
}

struct Desk<'a> {
    worker: &'a Worker<'a>,
    lanes: &'a Lanes,
    lane: &'a Lane,
    entries: &'a [Entry],
    exec: Option<Exec<'a>>,
    lost: &'a AtomicU32,
    buffer: Vec<u8>,
    /// Results published since the parent was last told.
    unannounced: u32,
}

/// Whether there is a slot to work for.
#[derive(PartialEq, Eq)]
enum Standing {
    Kept,
    Lost,
}

impl Desk<'_> {
    fn serve(&mut self) -> Result<(), PoolError> {
        let mut next = 0;
        while !self.is_lost() {
            let seen = self.lane.bell.seen();
            if let Some((index, ticket)) = self.offer_from(next) {
                next = index + 1;
                if self.unit(index, ticket)? == Standing::Lost {
                    break;
                }
                continue;
            }
            if self.unannounced > 0 {
                self.announce();
            }
            if self.lane.is_closed() {
                break;
            }
            self.lane.bell.wait(seen, SLEEP);
        }
        // The parent may wait for what was published last.
        self.announce();
        Ok(())
    }

    fn is_lost(&self) -> bool {
        // Relaxed: see `pulse`.
        self.lost.load(Ordering::Relaxed) != 0
    }

    /// The first offer at or after an index, going round.
    fn offer_from(&self, start: usize) -> Option<(usize, u64)> {
        let count = self.entries.len();
        (start..start + count).find_map(|index| {
            let index = index % count;
            Some((index, self.entries[index].offered()?))
        })
    }

    fn unit(&mut self, index: usize, ticket: u64) -> Result<Standing, PoolError> {
        let unit = Unit::try_from(index)?;
        let entry = &self.entries[index];
        if standing(self.worker.mark(unit))? == Standing::Lost {
            return Ok(Standing::Lost);
        }
        if entry.take(ticket) {
            self.lane.step();
            let Some(outcome) = self.work(entry, ticket) else {
                return Ok(Standing::Lost);
            };
            entry.publish(ticket, outcome);
            self.unannounced += 1;
        }
        // The commit; of an offer that the parent took back in time: nothing is in flight any more.
        let standing = standing(self.worker.complete(unit))?;
        if self.unannounced >= RING_EVERY || self.exec.is_some() {
            self.announce();
        }
        Ok(standing)
    }

    fn work(&mut self, entry: &Entry, ticket: u64) -> Option<Outcome> {
        let path = entry.path();
        if path.as_bytes().contains(&0) {
            return Some(Outcome::NotOpened(rustix::io::Errno::INVAL.raw_os_error()));
        }
        if let Some(exec) = &self.exec {
            return Some(exec.run(&path, ticket));
        }
        let (lane, lost) = (self.lane, self.lost);
        hash(Path::new(&path), &mut self.buffer, &mut |left| {
            lane.step();
            // Relaxed: see `pulse`.
            left <= WORTH_ABANDONING_BYTES || lost.load(Ordering::Relaxed) == 0
        })
    }

    fn announce(&mut self) {
        self.unannounced = 0;
        self.lanes.parent_bell().ring();
    }
}

/// Losing the slot ends the work and is no error.
fn standing(result: Result<(), HeartbeatError>) -> Result<Standing, PoolError> {
    match result {
        Ok(()) => Ok(Standing::Kept),
        Err(HeartbeatError::Fenced { .. }) => Ok(Standing::Lost),
        Err(error) => Err(error.into()),
    }
}
