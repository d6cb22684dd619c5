//! Asking the kernel about a process through a pidfd (Linux 5.3), which a later process under the same
//! pid does not take over.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::by_pid::Process;

pub(super) fn open(pid: Pid) -> Result<OwnedFd, Errno> {
    pidfd_open(pid, PidfdFlags::empty())
}

pub(super) fn kernel_says(opened: Result<OwnedFd, Errno>) -> Process {
    match opened {
        Ok(pidfd) => {
            let mut wait = [PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN)];
            let at_once = Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            match poll(&mut wait, Some(&at_once)) {
                // Readable once the last thread has ended.
                Ok(1) if wait[0].revents().contains(PollFlags::IN) => Process::Ended,
                Ok(0) => Process::Running,
                _ => Process::Unseen,
            }
        }
        Err(Errno::SRCH) => Process::Missing,
        Err(_) => Process::Unseen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_by_the_kernel_proves_nothing() {
        for errno in [
            Errno::PERM,
            Errno::NOSYS,
            Errno::INVAL,
            Errno::MFILE,
            Errno::NODEV,
        ] {
            assert_eq!(kernel_says(Err(errno)), Process::Unseen, "{errno}");
        }
        assert_eq!(kernel_says(Err(Errno::SRCH)), Process::Missing);
    }
}
