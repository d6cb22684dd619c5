//! Processes in unusual states, for tests of what they do to a table: a fork child that executes no
//! program, and a process that outlives its first thread.
//!
//! Contract: nothing here is needed to use a table, and nothing in it is used by the library.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, waitpid};

/// What a fork child exits with when it panicked.
const PANICKED: i32 = 101;

/// A fork child of this process. Dropping it does not wait: the child then stays a zombie when it ends.
#[derive(Debug)]
pub struct ForkedChild {
    pid: Pid,
}

/// Runs `work` in a fork child, which has copies of all that this process has, and of its threads the
/// calling one alone. The child ends with what `work` returns: no destructor runs, and nothing that
/// this process has begun is finished there a second time.
///
/// A lock that another thread holds now stays held in the child for ever, so `work` should use what the
/// calling thread alone uses. Allocation is safe: the C library's fork takes care of its own locks.
///
/// # Errors
/// What the kernel answered.
///
/// ```
/// let table_is_inherited = 42;
/// let child = bumpless_substrate::unusual::fork_and_run(|| table_is_inherited)?;
/// assert_eq!(child.wait()?, Some(42));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn fork_and_run(work: impl FnOnce() -> i32) -> io::Result<ForkedChild> {
    // SAFETY: private memory is copied as it is, so every value that `work` can reach is as valid as in
    // the parent; what other threads were changing is behind locks that nobody releases in the child.
    // Shared memory is used through atomics alone, which another process may use at any time.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED);
        // SAFETY: ends the process; nothing of it runs afterwards.
        unsafe { libc::_exit(code) };
    }
    let pid = Pid::from_raw(pid).filter(|_| pid > 0);
    let pid = pid.ok_or_else(io::Error::last_os_error)?;
    Ok(ForkedChild { pid })
}

impl ForkedChild {
    /// The child's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until it has ended; what `work` returned, or `None` when a signal ended it.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn wait(self) -> io::Result<Option<i32>> {
        loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Ok(Some((_, status))) => return Ok(status.exit_status()),
                // Without NOHANG the kernel does not return with nothing.
                Ok(None) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Ends the calling thread if it is the process's first one, without running anything more in it: the
/// process goes on with its other threads, and ends with the last of them. Returns, with nothing done,
/// in any other thread.
pub fn end_first_thread() {
    if rustix::thread::gettid() == rustix::process::getpid() {
        // SAFETY: to the rest of the process the thread looks as if it slept for ever: its stack and its
        // thread-local storage stay mapped as long as the process lives, and nobody can join it.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
    }
}
