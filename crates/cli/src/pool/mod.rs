//! `bumpless pool`: a crash-tolerant pool of real worker processes over real files.
//!
//! ```text
//!   walk ──files──▶ parent ──offers──▶ lanes ──▶ workers      beats, marks, completes
//!  (thread)           │ ◀──results────   │ ◀──────┘ │ ─────────────▶ heartbeat table
//!                     └── scan, fence, hand back ────────────────────────┘
//! ```
//! Code map: `args`, `walk`, `own`, `manifest`, `summary`, `progress` face the user; `bell`,
//! `entry`, `lane` are the shared memory; `journal` writes the black box; `worker`, `hash`, `exec` run in workers; `parent`, `give`,
//! `supervise`, `harm`, `ending` are the parent's loop over `ledger`, `tenant`, `attempts`, `chaos`, `pace`;
//! `children` makes its system calls; `site` is the files that a pool has.

pub mod args;
mod attempts;
mod bell;
mod chaos;
mod children;
mod ending;
mod entry;
mod error;
mod exec;
mod give;
mod harm;
mod hash;
mod journal;
mod lane;
mod ledger;
mod manifest;
mod outcome;
mod own;
mod pace;
mod parent;
mod progress;
mod site;
mod summary;
mod supervise;
mod tenant;
mod walk;
mod worker;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bumpless_failover::FailoverWatchdog;
use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::guard::become_subreaper;

use crate::signals::{INTERRUPTED, Signals};

pub use args::{PoolArguments, Words, WorkerArguments, command_words, duration, period};
pub use worker::run_worker;

use attempts::Attempts;
use chaos::{Schedule, Turn};
use error::PoolError;
use journal::Journal;
use lane::Lanes;
use ledger::Ledger;
use manifest::Manifest;
use own::{OwnKind, OwnName};
use pace::Pace;
use parent::{Pool, Settings};
use progress::Progress;
use site::Site;
use summary::{Counts, Summary};
use walk::{Found, Sources, walk};

/// Files per message from the walk.
const BATCH: usize = 256;

/// The subcommand.
pub fn run(arguments: PoolArguments) -> ExitCode {
    let json = arguments.json;
    match run_pool(arguments) {
        Ok(summary) => {
            tell!("{}", if json { summary.json() } else { summary.line() });
            summary.exit_code()
        }
        Err(PoolError::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            tell!("bumpless: {error}");
            ExitCode::from(2)
        }
    }
}

fn run_pool(arguments: PoolArguments) -> Result<Summary, PoolError> {
    let start_ns = monotonic_ns();
    let signals = Signals::install().map_err(PoolError::file(
        "install handlers for",
        "SIGINT and SIGTERM",
    ))?;
    become_subreaper()?;
    let hashes = arguments.exec.is_none();
    let manifest = Manifest::prepare(arguments.manifest.as_deref())?;
    let output_dir = arguments
        .output_dir
        .as_deref()
        .map(site::output_dir)
        .transpose()?;
    let workers = arguments.workers.unwrap_or_else(one_per_cpu);
    let site = Site::take(arguments.table.as_deref(), workers)?;
    let journal = Journal::create(&site.table, arguments.events.as_deref())?;

    let own = [
        manifest.own_names(),
        OwnName::of(site.table.path(), OwnKind::Table),
        OwnName::of(journal.path(), OwnKind::Table),
        output_dir
            .as_deref()
            .and_then(|dir| OwnName::of(dir, OwnKind::OutputDir)),
    ];
    let sources = Sources {
        paths: arguments.paths,
        files_from: arguments.files_from,
        separator: if arguments.null { 0 } else { b'\n' },
    };
    let now_ns = monotonic_ns();
    let rates = arguments.chaos.unwrap_or_default();
    let period_ns = nanoseconds(arguments.period);
    let words = arguments.exec.map_or(Vec::new(), |words| words.0);
    let coordinator = site.register()?;
    let mut pool = Pool {
        settings: Settings {
            workers: workers as usize,
            grace_epochs: arguments.grace,
            unit_timeout_ns: nanoseconds(arguments.unit_timeout),
            worker: WorkerArguments {
                table: site.table.path().to_owned(),
                lanes: site.lanes_path.clone(),
                lane: 0,
                period_ns,
                output_dir: output_dir.clone(),
                words: words.into_iter().map(Into::into).collect(),
            },
            output_dir,
        },
        table: &site.table,
        coordinator: &coordinator,
        watchdog: FailoverWatchdog::with_grace(&site.table, arguments.grace),
        tenants: (0..site.lanes.count()).map(|_| None).collect(),
        lanes: Arc::clone(&site.lanes),
        ledger: Ledger::default(),
        attempts: Attempts::new(arguments.max_attempts),
        counts: Counts::default(),
        journal,
        progress: Progress::start(),
        signals,
        found: Some(start_walk(
            sources,
            own.into_iter().flatten().collect(),
            &site.lanes,
        )),
        kills: Schedule::new(rates.kill, now_ns, now_ns),
        stops: Schedule::new(rates.stop, now_ns, !now_ns),
        turn: Turn::default(),
        pace: Pace::new(period_ns, now_ns),
        stillborn: 0,
        is_closing: false,
    };
    let worked = pool.work().and_then(|()| pool.close());
    pool.end();
    pool.progress.end();
    worked?;
    if hashes {
        manifest.write(pool.ledger.accepted_files())?;
    }
    let seconds = Duration::from_nanos(monotonic_ns() - start_ns).as_secs_f64();
    let counts = Counts {
        registered: pool.journal.registered,
        deaths: pool.journal.deaths,
        handed_back: pool.journal.handed_back,
        ..pool.counts
    };
    Ok(Summary::new(&pool.ledger, counts, seconds))
}

/// The walk in a thread of its own: it may wait for a pipe for ever, and is left behind then.
fn start_walk(sources: Sources, own: Vec<OwnName>, lanes: &Arc<Lanes>) -> Receiver<Vec<Found>> {
    let (sender, receiver) = channel();
    let lanes = Arc::clone(lanes);
    std::thread::spawn(move || {
        let is_own = |path: &Path| own.iter().any(|name| name.is(path));
        let mut batch = Vec::with_capacity(BATCH);
        let pass_on = |batch: &mut Vec<Found>| {
            let is_wanted = sender.send(std::mem::take(batch)).is_ok();
            lanes.parent_bell().ring();
            is_wanted
        };
        walk(&sources, &is_own, &mut |found| {
            batch.push(found);
            batch.len() < BATCH || pass_on(&mut batch)
        });
        pass_on(&mut batch);
    });
    receiver
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn one_per_cpu() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    u32::try_from(cpus).unwrap_or(1).min(128)
}
