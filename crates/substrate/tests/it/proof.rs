//! Proofs of death and life of real processes.

use std::os::unix::process::ExitStatusExt;

use bumpless_substrate::identity::{IdentityError, ProcessIdentity, current};
use bumpless_substrate::proof::{Proof, prove_by_pid};

use crate::peer::{self, Peer};
use crate::scene::{eventually, needs_root};

/// What can be known of a living process: without a pidfd, nothing.
const LIVING: Proof = if cfg!(bumpless_portable) {
    Proof::Unknown
} else {
    Proof::Alive
};
/// And of one that has ended and was not reaped.
const UNREAPED: Proof = if cfg!(bumpless_portable) {
    Proof::Unknown
} else {
    Proof::Gone
};

/// Says who it is and lives until it is told otherwise.
fn live() -> ! {
    peer::say_identity();
    peer::listen();
    peer::done()
}

#[test]
fn a_process_lives_until_it_is_killed_and_an_unreaped_one_is_gone() {
    if peer::plays("process") {
        live();
    }
    let mut process = Peer::start(
        a_process_lives_until_it_is_killed_and_an_unreaped_one_is_gone,
        "process",
        &[],
    );
    let identity = process.hear_identity();
    assert_eq!(identity.pid, process.pid());
    assert_eq!(prove_by_pid(&identity), LIVING);
    process.child.kill().unwrap();
    // Nobody waits for it: it stays a zombie, for which kill(pid, 0) says that it lives.
    eventually("its death is proved, or at least not denied", || {
        prove_by_pid(&identity) == UNREAPED
    });
    let pid = rustix::process::Pid::from_raw(identity.pid.try_into().unwrap()).unwrap();
    assert_eq!(rustix::process::test_kill_process(pid), Ok(()));
    assert_eq!(process.child.wait().unwrap().signal(), Some(libc::SIGKILL));
    assert_eq!(prove_by_pid(&identity), Proof::Gone, "reaped");
}

#[test]
fn a_stopped_process_lives() {
    if peer::plays("process") {
        live();
    }
    let mut process = Peer::start(a_stopped_process_lives, "process", &[]);
    let identity = process.hear_identity();
    let pid = rustix::process::Pid::from_raw(identity.pid.try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    assert_eq!(prove_by_pid(&identity), LIVING);
}

/// Ends the thread that runs it, and no other.
extern "C" fn end_this_thread(_signal: libc::c_int) {
    // SAFETY: the thread waits for the test to end and holds no lock; nobody joins it.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
}

/// Ends the process's first thread, which waits for this one.
fn end_first_thread() {
    let handler = end_this_thread as extern "C" fn(libc::c_int);
    // SAFETY: the handler makes one system call.
    unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) };
    let us = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: sends a signal that has a handler.
    unsafe { libc::syscall(libc::SYS_tgkill, us, us, libc::SIGUSR1) };
}

#[test]
fn a_process_lives_on_when_its_first_thread_has_ended() {
    if peer::plays("process") {
        assert_ne!(rustix::thread::gettid(), rustix::process::getpid());
        end_first_thread();
        live();
    }
    let mut process = Peer::start(
        a_process_lives_on_when_its_first_thread_has_ended,
        "process",
        &[],
    );
    let pid = process.pid();
    let stat = format!("/proc/{pid}/stat");
    eventually("the first thread is a zombie", || {
        std::fs::read_to_string(&stat)
            .unwrap()
            .rsplit_once(") ")
            .unwrap()
            .1
            .starts_with('Z')
    });
    let identity = process.hear_identity();
    assert_eq!(identity.pid, pid);
    assert_eq!(prove_by_pid(&identity), LIVING);
    process.kill();
    assert_eq!(prove_by_pid(&identity), Proof::Gone);
}

#[test]
fn a_successor_under_the_same_pid_is_not_its_predecessor() {
    if peer::plays("process") {
        live();
    }
    let mut process = Peer::start(
        a_successor_under_the_same_pid_is_not_its_predecessor,
        "process",
        &[],
    );
    let identity = process.hear_identity();
    let predecessor = ProcessIdentity {
        start_ticks: identity.start_ticks - 1,
        ..identity
    };
    assert_eq!(prove_by_pid(&predecessor), Proof::Gone);
    let unknown_start = ProcessIdentity {
        start_ticks: 0,
        ..identity
    };
    assert_eq!(prove_by_pid(&unknown_start), Proof::Unknown);
    let foreign_time = ProcessIdentity {
        time_namespace: 1,
        ..predecessor
    };
    assert_eq!(prove_by_pid(&foreign_time), Proof::Unknown);
}

#[test]
fn a_pid_that_is_a_thread_s_now_is_not_the_owner() {
    let (tid, said) = std::sync::mpsc::channel();
    let (hang_up, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        tid.send(rustix::thread::gettid().as_raw_nonzero().get())
            .unwrap();
        let _ = wait.recv();
    });
    let pid: u32 = said.recv().unwrap().try_into().unwrap();
    let us = current().unwrap();
    let owner = ProcessIdentity {
        pid,
        start_ticks: us.start_ticks - 1,
        ..us
    };
    assert_eq!(
        prove_by_pid(&owner),
        Proof::Gone,
        "that thread started later"
    );
    drop(hang_up);
    thread.join().unwrap();
}

#[test]
fn a_fork_child_has_an_identity_of_its_own() {
    if peer::plays("process") {
        let before = current().unwrap();
        // SAFETY: this process has no other thread which matters; the child ends by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let own =
                current().is_ok_and(|us| us.pid != before.pid && us.pid == std::process::id());
            // SAFETY: ends the child without running anything of the harness.
            unsafe { libc::_exit(if own { 42 } else { 1 }) };
        }
        let child = rustix::process::Pid::from_raw(child).unwrap();
        let options = rustix::process::WaitOptions::empty();
        let (_, status) = rustix::process::waitpid(Some(child), options)
            .unwrap()
            .unwrap();
        peer::say(status.exit_status().unwrap());
        peer::done();
    }
    let mut process = Peer::start(a_fork_child_has_an_identity_of_its_own, "process", &[]);
    assert_eq!(process.hear(), "42");
}

#[test]
fn nothing_is_proved_across_pid_namespaces() {
    if peer::plays("process") {
        live();
    }
    if peer::plays("without /proc") {
        let error = current().unwrap_err();
        let foreign = matches!(error, IdentityError::ForeignProc { wanted: 1, .. })
            || matches!(
                error,
                IdentityError::Proc {
                    path: "/proc/self",
                    ..
                }
            );
        peer::say(if foreign {
            "refused".to_owned()
        } else {
            error.to_string()
        });
        peer::done();
    }
    if !needs_root("make a pid namespace") {
        return;
    }
    let test = nothing_is_proved_across_pid_namespaces;
    let wrapper = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let mut process = Peer::start_through(&wrapper, test, "process", &[]);
    let identity = process.hear_identity();
    assert_eq!(identity.pid, 1);
    assert_ne!(identity.pid_namespace, current().unwrap().pid_namespace);
    assert_eq!(prove_by_pid(&identity), Proof::Unknown);
    process.kill();
    assert_eq!(prove_by_pid(&identity), Proof::Unknown);

    // With the /proc of the outer namespace, pids in it are other processes.
    let mut process =
        Peer::start_through(&["unshare", "--pid", "--fork"], test, "without /proc", &[]);
    assert_eq!(process.hear(), "refused");
}
