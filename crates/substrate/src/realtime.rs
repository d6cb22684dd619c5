//! What makes a loop keep its deadlines: a real-time priority, and memory that stays in memory.
//!
//! Contract: both act on the calling process or thread at once, and both are refused without the right to
//! them; a caller goes on without, and says so.

use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};

/// Gives the calling thread the policy SCHED_FIFO with this priority, 1 (low) to 99: it runs until it
/// waits, before every thread of a normal policy. Wants `CAP_SYS_NICE` or `RLIMIT_RTPRIO`.
///
/// A thread that never waits then starves its processor; the kernel's real-time throttling is the only
/// limit.
///
/// # Errors
/// What the kernel answered: `EPERM` without the right, `EINVAL` for another priority.
pub fn use_fifo(priority: i32) -> Result<(), Errno> {
    let parameters = libc::sched_param {
        sched_priority: priority,
    };
    // SAFETY: `sched_setscheduler` reads the structure that the pointer names for the duration of the
    // call; it is on this stack frame. Pid 0 is the calling thread.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}

/// Keeps every page of the process in memory, those that it will map later included, so that none of them
/// has to be read back when a deadline is near. Wants `CAP_IPC_LOCK` or `RLIMIT_MEMLOCK`.
///
/// # Errors
/// What the kernel answered: `EPERM` or `ENOMEM` without the right.
pub fn lock_memory() -> Result<(), Errno> {
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_that_does_not_exist_is_refused() {
        assert_eq!(use_fifo(1_000), Err(Errno::INVAL));
    }
}
