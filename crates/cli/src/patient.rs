//! Standard output whose reader may take its time, until the end is asked for.
//!
//! ```text
//!   write ── the reader takes nothing ──▶ wait ── it takes something ──▶ written
//!                                          └── end asked for, and nothing taken for so long ──▶ an error
//! ```
//! Contract: no write waits in the kernel, where only a second signal would end it: a pipe that is polled for
//! has room for `PIPE_BUF` bytes.

use std::fmt;
use std::io::{Error, ErrorKind, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::PIPE_BUF;

/// How long a reader that takes nothing holds up the end.
const PATIENCE: Duration = Duration::from_secs(3);

/// Between two looks whether the end is asked for.
const LOOKS: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Standard output.
pub struct Patient<F>(F);

impl<F: Fn() -> bool> Patient<F> {
    /// One that waits for its reader until the end is asked for.
    #[must_use]
    pub fn until(is_end_asked: F) -> Self {
        Self(is_end_asked)
    }
}

impl<F> fmt::Debug for Patient<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Patient").finish_non_exhaustive()
    }
}

impl<F: Fn() -> bool> Write for Patient<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let stdout = std::io::stdout();
        let chunk = bytes.get(..PIPE_BUF).unwrap_or(bytes);
        let mut gives_up_at = None;
        loop {
            let mut ends = [PollFd::new(&stdout, PollFlags::OUT)];
            if retry_on_intr(|| poll(&mut ends, Some(&LOOKS)))? > 0 {
                match rustix::io::write(&stdout, chunk) {
                    // Somebody else has filled it meanwhile.
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    written => return Ok(written?),
                }
            } else if (self.0)() {
                let now = Instant::now();
                if now >= *gives_up_at.get_or_insert(now + PATIENCE) {
                    return Err(Error::new(ErrorKind::TimedOut, "nobody reads it"));
                }
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
