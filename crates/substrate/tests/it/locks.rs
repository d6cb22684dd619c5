//! Byte locks: what proves that an owner is gone, and what must not.

use std::fs::File;
use std::os::fd::AsRawFd;

use bumpless_substrate::locks::LockState;
use bumpless_substrate::region::{Region, RegionError};

use crate::peer::{self, Peer};
use crate::scene::{CAPACITY, Scene, TABLE, eventually};

/// Asks through a description of its own whether a byte is free.
pub fn is_free(file: &File, start: i64) -> bool {
    let mut lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: 1,
        l_pid: 0,
    };
    // SAFETY: an open descriptor, and one `flock` on this stack frame.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &raw mut lock) };
    assert_eq!(done, 0);
    lock.l_type == libc::F_UNLCK as libc::c_short
}

/// Forks; `Some(pid)` in the parent. The child must not return from the test.
fn fork() -> Option<i32> {
    // SAFETY: the child calls nothing but this test's own code, and ends by `_exit`; the threads
    // that do not exist in it hold at most locks of the test harness, which it does not take.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    (pid > 0).then_some(pid)
}

fn exit_now(code: i32) -> ! {
    // SAFETY: ends the process without running anything of the harness.
    unsafe { libc::_exit(code) }
}

fn exit_code(pid: i32) -> i32 {
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let (_, status) = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())
        .unwrap()
        .unwrap();
    status.exit_status().unwrap()
}

#[test]
fn a_slot_has_one_holder_and_the_probe_sees_our_own_lock() {
    let scene = Scene::new();
    let (ours, _) = scene.create();
    let (theirs, _) = scene.create();
    let (ours, theirs) = (ours.locks().unwrap(), theirs.locks().unwrap());
    assert_eq!(ours.probe(0).unwrap(), LockState::Free);
    assert!(ours.try_lock(0).unwrap());
    assert!(ours.try_lock(0).unwrap(), "once more by the same holder");
    assert_eq!(ours.probe(0).unwrap(), LockState::Held);
    assert_eq!(theirs.probe(0).unwrap(), LockState::Held);
    assert!(!theirs.try_lock(0).unwrap());
    theirs.unlock(0).unwrap();
    assert_eq!(
        ours.probe(0).unwrap(),
        LockState::Held,
        "not theirs to unlock"
    );
    assert_eq!(ours.probe(1).unwrap(), LockState::Free);
    ours.unlock(0).unwrap();
    assert!(theirs.try_lock(0).unwrap());
}

#[test]
fn the_first_and_the_last_slot_have_their_documented_bytes_and_others_have_none() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    let locks = region.locks().unwrap();
    let file = File::open(locks.path()).unwrap();
    let base = i64::try_from((region.creation_id() & 0x3fff_ffff) << 32).unwrap();
    assert!(!is_free(&file, base + 2), "attached");
    for slot in [0, CAPACITY - 1] {
        assert!(is_free(&file, base + 16 + i64::from(slot)));
        assert!(locks.try_lock(slot).unwrap());
        assert!(!is_free(&file, base + 16 + i64::from(slot)));
    }
    for slot in [CAPACITY, u32::MAX] {
        for error in [
            locks.try_lock(slot).unwrap_err(),
            locks.unlock(slot).unwrap_err(),
            locks.probe(slot).unwrap_err(),
        ] {
            let path = locks.path().to_path_buf();
            assert_eq!(
                error,
                RegionError::NoSuchSlot {
                    path,
                    slot,
                    capacity: CAPACITY
                }
            );
        }
    }
}

#[test]
fn closing_a_region_gives_its_locks_back() {
    let scene = Scene::new();
    let (ours, _) = scene.create();
    let (theirs, _) = scene.create();
    assert!(ours.locks().unwrap().try_lock(3).unwrap());
    drop(ours);
    assert_eq!(theirs.locks().unwrap().probe(3).unwrap(), LockState::Free);
}

#[test]
fn opening_and_closing_the_files_again_keeps_the_lock() {
    let scene = Scene::new();
    let (ours, _) = scene.create();
    assert!(ours.locks().unwrap().try_lock(3).unwrap());
    for _ in 0..20 {
        drop(File::open(scene.path()).unwrap());
        drop(File::open(ours.locks().unwrap().path()).unwrap());
        drop(Region::attach(&scene.path(), &TABLE).unwrap());
    }
    assert_eq!(ours.locks().unwrap().probe(3).unwrap(), LockState::Held);
}

/// Holds slot 3 until it is killed; with a fork child that lives on, if so told.
fn hold_for_ever(with_child: bool) -> ! {
    let region = Region::attach(peer::argument("path").as_ref(), &TABLE).unwrap();
    assert!(region.locks().unwrap().try_lock(3).unwrap());
    if with_child {
        match fork() {
            Some(child) => peer::say(child),
            None => {
                let until_killed = rustix::time::Timespec {
                    tv_sec: 60,
                    tv_nsec: 0,
                };
                let _ = rustix::thread::nanosleep(&until_killed);
                exit_now(0);
            }
        }
    } else {
        peer::say("holds");
    }
    peer::listen();
    peer::done()
}

#[test]
fn a_killed_owner_s_lock_is_free_even_before_it_is_reaped() {
    if peer::plays("owner") {
        hold_for_ever(false);
    }
    let scene = Scene::new();
    let (region, _) = scene.create();
    let locks = region.locks().unwrap();
    let path = scene.path();
    let mut owner = Peer::start(
        a_killed_owner_s_lock_is_free_even_before_it_is_reaped,
        "owner",
        &[("path", path.as_os_str())],
    );
    assert_eq!(owner.hear(), "holds");
    assert_eq!(locks.probe(3).unwrap(), LockState::Held);
    owner.child.kill().unwrap();
    eventually("the kernel has dropped the lock", || {
        locks.probe(3).unwrap() == LockState::Free
    });
    assert!(locks.try_lock(3).unwrap());
}

#[test]
fn a_fork_child_that_outlives_the_owner_delays_the_proof() {
    if peer::plays("owner") {
        hold_for_ever(true);
    }
    let scene = Scene::new();
    let (region, _) = scene.create();
    let locks = region.locks().unwrap();
    let path = scene.path();
    let mut owner = Peer::start(
        a_fork_child_that_outlives_the_owner_delays_the_proof,
        "owner",
        &[("path", path.as_os_str())],
    );
    let child: i32 = owner.hear().parse().unwrap();
    owner.kill();
    assert_eq!(locks.probe(3).unwrap(), LockState::Held);
    let child = rustix::process::Pid::from_raw(child).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    eventually("the kernel has dropped the lock", || {
        locks.probe(3).unwrap() == LockState::Free
    });
}

#[test]
fn a_fork_child_can_only_close() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    let (other, _) = scene.create();
    assert!(region.locks().unwrap().try_lock(3).unwrap());
    let Some(child) = fork() else {
        let locks = region.locks().unwrap();
        let refused = matches!(locks.unlock(3), Err(RegionError::Forked { .. }))
            && matches!(locks.try_lock(4), Err(RegionError::Forked { .. }));
        let held = locks.probe(3) == Ok(LockState::Held);
        drop(region);
        exit_now(if refused && held { 42 } else { 1 });
    };
    assert_eq!(exit_code(child), 42);
    assert_eq!(other.locks().unwrap().probe(3).unwrap(), LockState::Held);
    assert_eq!(region.locks().unwrap().probe(3).unwrap(), LockState::Held);
}

#[test]
fn a_region_closed_by_its_owner_is_free_although_a_fork_child_lives() {
    let scene = Scene::new();
    let (region, _) = scene.create();
    let (other, _) = scene.create();
    assert!(region.locks().unwrap().try_lock(3).unwrap());
    let (wait, go) = std::io::pipe().unwrap();
    let Some(child) = fork() else {
        drop(go);
        // Returns when the parent has closed the other end.
        let _ = std::io::Read::read(&mut &wait, &mut [0]);
        exit_now(42);
    };
    drop(wait);
    drop(region);
    assert_eq!(other.locks().unwrap().probe(3).unwrap(), LockState::Free);
    drop(go);
    assert_eq!(exit_code(child), 42);
}

#[test]
fn exec_drops_the_locks() {
    if peer::plays("owner") {
        let region = Region::attach(peer::argument("path").as_ref(), &TABLE).unwrap();
        assert!(region.locks().unwrap().try_lock(3).unwrap());
        peer::say("holds");
        peer::listen();
        let error =
            std::os::unix::process::CommandExt::exec(std::process::Command::new("cat").env_clear());
        panic!("{error}");
    }
    let scene = Scene::new();
    let (region, _) = scene.create();
    let locks = region.locks().unwrap();
    let path = scene.path();
    let mut owner = Peer::start(exec_drops_the_locks, "owner", &[("path", path.as_os_str())]);
    assert_eq!(owner.hear(), "holds");
    assert_eq!(locks.probe(3).unwrap(), LockState::Held);
    owner.tell("exec");
    eventually("the new program runs", || {
        locks.probe(3).unwrap() == LockState::Free
    });
    assert!(
        owner.child.try_wait().unwrap().is_none(),
        "the process itself lives"
    );
}
