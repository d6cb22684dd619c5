//! The runner: starts jobs, passes signals on, starts again by policy.
//!
//! ```text
//!   ┌▶ start a job ── signals ──▶ to the job ── ended ── well, or asked, or no policy, or too often ──▶ end
//!   └── wait: 200 ms, twice as long each time ◀──────────── failed, killed, fenced
//! ```
//! Contract: at most one job at a time, and the next one only when nobody is left of the last one.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io::{IoSlice, IsTerminal, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use bumpless_heartbeat::Label;
use bumpless_substrate::guard::become_subreaper;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use super::args::{Restart, RunArguments};
use super::error::RunError;
use super::signals::pass_signals_on;
use super::{say, site};
use crate::backoff::Backoff;
use crate::kept::{code_of, code_of_signal, orphans};
use crate::look::path_line;

/// Between two looks at the slot of the job, which may itself be stopped.
const LOOKS: Duration = Duration::from_secs(1);

/// A fenced job that has not ended its command so long after it should have is killed, and its command with
/// it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a job tells on its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Told {
    /// The slot was fenced.
    Fenced = b'F',
    /// There is no use in another job: the job, not the command, could not go on.
    GivesUp = b'X',
}

/// What the waiting threads tell.
#[derive(Debug)]
pub enum News {
    /// A signal to pass on.
    Signal(i32),
    /// SIGTSTP; this process stops when that is dropped, unless it is told to go on before.
    Stop(Sender<Infallible>),
    /// The job has ended.
    Ended(std::io::Result<ExitStatus>),
}

/// How a job ended.
#[derive(Debug, Clone, Copy)]
struct Ending {
    code: u8,
    is_fenced: bool,
    gives_up: bool,
}

/// Runs the command until it need not be started again; its exit code.
///
/// # Errors
/// [`RunError`].
pub fn run(arguments: &RunArguments) -> Result<u8, RunError> {
    let label = label_of(arguments)?;
    let table = site::open(arguments.table.as_deref())?;
    // The command may go to another folder.
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(RunError::file("find the folder of", path));
    let path = absolute(table.path())?;
    let way = &arguments.way;
    let beat_file = way.beat_file.as_deref().map(absolute).transpose()?;
    if (way.beat_file.is_some() || way.beat_fd.is_some() || way.notify) && !site::is_watched(&table)
    {
        let quoted = shlex::bytes::try_quote(path.as_os_str().as_bytes());
        // Without a NUL, as every path is.
        let quoted = String::from_utf8_lossy(quoted.as_deref().unwrap_or_default());
        say(&format!(
            "{}: nobody watches, so a hang is not seen: bumpless watch {quoted}",
            path_line(&path)
        ));
    }
    drop(table);
    become_subreaper()?;
    let (sender, news) = channel();
    let blocked = pass_signals_on(&sender)?;
    // Of its own, so that it goes when this process ends.
    let folder = arguments.way.notify.then(tempfile::tempdir).transpose();
    let folder = folder.map_err(RunError::file("make", std::env::temp_dir()))?;
    let runner = Runner {
        arguments,
        path,
        label,
        beat_file,
        notify_folder: folder.as_ref().map(|folder| folder.path().to_owned()),
        spared: orphans::children(),
        blocked,
        sender,
    };
    runner.run_until_done(&news)
}

/// The label given, or as much of the command's name as fits.
fn label_of(arguments: &RunArguments) -> Result<String, RunError> {
    if let Some(label) = &arguments.label {
        Label::new(label)?;
        return Ok(label.clone());
    }
    let program = arguments.command.first().map(Path::new);
    let name = program
        .and_then(Path::file_name)
        .unwrap_or(OsStr::new("run"));
    let mut label = name.to_string_lossy().into_owned();
    while Label::new(&label).is_err() {
        label.pop();
    }
    Ok(label)
}

struct Runner<'a> {
    arguments: &'a RunArguments,
    path: PathBuf,
    label: String,
    beat_file: Option<PathBuf>,
    notify_folder: Option<PathBuf>,
    /// Children that this process had from the start.
    spared: Vec<Pid>,
    /// Signals that we have blocked, and our jobs are to unblock.
    blocked: Vec<i32>,
    sender: Sender<News>,
}

impl Runner<'_> {
    fn run_until_done(&self, news: &Receiver<News>) -> Result<u8, RunError> {
        let mut backoff = Backoff::default();
        loop {
            let started = Instant::now();
            let (socket, job) = self.start()?;
            let mut asked = BTreeSet::new();
            let ending = self.attend(socket, job, news, &mut asked)?;
            if !self.starts_again(ending, &asked) {
                return Ok(ending.code);
            }
            let wait = backoff.after_failure(started.elapsed());
            let restarts = backoff.failures();
            if self.arguments.restart_max.is_some_and(|max| restarts > max) {
                let label = &self.label;
                let max = restarts - 1;
                say(&format!(
                    "{label}: exit code {}: giving up after {max} restarts",
                    ending.code
                ));
                return Ok(ending.code);
            }
            let how = if ending.is_fenced { ", fenced" } else { "" };
            let Ending { code, .. } = ending;
            say(&format!(
                "{}: exit code {code}{how}: again in {wait:?}",
                self.label
            ));
            if let Some(signal) = wait_unless_ended(wait, news) {
                return Ok(code_of_signal(signal));
            }
        }
    }

    fn starts_again(&self, ending: Ending, asked: &BTreeSet<i32>) -> bool {
        let is_over = |signal: &i32| {
            matches!(*signal, SIGTERM | SIGINT | SIGQUIT) || code_of_signal(*signal) == ending.code
        };
        if ending.gives_up || asked.iter().any(is_over) {
            return false;
        }
        match self.arguments.restart {
            Restart::No => false,
            Restart::Always => true,
            Restart::OnFailure => ending.code != 0 || ending.is_fenced,
        }
    }

    /// Starts a job: this very program, whatever its file was replaced by.
    fn start(&self) -> Result<(UnixStream, Pid), RunError> {
        let tried = || RunError::file("start", "the job");
        let (ours, theirs) = UnixStream::pair().map_err(tried())?;
        send_input(&ours).map_err(tried())?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("bumpless").args(self.words());
        // A terminal's signals are for this process, which passes them on.
        command.stdin(OwnedFd::from(theirs)).process_group(0);
        let mut process = command.spawn().map_err(tried())?;
        let job = Pid::from_child(&process);
        let (sender, spared) = (self.sender.clone(), self.spared.clone());
        thread::spawn(move || {
            let status = process.wait();
            if !status.as_ref().is_ok_and(|status| status.code().is_some()) {
                orphans::end(&spared);
            }
            // Nobody listens when the process is about to end.
            let _ = sender.send(News::Ended(status));
        });
        Ok((ours, job))
    }

    /// Until the job has ended; `asked` gets the signals that were passed on.
    fn attend(
        &self,
        mut socket: UnixStream,
        job: Pid,
        news: &Receiver<News>,
        asked: &mut BTreeSet<i32>,
    ) -> Result<Ending, RunError> {
        let mut fenced_at = None;
        loop {
            match news.recv_timeout(LOOKS) {
                Ok(News::Signal(signal)) => {
                    asked.insert(signal);
                    // A job that has ended has told so, or is about to.
                    let _ = socket.write_all(&[signal as u8]);
                }
                Ok(News::Stop(_done)) => {
                    asked.insert(SIGTSTP);
                    let _ = socket.write_all(&[SIGTSTP as u8]);
                }
                Ok(News::Ended(status)) => {
                    let status = status.map_err(RunError::file("wait for", "the job"))?;
                    let mut told = Vec::new();
                    // What cannot be read was not told.
                    let _ = socket.set_nonblocking(true);
                    let _ = socket.read_to_end(&mut told);
                    return Ok(Ending {
                        code: code_of(status),
                        is_fenced: fenced_at.is_some() || told.contains(&(Told::Fenced as u8)),
                        gives_up: told.contains(&(Told::GivesUp as u8)),
                    });
                }
                // This process keeps a sender: they are never all gone.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    if fenced_at.is_some() || site::is_fenced(&self.path, job) {
                        let since = *fenced_at.get_or_insert_with(Instant::now);
                        if since.elapsed() > self.arguments.stop_within + PATIENCE {
                            // Not yet waited for, or gone: then it needs no signal.
                            let _ = kill_process(job, Signal::KILL);
                        }
                    }
                }
            }
        }
    }

    fn words(&self) -> Vec<OsString> {
        let arguments = self.arguments;
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut words: Vec<OsString> = vec!["run-job".into(), "--table".into()];
        words.push(self.path.clone().into());
        // One word: a label may begin with a dash.
        words.push(format!("--label={}", self.label).into());
        let within = ns(arguments.progress_within);
        words.push(format!("--progress-within-ns={within}").into());
        words.push(format!("--stop-within-ns={}", ns(arguments.stop_within)).into());
        if let Some(number) = arguments.way.beat_fd {
            words.push(format!("--beat-fd={number}").into());
        }
        let paths = [
            ("--beat-file=", &self.beat_file),
            ("--notify-folder=", &self.notify_folder),
        ];
        for (name, path) in paths {
            words.extend(path.iter().map(|path| {
                let mut word = OsString::from(name);
                word.push(path);
                word
            }));
        }
        words.extend(self.blocked.iter().map(|signal| {
            let word = format!("--unblock={signal}");
            OsString::from(word)
        }));
        words.push("--".into());
        words.extend(arguments.command.iter().cloned());
        words
    }
}

/// Sends the command's standard input to the job, whose own is the socket.
fn send_input(socket: &UnixStream) -> std::io::Result<()> {
    let own = std::io::stdin();
    let input = if own.is_terminal() {
        // A background group that reads from its terminal is stopped.
        std::fs::File::open("/dev/null")?.into()
    } else {
        own.as_fd().try_clone_to_owned()?
    };
    let given = [input.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    // It has room for one.
    ancillary.push(SendAncillaryMessage::ScmRights(&given));
    sendmsg(
        socket,
        &[IoSlice::new(&[0])],
        &mut ancillary,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// The signal that asked to end meanwhile.
fn wait_unless_ended(wait: Duration, news: &Receiver<News>) -> Option<i32> {
    let deadline = Instant::now() + wait;
    loop {
        match news.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(News::Signal(signal)) if matches!(signal, SIGTERM | SIGINT | SIGQUIT | SIGHUP) => {
                return Some(signal);
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
        }
    }
}
