//! Proof by process id: what the kernel says of the process that has the id now.
//!
//! Contract: `Gone` and `Alive` are only said of the very process that the identity names. A
//! zombie is gone, reaped or not; a process whose first thread has ended lives as long as its other
//! threads. What cannot be decided from here (another pid namespace, no permission, an old kernel)
//! is `Unknown`, which is not dead.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::Proof;
use crate::identity::{self, ProcessIdentity};

/// Asks the kernel about a process: about 6 us, for suspects alone.
///
/// ```
/// use bumpless_substrate::identity::current;
/// use bumpless_substrate::proof::{Proof, prove_by_pid};
/// let us = current()?;
/// assert_eq!(prove_by_pid(&us), Proof::Alive);
/// let former_owner_of_our_pid = bumpless_substrate::identity::ProcessIdentity {
///     start_ticks: us.start_ticks - 1,
///     ..us
/// };
/// assert_eq!(prove_by_pid(&former_owner_of_our_pid), Proof::Gone);
/// # Ok::<(), bumpless_substrate::identity::IdentityError>(())
/// ```
#[must_use]
pub fn prove_by_pid(owner: &ProcessIdentity) -> Proof {
    let Ok(us) = identity::current() else {
        return Proof::Unknown;
    };
    if owner.pid_namespace == 0 || owner.pid_namespace != us.pid_namespace {
        return Proof::Unknown;
    }
    let Some(pid) = i32::try_from(owner.pid).ok().and_then(Pid::from_raw) else {
        return Proof::Unknown;
    };
    let opened = pidfd_open(pid, PidfdFlags::empty());
    // Read after the descriptor was opened: if the numbers agree, the descriptor is the owner's.
    let start = start_of(owner, &us);
    judge(kernel_says(opened), start)
}

/// What a pid means to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Process {
    /// Nothing.
    Missing,
    /// A process that has ended and was not reaped.
    Ended,
    /// A process of which at least one thread runs.
    Running,
    /// The kernel does not say: no permission, no such call, or the pid is a thread's.
    Unseen,
}

/// How the start time of the process that has the pid now compares with the owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Same,
    Other,
    /// Not readable, or not comparable.
    Unknown,
}

fn judge(process: Process, start: Start) -> Proof {
    match (process, start) {
        (Process::Missing, _) | (_, Start::Other) | (Process::Ended, _) => Proof::Gone,
        (Process::Running, Start::Same) => Proof::Alive,
        (Process::Running, Start::Unknown) | (Process::Unseen, _) => Proof::Unknown,
    }
}

fn kernel_says(opened: Result<OwnedFd, Errno>) -> Process {
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

/// Start times are seen through the reader's time namespace, so they compare only within one.
fn start_of(owner: &ProcessIdentity, us: &ProcessIdentity) -> Start {
    let comparable = owner.start_ticks != 0
        && owner.time_namespace != 0
        && owner.time_namespace == us.time_namespace;
    if !comparable {
        return Start::Unknown;
    }
    let stat = std::fs::read(format!("/proc/{}/stat", owner.pid));
    match stat.ok().as_deref().and_then(identity::start_ticks) {
        Some(found) if found == owner.start_ticks => Start::Same,
        Some(_) => Start::Other,
        None => Start::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_of_evidence_has_its_verdict() {
        use Process::{Ended, Missing, Running, Unseen};
        let starts = [Start::Same, Start::Other, Start::Unknown];
        let verdicts = [
            (Missing, [Proof::Gone, Proof::Gone, Proof::Gone]),
            (Ended, [Proof::Gone, Proof::Gone, Proof::Gone]),
            (Running, [Proof::Alive, Proof::Gone, Proof::Unknown]),
            (Unseen, [Proof::Unknown, Proof::Gone, Proof::Unknown]),
        ];
        for (process, wanted) in verdicts {
            for (start, wanted) in starts.into_iter().zip(wanted) {
                assert_eq!(judge(process, start), wanted, "{process:?}, {start:?}");
            }
        }
    }

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

    #[test]
    fn an_owner_of_another_or_an_unknown_pid_namespace_is_unknown() {
        let us = identity::current().unwrap();
        for pid_namespace in [0, us.pid_namespace + 1] {
            // Even though nobody has that pid here.
            let owner = ProcessIdentity {
                pid: 4_194_305,
                pid_namespace,
                ..us
            };
            assert_eq!(prove_by_pid(&owner), Proof::Unknown);
        }
    }

    #[test]
    fn start_times_of_different_time_namespaces_are_not_compared() {
        let us = identity::current().unwrap();
        for time_namespace in [0, us.time_namespace + 1] {
            let owner = ProcessIdentity {
                time_namespace,
                start_ticks: us.start_ticks + 5,
                ..us
            };
            assert_eq!(prove_by_pid(&owner), Proof::Unknown);
        }
    }

    #[test]
    fn pid_0_and_pids_beyond_the_kernels_range_are_nobody() {
        let us = identity::current().unwrap();
        assert_eq!(
            prove_by_pid(&ProcessIdentity { pid: 0, ..us }),
            Proof::Unknown
        );
        assert_eq!(
            prove_by_pid(&ProcessIdentity {
                pid: u32::MAX,
                ..us
            }),
            Proof::Unknown
        );
        assert_eq!(
            prove_by_pid(&ProcessIdentity {
                pid: 4_194_305,
                ..us
            }),
            Proof::Gone
        );
    }
}
