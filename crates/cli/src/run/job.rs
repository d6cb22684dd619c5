//! The job: registers, starts the command, beats for it, ends it when its slot is lost.
//!
//! Contract: one thread decides everything, and beats each time it comes round, if the command is on
//! time. The others only wait, each for one thing, and tell. SIGTERM and its like come from `run` alone:
//! who sends them to all processes of a service would else end the job before its command.
//!
//! ```text
//!   register ─ start ─▶ running ── command ends ──▶ kill who is left of it ─┬ well, or as asked, or fenced:
//!                        │ signal from run ──▶ to the group                 │   give the slot back
//!                        │ fenced ───────────▶ SIGTERM, then SIGKILL        └ else: end with the slot
//!                        │ run is gone ──────▶ SIGKILL
//!                        └ table replaced ───▶ register in the new one
//! ```

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{ErrorKind, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use bumpless_heartbeat::{Handle, HeartbeatError, HeartbeatTable, Label, Profile};
use bumpless_substrate::guard::{GuardError, become_subreaper};
use bumpless_substrate::sync::Ordering;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::Signal;

use super::args::JobArguments;
use super::error::RunError;
use super::progress::Progress;
use super::runner::Told;
use super::say;
use super::signals::{passed_on, unblock};
use super::ways::{Times, Way};
use crate::kept::{Group, code_of, code_of_signal, listen_to_the_parent, orphans};

/// The longest time between two beats; a watchdog with a shorter period gets one in each of them.
const BEATS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(1)..=Duration::from_millis(50);

/// Between two tries to register in the table that has taken the place of the one before.
const REGISTERS_EVERY: Duration = Duration::from_secs(1);

/// Between two times that it takes leave of the dead.
const REAPS_EVERY: Duration = Duration::from_secs(1);

/// What the waiting threads tell.
#[derive(Debug)]
enum News {
    /// A signal to pass on.
    Signal(i32),
    /// `run` is gone.
    RunGone,
    /// The command has ended.
    Ended(std::io::Result<ExitStatus>),
}

/// Runs the command; its exit code.
///
/// # Errors
/// [`RunError`].
pub fn run(arguments: &JobArguments) -> Result<u8, RunError> {
    for signal in passed_on() {
        // A handler that does nothing: to ignore the signals would be inherited by the command.
        signal_hook::flag::register(signal, Arc::default())
            .map_err(RunError::file("handle", "signals"))?;
    }
    // Only now: one that is sent to all of a service must not end us.
    unblock(&arguments.unblock).map_err(RunError::file("unblock", "signals"))?;
    let ended = attend(arguments);
    if ended.is_err() {
        tell(Told::GivesUp);
    }
    if let Some(folder) = &arguments.notify_folder {
        // For the next job.
        let _ = std::fs::remove_file(folder.join("socket"));
    }
    ended
}

fn attend(arguments: &JobArguments) -> Result<u8, RunError> {
    // The command line requires one.
    let none = || RunError::Command {
        program: OsString::new(),
        error: ErrorKind::NotFound.into(),
    };
    let (program, rest) = arguments.command.split_first().ok_or_else(none)?;
    let mut command = Command::new(program);
    command.args(rest);
    let way = Way::open(arguments, &mut command)?;
    command.stdin(receive_input().map_err(RunError::file("take", "the standard input"))?);
    let seat = Seat::take(&arguments.table, &arguments.label)?;
    command
        .env("BUMPLESS_TABLE", &arguments.table)
        .env("BUMPLESS_SLOT", seat.handle.slot().to_string())
        .env("BUMPLESS_LABEL", &arguments.label);
    become_subreaper()?;
    let times = Times {
        progress_within: Duration::from_nanos(arguments.progress_within_ns),
        stop_within: Duration::from_nanos(arguments.stop_within_ns),
    };
    let within = way.is_some().then_some(times.progress_within);
    let progress = Arc::new(Progress::new(within, Instant::now()));
    let (sender, news) = channel();
    let (group, process) = match Group::start(&mut command) {
        Ok(started) => started,
        Err(error) => {
            // Nobody has died.
            let _ = seat.table.unregister(seat.handle);
            return Err(match error {
                GuardError::Spawn { program, error } => RunError::Command { program, error },
                other => other.into(),
            });
        }
    };
    // The command has its input, and its end of the pipe, alone.
    drop(command);
    let last_words = way.watch(&progress, group, times);
    listen(&sender);
    let tell = move |status| {
        // Nobody listens when the process is about to end.
        let _ = sender.send(News::Ended(status));
    };
    group.bury_and_tell(process, || last_words.hear(), tell);
    let mut watch = Watch {
        arguments,
        seat,
        registers_at: Instant::now(),
        reaps_at: Instant::now(),
        group,
        progress,
        stop_within: times.stop_within,
        is_fenced: false,
        killed_at: None,
        asked: BTreeSet::new(),
        is_alone: false,
    };
    let status = watch.until_the_end(&news);
    orphans::end(&[]);
    if let Some(folder) = arguments.notify_folder.as_ref().filter(|_| watch.is_alone) {
        // It was for `run` to delete. Left over, it is in nobody's way.
        let _ = std::fs::remove_dir_all(folder);
    }
    let status = status.map_err(RunError::file("wait for", "the command"))?;
    let code = code_of(status);
    if watch.is_fenced || watch.ended_well(code) {
        // A slot that is not ours any more needs nothing from us.
        let _ = watch.seat.table.unregister(watch.seat.handle);
    }
    Ok(code)
}

/// The standard input of the command, which `run` sends as its first word.
fn receive_input() -> std::io::Result<OwnedFd> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut into = [IoSliceMut::new(&mut byte)];
    recvmsg(
        std::io::stdin(),
        &mut into,
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let given = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut given) => given.next(),
        _ => None,
    });
    given.ok_or_else(|| std::io::Error::other("run is gone"))
}

fn listen(sender: &Sender<News>) {
    let sender = sender.clone();
    listen_to_the_parent(move |signal| {
        // Nobody listens when the process is about to end.
        let _ = sender.send(signal.map_or(News::RunGone, News::Signal));
    });
}

/// Tells `run`, which may be gone.
fn tell(what: Told) {
    if let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() {
        let _ = UnixStream::from(socket).write_all(&[what as u8]);
    }
}

/// A registration, which ends with the process unless it is given back.
#[derive(Debug)]
struct Seat {
    table: &'static HeartbeatTable,
    handle: Handle,
}

impl Seat {
    fn take(path: &Path, label: &str) -> Result<Self, RunError> {
        let label = Label::new(label)?;
        // Never dropped: that would give the slot back.
        let table: &HeartbeatTable = Box::leak(Box::new(HeartbeatTable::attach(path)?));
        let profile = Profile {
            label,
            ..Profile::default()
        };
        let handle = table.register_as(std::process::id(), profile)?;
        Ok(Self { table, handle })
    }

    fn beats_every(&self) -> Duration {
        // Relaxed: a number on its own.
        let period_ns = self.table.header().period_ns.load(Ordering::Relaxed);
        match period_ns {
            0 => *BEATS.end(),
            planned => Duration::from_nanos(planned / 2).clamp(*BEATS.start(), *BEATS.end()),
        }
    }
}

/// A command that runs.
#[derive(Debug)]
struct Watch<'a> {
    arguments: &'a JobArguments,
    seat: Seat,
    /// When it tries to register anew, if its table was replaced.
    registers_at: Instant,
    /// When it takes leave of those whom the command has left to it.
    reaps_at: Instant,
    group: Group,
    progress: Arc<Progress>,
    stop_within: Duration,
    is_fenced: bool,
    killed_at: Option<Instant>,
    /// The signals that were passed on.
    asked: BTreeSet<i32>,
    /// `run` is gone.
    is_alone: bool,
}

impl Watch<'_> {
    fn until_the_end(&mut self, news: &Receiver<News>) -> std::io::Result<ExitStatus> {
        loop {
            let now = Instant::now();
            if !self.is_fenced && self.has_lost_its_slot(now) {
                self.end_the_command(now);
            }
            if self.killed_at.is_some_and(|at| at <= now) {
                self.killed_at = None;
                self.group.signal(Signal::KILL);
            }
            if self.reaps_at <= now {
                self.reaps_at = now + REAPS_EVERY;
                orphans::take_leave_but_of(self.group.id());
            }
            match news.recv_timeout(self.seat.beats_every()) {
                Ok(News::Ended(status)) => return status,
                Ok(News::Signal(signal)) => {
                    self.asked.insert(signal);
                    if let Some(signal) = Signal::from_named_raw(signal) {
                        self.group.signal(signal);
                    }
                }
                Ok(News::RunGone) => {
                    self.is_alone = true;
                    self.group.signal(Signal::KILL);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    /// Beats, if the command is on time.
    fn has_lost_its_slot(&mut self, now: Instant) -> bool {
        let Seat { table, handle } = self.seat;
        let beat = if self.progress.is_on_time(now) {
            table.beat(handle)
        } else {
            table.check(handle)
        };
        match beat {
            Ok(()) => false,
            Err(HeartbeatError::Fenced { .. }) => {
                say(&format!("{handle}: fenced: ending the command"));
                true
            }
            Err(error @ (HeartbeatError::Superseded { .. } | HeartbeatError::Orphaned { .. })) => {
                self.register_anew(&error, now);
                false
            }
            Err(error) => {
                say(&format!("{error}: ending the command"));
                true
            }
        }
    }

    /// The path names another table, or none: that is not the command's fault.
    fn register_anew(&mut self, why: &HeartbeatError, now: Instant) {
        if now < self.registers_at {
            return;
        }
        self.registers_at = now + REGISTERS_EVERY;
        match Seat::take(&self.arguments.table, &self.arguments.label) {
            Ok(seat) => {
                say(&format!("{why}: registered anew: {}", seat.handle));
                let former = std::mem::replace(&mut self.seat, seat);
                // Nobody watches there any more.
                let _ = former.table.unregister(former.handle);
            }
            Err(error) => say(&format!("{why}: nobody watches the command: {error}")),
        }
    }

    fn end_the_command(&mut self, now: Instant) {
        tell(Told::Fenced);
        self.is_fenced = true;
        self.killed_at = Some(now + self.stop_within);
        self.group.signal(Signal::TERM);
        // One that is stopped can end, too.
        self.group.signal(Signal::CONT);
    }

    /// By itself and without an error, or as it was asked to.
    fn ended_well(&self, code: u8) -> bool {
        let as_asked = || {
            self.asked
                .iter()
                .any(|signal| code_of_signal(*signal) == code)
        };
        !self.is_alone && (code == 0 || as_asked())
    }
}
