//! SIGTSTP, kept pending until all is ready for the stop, which is then the kernel's.
//!
//! ```text
//!   SIGTSTP ──▶ pending ── all is ready ──▶ let through: stopped ── SIGCONT ──▶ goes on
//!                  └── SIGCONT: taken back by the kernel ─────────────────────────▲
//! ```
//! Contract: of SIGTSTP and SIGCONT the one that was sent last holds, however soon after the other. To send one
//! takes back the other as long as that is pending, and the kernel looks again at the very moment of the stop.
//! Where SIGTSTP was ignored when we were started, and in a process group that no shell looks after (orphaned),
//! it stops nobody.

use std::io::Result;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// SIGTSTP, blocked. As a descriptor it has input while the signal is pending.
#[derive(Debug)]
pub struct StopSignal {
    /// Never read: that would take the signal from the kernel.
    pending: SignalFd,
}

impl StopSignal {
    /// Blocks it in the calling thread and in those that this starts from now on. In others it must be
    /// blocked already, or it stops us through them.
    ///
    /// # Errors
    /// What the system said.
    pub fn block() -> Result<Self> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let pending = SignalFd::with_flags(&only(), flags)?;
        only().thread_block()?;
        Ok(Self { pending })
    }

    /// Whether it was sent, and not taken back since.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        let mut ends = [PollFd::new(&self.pending, PollFlags::IN)];
        poll(&mut ends, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    /// Stops here until SIGCONT, if it is pending still.
    ///
    /// # Errors
    /// What the system said.
    pub fn let_through(&self) -> Result<()> {
        only().thread_unblock()?;
        only().thread_block()?;
        Ok(())
    }
}

impl AsFd for StopSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pending.as_fd()
    }
}

fn only() -> SigSet {
    SigSet::from(Signal::SIGTSTP)
}
