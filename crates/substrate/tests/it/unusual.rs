//! Fork children that execute no program, and a process without its first thread.

use bumpless_substrate::identity::current;
use bumpless_substrate::locks::LockState;
use bumpless_substrate::region::{Region, RegionError};
use bumpless_substrate::unusual::{end_first_thread, fork_and_run};

use crate::peer::{self, Peer};
use crate::scene::{Scene, TABLE, needs_root};

#[test]
fn a_fork_child_ends_with_what_its_work_returns_or_by_its_panic() {
    if peer::plays("process") {
        let mut changed = 1;
        let child = fork_and_run(|| {
            changed += 1;
            changed
        });
        peer::say(format!("{:?} {changed}", child.unwrap().wait().unwrap()));
        let child = fork_and_run(|| panic!("on purpose"));
        peer::say(format!("{:?}", child.unwrap().wait().unwrap()));
        peer::done();
    }
    let test = a_fork_child_ends_with_what_its_work_returns_or_by_its_panic;
    let mut process = Peer::start(test, "process", &[]);
    assert_eq!(process.hear(), "Some(2) 1");
    assert_eq!(process.hear(), "Some(101)");
}

#[test]
fn no_other_thread_is_ended_in_place_of_the_first() {
    let us = std::thread::current().id();
    end_first_thread();
    assert_eq!(
        std::thread::current().id(),
        us,
        "tests run in threads of their own"
    );
    assert!(std::thread::spawn(end_first_thread).join().is_ok());
}

/// A fork child that is the first process of a pid namespace, as its parent is in another.
#[test]
fn a_fork_child_with_its_parents_pid_is_a_fork_child() {
    if peer::plays("process") {
        let region = Region::attach(peer::argument("path").as_ref(), &TABLE).unwrap();
        let locks = region.locks().unwrap();
        assert!(locks.try_lock(3).unwrap());
        let parent = current().unwrap();
        // SAFETY: changes the namespace of later children alone.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWPID) }, 0);
        let mut region = Some(region);
        let child = fork_and_run(|| {
            assert_eq!(std::process::id(), parent.pid);
            let locks = region.as_ref().unwrap().locks().unwrap();
            assert!(matches!(locks.unlock(3), Err(RegionError::Forked { .. })));
            assert_ne!(current(), Ok(parent));
            region = None;
            0
        });
        peer::say(format!("{:?}", child.unwrap().wait().unwrap()));
        peer::listen();
        peer::done();
    }
    if !needs_root("make pid namespaces") {
        return;
    }
    let scene = Scene::new();
    let (observer, _) = scene.create();
    let wrapper = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let path = scene.path();
    let mut process = Peer::start_through(
        &wrapper,
        a_fork_child_with_its_parents_pid_is_a_fork_child,
        "process",
        &[("path", path.as_os_str())],
    );
    assert_eq!(process.hear(), "Some(0)");
    let seen = observer.locks().unwrap().probe(3).unwrap();
    assert_ne!(seen, LockState::Free, "the parent has it still");
}
