//! Proof by process id: what the kernel says of the process that has the id now.
//!
//! Contract: `Gone` and `Alive` are only said of the very process that the identity names. A
//! zombie is gone, reaped or not; a process whose first thread has ended lives as long as its other
//! threads. What cannot be decided from here (another pid namespace, no permission, an old kernel)
//! is `Unknown`, which is not dead.
//!
//! Where there is no pidfd (the portable tier, kernels before 5.3, some sandboxes), a signal that is not
//! sent tells only whether anything has the pid: then nobody is `Alive`, and a zombie is `Unknown`.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::Proof;
#[cfg(not(bumpless_portable))]
use super::pidfd;
use crate::identity::{self, ProcessIdentity};

/// Asks the kernel about a process: about 6 us, for suspects alone.
///
/// ```
/// use bumpless_substrate::identity::current;
/// use bumpless_substrate::proof::{Proof, prove_by_pid};
/// let us = current()?;
/// assert_ne!(prove_by_pid(&us), Proof::Gone);
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
    judge_with(pid, || start_of(owner, &us))
}

#[cfg(not(bumpless_portable))]
fn judge_with(pid: Pid, start: impl FnOnce() -> Start) -> Proof {
    let opened = pidfd::open(pid);
    // Read after the descriptor was opened: if the numbers agree, the descriptor is the owner's.
    let start = start();
    match pidfd::kernel_says(opened) {
        Process::Unseen => judge(without_pidfd(pid), start),
        process => judge(process, start),
    }
}

#[cfg(bumpless_portable)]
fn judge_with(pid: Pid, start: impl FnOnce() -> Start) -> Proof {
    judge(without_pidfd(pid), start())
}

/// What a pid means to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    bumpless_portable,
    allow(dead_code, reason = "only a pidfd tells all of them apart")
)]
pub(super) enum Process {
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

/// Whether nothing has the pid; all that can be learned without a pidfd.
fn without_pidfd(pid: Pid) -> Process {
    match test_kill_process(pid) {
        Err(Errno::SRCH) => Process::Missing,
        _ => Process::Unseen,
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
    fn without_a_pidfd_nobody_is_alive_and_who_is_missing_is_gone() {
        let us = Pid::from_raw(std::process::id().cast_signed()).unwrap();
        assert_eq!(without_pidfd(us), Process::Unseen);
        let beyond_the_kernels_range = Pid::from_raw(4_194_305).unwrap();
        assert_eq!(without_pidfd(beyond_the_kernels_range), Process::Missing);
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
