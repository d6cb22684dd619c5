//! The ways to show progress: a file, a descriptor, sd_notify; each watched by a thread.
//!
//! Contract: a thread that hangs on its file or socket never holds up the job. A file is looked at by
//! `stat`, not by inotify: that sees every change on every file system, also of a file that is not there
//! yet or is replaced by another one, and costs a system call now and then. What counts is its change
//! time, inode and size: nobody can set the first back.

use std::convert::Infallible;
use std::fs::File;
use std::io::Read;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

use super::args::JobArguments;
use super::error::RunError;
use super::notify;
use super::progress::Progress;
use crate::kept::Group;

/// Between two looks at a file.
const LOOKS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(5)..=Duration::from_millis(250);

/// For what the command has said before it ended: a few datagrams that are there already.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// One way, before the command is started.
#[derive(Debug)]
pub enum Way {
    /// None: the command is trusted as long as it lives.
    None,
    /// A file.
    File(PathBuf),
    /// A pipe: what the command gets, under its number, and what is read here.
    Pipe {
        /// Inherited by the next process that is started; to be dropped then.
        given: OwnedFd,
        /// The other end.
        read: OwnedFd,
    },
    /// A socket.
    Notify(UnixDatagram),
}

impl Way {
    /// Makes the way that the command line names, and tells it to the command. To be called before
    /// anything else is opened: the descriptor's number must be free.
    ///
    /// # Errors
    /// [`RunError::Descriptor`], [`RunError::File`].
    pub fn open(arguments: &JobArguments, command: &mut Command) -> Result<Self, RunError> {
        if let Some(file) = &arguments.beat_file {
            command.env("BUMPLESS_BEAT_FILE", file);
            return Ok(Self::File(file.clone()));
        }
        if let Some(number) = arguments.beat_fd {
            command.env("BUMPLESS_BEAT_FD", number.to_string());
            let way = pipe(number).map_err(RunError::file("make", "a pipe"))?;
            return way.ok_or(RunError::Descriptor { wanted: number });
        }
        let Some(folder) = &arguments.notify_folder else {
            return Ok(Self::None);
        };
        let path = folder.join("socket");
        let socket = notify::open(&path).map_err(RunError::file("open", &path))?;
        let within_us = arguments.progress_within_ns / 1000;
        command
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", within_us.to_string())
            // Of a service manager above us: names another process.
            .env_remove("WATCHDOG_PID");
        Ok(Self::Notify(socket))
    }

    /// Whether there is one.
    #[must_use]
    pub fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Watches, once the command runs.
    pub fn watch(self, progress: &Arc<Progress>, group: Group, times: Times) -> LastWords {
        let progress = Arc::clone(progress);
        let mut last_words = LastWords(None);
        match self {
            Self::None => {}
            Self::File(path) => {
                let pause = (times.progress_within / 4).clamp(*LOOKS.start(), *LOOKS.end());
                thread::spawn(move || watch_file(&path, pause, &progress));
            }
            Self::Pipe { given, read } => {
                // Held by the command alone from now on.
                drop(given);
                thread::spawn(move || watch_pipe(read.into(), &progress));
            }
            Self::Notify(socket) => {
                let (heard, all_heard) = channel::<Infallible>();
                let socket = Arc::new(socket);
                last_words = LastWords(Some((Arc::clone(&socket), all_heard)));
                thread::spawn(move || {
                    notify::watch(&socket, group, &progress, times.stop_within);
                    drop(heard);
                });
            }
        }
        last_words
    }
}

/// What the command has said with its last breath, and nobody has listened to yet.
#[derive(Debug)]
pub struct LastWords(Option<(Arc<UnixDatagram>, Receiver<Infallible>)>);

impl LastWords {
    /// Waits until it was heard. To be called while the command is dead and not yet waited for: it has its
    /// group still.
    pub fn hear(self) {
        let Some((socket, all_heard)) = self.0 else {
            return;
        };
        // Cannot fail for a socket that is open.
        let _ = socket.shutdown(Shutdown::Both);
        // Over when the listener ends; one that cannot show what it heard must not keep the job.
        let _ = all_heard.recv_timeout(LAST_WORDS);
    }
}

/// What the command is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Without progress.
    pub progress_within: Duration,
    /// From being told to end to being killed.
    pub stop_within: Duration,
}

/// None when the number is in use.
fn pipe(number: i32) -> std::io::Result<Option<Way>> {
    let (read, write) = std::io::pipe()?;
    // Both move above the number, which may be one of theirs.
    let read = fcntl_dupfd_cloexec(OwnedFd::from(read), number + 1)?;
    let write = fcntl_dupfd_cloexec(OwnedFd::from(write), number + 1)?;
    let given = fcntl_dupfd_cloexec(&write, number)?;
    if given.as_raw_fd() != number {
        return Ok(None);
    }
    fcntl_setfd(&given, FdFlags::empty())?;
    Ok(Some(Way::Pipe { given, read }))
}

/// Change time, inode and size; none when the file cannot be seen.
fn seen(path: &Path) -> Option<(i64, i64, u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ctime(), found.ctime_nsec(), found.ino(), found.size()))
}

fn watch_file(path: &Path, pause: Duration, progress: &Progress) {
    let mut last = seen(path);
    loop {
        thread::sleep(pause);
        let now = seen(path);
        // That it was deleted is no progress.
        if now.is_some() && now != last {
            progress.shown(Instant::now());
        }
        last = now.or(last);
    }
}

/// Until nobody has the other end any more.
fn watch_pipe(mut pipe: File, progress: &Progress) {
    let mut bytes = [0; 4096];
    loop {
        match pipe.read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => progress.shown(Instant::now()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
