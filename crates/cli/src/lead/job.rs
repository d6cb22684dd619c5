//! The job: runs the command for its lead, and ends it when the lead leads no more or is gone.
//!
//! Contract: the command's process group is this process's to end, whatever the lead does. The lock is
//! held from before the command starts until nobody is left of what it has started; a job that has to
//! wait for it asks again who leads. The command dies with this process, and what else it has started is
//! killed by it; if it is itself killed, by its lead. SIGTERM and SIGINT come from the lead alone: who
//! sends them to all processes of a service would else kill the command that is just told to end.
//!
//! ```text
//!   lock ─ still leader? ─ start ─▶ running ── command ends ──▶ kill who is left of it ─ end
//!                                     │  signal from the lead ──▶ to the group
//!                                     │  another one leads ─────▶ SIGTERM, after the grace SIGKILL
//!                                     └─ lead gone ─────────────▶ SIGKILL
//! ```

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_election::{Leader, SharedLeaderElection};
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::guard::{GuardError, become_subreaper};
use rustix::fs::OFlags;
use rustix::process::{Signal, geteuid};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::JobArguments;
use super::error::LeadError;
use super::site::lock_of;
use crate::kept::{Group, code_of, code_of_signal, listen_to_the_parent, orphans};

/// How long one sleep on the leader may be.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What the waiting threads tell.
#[derive(Debug)]
enum News {
    /// The lock is ours.
    Locked(std::io::Result<()>),
    /// The lead passes a signal on.
    Signal(i32),
    /// The lead is gone.
    LeadGone,
    /// Another one leads, or nobody.
    Lost,
    /// The command has ended.
    Ended(std::io::Result<ExitStatus>),
}

/// Runs the command; its exit code.
///
/// # Errors
/// [`LeadError`].
pub fn run(arguments: &JobArguments) -> Result<u8, LeadError> {
    for signal in [SIGTERM, SIGINT] {
        // A handler that does nothing: to ignore the signals would be inherited by the command.
        signal_hook::flag::register(signal, Arc::default())
            .map_err(LeadError::file("handle", "SIGTERM and SIGINT"))?;
    }
    let table: &HeartbeatTable = Box::leak(Box::new(HeartbeatTable::attach(&arguments.table)?));
    let election = SharedLeaderElection::open(table, &arguments.name)?;
    let election: &SharedLeaderElection<'_> = Box::leak(Box::new(election));
    become_subreaper()?;
    let (sender, news) = channel();
    let lead = sender.clone();
    listen_to_the_parent(move |signal| {
        // Nobody listens when the process is about to end.
        let _ = lead.send(signal.map_or(News::LeadGone, News::Signal));
    });
    let leads = |leader: &Leader| leader.term == arguments.term;
    let Some(leader) = election.current_leader().filter(leads) else {
        return Ok(0);
    };
    watch_the_leader(election, leader, sender.clone());
    let path = lock_of(table, &arguments.name);
    let lock = open_lock(&path).map_err(LeadError::file("open", &path))?;
    // Held until this process ends.
    take_lock(Box::leak(Box::new(lock)), sender.clone());
    loop {
        match news.recv() {
            Ok(News::Locked(locked)) => {
                locked.map_err(LeadError::file("lock", &path))?;
                break;
            }
            Ok(News::Signal(signal)) => return Ok(code_of_signal(signal)),
            // The lead looks itself whether it is one still.
            Ok(News::Lost | News::LeadGone) | Err(_) => return Ok(0),
            Ok(News::Ended(_)) => {}
        }
    }
    if election.current_leader() != Some(leader) {
        return Ok(0);
    }
    let group = start(arguments, sender)?;
    let ended = end_with_the_leadership(group, &news, Duration::from_nanos(arguments.grace_ns));
    orphans::end(&[]);
    ended
}

fn watch_the_leader(
    election: &'static SharedLeaderElection<'static>,
    leader: Leader,
    sender: Sender<News>,
) {
    thread::spawn(move || {
        while election
            .wait_for_change(Some(leader), LOOK_AGAIN)
            .is_ok_and(|now| now == Some(leader))
        {}
        // Nobody listens when the process is about to end.
        let _ = sender.send(News::Lost);
    });
}

/// As the files of a region: no link is followed, and who can lock it is this user alone.
fn open_lock(path: &Path) -> std::io::Result<File> {
    // A pipe in its place must not make us wait for its reader.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let lock = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.cast_signed())
        .open(path)?;
    let found = lock.metadata()?;
    let (owner, mode) = (found.uid(), found.mode());
    if !found.is_file() || owner != geteuid().as_raw() || mode & 0o077 != 0 {
        let found = format!("owner {owner}, mode {mode:o}: wanted a file of this user alone");
        return Err(std::io::Error::other(found));
    }
    Ok(lock)
}

fn take_lock(lock: &'static File, sender: Sender<News>) {
    thread::spawn(move || {
        // Nobody listens when the process is about to end.
        let _ = sender.send(News::Locked(lock.lock()));
    });
}

/// Starts the command; its end is told.
fn start(arguments: &JobArguments, sender: Sender<News>) -> Result<Group, LeadError> {
    // The command line requires one.
    let none = || LeadError::Command {
        program: OsString::new(),
        error: ErrorKind::NotFound.into(),
    };
    let (program, rest) = arguments.command.split_first().ok_or_else(none)?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null());
    let (group, process) = Group::start(&mut command).map_err(|error| match error {
        GuardError::Spawn { program, error } => LeadError::Command { program, error },
        other => other.into(),
    })?;
    group.tell_of_the_end(process, move |status| {
        // Nobody listens when the process is about to end.
        let _ = sender.send(News::Ended(status));
    });
    Ok(group)
}

/// Until the command has ended; its exit code.
fn end_with_the_leadership(
    group: Group,
    news: &Receiver<News>,
    grace: Duration,
) -> Result<u8, LeadError> {
    let mut killed_at: Option<Instant> = None;
    loop {
        let left = killed_at.map_or(LOOK_AGAIN, |at| {
            at.saturating_duration_since(Instant::now())
        });
        match news.recv_timeout(left) {
            Ok(News::Ended(status)) => {
                let status = status.map_err(LeadError::file("wait for", "the command"))?;
                return Ok(code_of(status));
            }
            Ok(News::Signal(signal)) => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    group.signal(signal);
                }
            }
            Ok(News::Lost) => {
                group.signal(Signal::TERM);
                killed_at = Some(Instant::now() + grace);
            }
            Ok(News::LeadGone) => group.signal(Signal::KILL),
            Err(RecvTimeoutError::Timeout) if killed_at.is_some() => {
                group.signal(Signal::KILL);
                killed_at = None;
            }
            Err(RecvTimeoutError::Timeout) => orphans::take_leave_but_of(group.id()),
            Ok(News::Locked(_)) | Err(RecvTimeoutError::Disconnected) => {}
        }
    }
}
