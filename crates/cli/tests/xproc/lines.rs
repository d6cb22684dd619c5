//! Lines over a pipe with a deadline: how the harness and its children talk.
//!
//! Contract: a line is awaited for a bounded time; a closed pipe is told apart from a quiet one.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The reading end of a pipe, with what was read of the next line.
#[derive(Debug)]
pub struct Lines {
    pipe: OwnedFd,
    read: Vec<u8>,
}

/// What came within the time.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A whole line, without its end.
    Line(String),
    /// Nothing whole.
    Quiet,
    /// The other end is closed.
    Closed,
}

impl Lines {
    pub fn new(pipe: OwnedFd) -> Self {
        let read = Vec::new();
        Self { pipe, read }
    }

    /// The next line, if it comes within `patience`; `None` = however long it takes.
    pub fn next(&mut self, patience: Option<Duration>) -> Next {
        let deadline = patience.map(|patience| Instant::now() + patience);
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                let line = std::mem::replace(&mut self.read, rest);
                return Next::Line(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if !self.is_readable(left) {
                return Next::Quiet;
            }
            let mut chunk = [0; 4096];
            match rustix::io::read(&self.pipe, &mut chunk) {
                Ok(0) => return Next::Closed,
                Ok(len) => self.read.extend_from_slice(&chunk[..len]),
                Err(Errno::INTR) => {}
                Err(errno) => panic!("read a line: {errno}"),
            }
        }
    }

    fn is_readable(&self, left: Option<Duration>) -> bool {
        let left = left.map(|left| Timespec::try_from(left).expect("seconds that fit"));
        let mut pipe = [PollFd::from_borrowed_fd(self.pipe.as_fd(), PollFlags::IN)];
        match poll(&mut pipe, left.as_ref()) {
            Ok(ready) => ready > 0,
            // A signal, such as the one that continues a stopped process: look again.
            Err(Errno::INTR) => left.is_none(),
            Err(errno) => panic!("await a line: {errno}"),
        }
    }
}
