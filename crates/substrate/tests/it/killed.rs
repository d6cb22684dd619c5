//! Killed at every system call: create, revive, reset and remove are traced and SIGKILLed before and
//! after each call they make; each time the survivors must find the path as it was or as it was to
//! be, and go on at once.

use std::path::Path;

use bumpless_substrate::region::{Access, Born, Region, RegionError};
use bumpless_substrate::sync::Ordering;

use crate::scene::{
    CAPACITY, FILLED, REVIVED, Scene, TABLE, create, fill, make_stale, word, words,
};

/// How a traced child went on.
#[derive(PartialEq, Eq)]
enum Step {
    /// It stands before or after a system call.
    Stopped,
    Exited(i32),
}

/// A child that stops at every system call of an operation.
struct Traced {
    pid: i32,
}

impl Traced {
    /// Forks a child that waits to be let into `operation`.
    fn start(operation: impl Fn()) -> Self {
        // SAFETY: the child runs `operation`, which takes no lock of the test harness, and ends by
        // `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: takes no arguments that could be wrong.
            unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
            // SAFETY: stops this process until the parent lets it go on.
            unsafe { libc::raise(libc::SIGSTOP) };
            operation();
            // SAFETY: ends the child without running anything of the harness.
            unsafe { libc::_exit(42) };
        }
        let traced = Self { pid };
        assert!(traced.wait() == Step::Stopped);
        traced
    }

    fn wait(&self) -> Step {
        let mut status = 0;
        // SAFETY: `status` is a place for the answer.
        let pid = unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) };
        assert_eq!(pid, self.pid);
        if libc::WIFSTOPPED(status) {
            return Step::Stopped;
        }
        assert!(libc::WIFEXITED(status), "status {status:#x}");
        Step::Exited(libc::WEXITSTATUS(status))
    }

    /// Lets the child go on to its next system call, or out of it.
    fn step(&self) -> Step {
        // SAFETY: the child is ours and stands; no signal is passed on.
        let done = unsafe { libc::ptrace(libc::PTRACE_SYSCALL, self.pid, 0, 0) };
        assert_eq!(done, 0);
        self.wait()
    }

    fn kill(&self) {
        // SAFETY: the child is ours and not yet waited for.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        let mut status = 0;
        // SAFETY: `status` is a place for the answer.
        let pid = unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) };
        assert_eq!((pid, libc::WTERMSIG(status)), (self.pid, libc::SIGKILL));
    }
}

/// Kills `operation` at step 1, 2, 3 and so on, each time in a scene of its own, until it gets
/// through; `check` looks at what is left. Returns the number of kills.
fn kill_at_every_step(
    prepare: impl Fn(&Scene),
    operation: impl Fn(&Path),
    check: impl Fn(&Scene, usize),
) -> usize {
    for last_step in 1..1000 {
        let scene = Scene::new();
        let path = scene.path();
        prepare(&scene);
        let traced = Traced::start(|| operation(&path));
        for _ in 0..last_step {
            if let Step::Exited(code) = traced.step() {
                assert_eq!(code, 42, "the operation fails when left alone");
                return last_step - 1;
            }
        }
        traced.kill();
        // Who waits for somebody in vain gives up, with an error.
        check(&scene, last_step);
        Region::remove(&path).unwrap();
        assert_eq!(scene.names(), [""; 0], "step {last_step}: remains");
    }
    panic!("the operation never ends");
}

fn whole(region: &Region) -> bool {
    words(region)
        .iter()
        .all(|word| word.load(Ordering::Relaxed) == FILLED)
}

#[test]
fn a_creator_killed_at_any_system_call_leaves_a_finished_region_or_none() {
    let found = std::cell::Cell::new(0);
    let kills = kill_at_every_step(
        |_| (),
        |path| drop(create(path).unwrap()),
        |scene, step| {
            match Region::attach(&scene.path(), &TABLE) {
                Ok(region) => {
                    assert!(whole(&region), "step {step}");
                    found.set(found.get() + 1);
                }
                Err(RegionError::NotFound { .. }) => {}
                Err(e) => panic!("step {step}: {e}"),
            }
            let (region, born) = create(&scene.path()).unwrap();
            assert!(whole(&region) && born != Born::Revived, "step {step}");
        },
    );
    assert!(kills > 40, "only {kills} kills");
    assert!(
        (1..kills).contains(&found.get()),
        "{} of {kills} left a region",
        found.get()
    );
}

#[test]
fn a_reviver_killed_at_any_system_call_loses_nothing() {
    let revived_by_the_dead = std::cell::Cell::new(0);
    let kills = kill_at_every_step(
        |scene| {
            let (region, _) = scene.create();
            word(&region, 9).store(99, Ordering::Relaxed);
            drop(region);
            make_stale(&scene.path());
        },
        |path| drop(create(path).unwrap()),
        |scene, step| {
            let (region, born) = create(&scene.path()).unwrap();
            assert_ne!(born, Born::New, "step {step}");
            revived_by_the_dead
                .set(revived_by_the_dead.get() + usize::from(born == Born::Attached));
            assert_eq!(
                word(&region, 1).load(Ordering::Relaxed),
                REVIVED,
                "step {step}"
            );
            assert_eq!(word(&region, 9).load(Ordering::Relaxed), 99, "step {step}");
        },
    );
    assert!(kills > 60, "only {kills} kills");
    assert!((1..kills).contains(&revived_by_the_dead.get()));
}

#[test]
fn a_reset_killed_at_any_system_call_leaves_the_old_region_or_the_new_one() {
    let replaced = std::cell::Cell::new(0);
    let kills = kill_at_every_step(
        |scene| {
            let (region, _) = scene.create();
            word(&region, 9).store(99, Ordering::Relaxed);
        },
        |path| {
            let carry = |old: &Region, new: &Region| {
                let value = word(old, 9).load(Ordering::Relaxed);
                word(new, 9).store(value + 1, Ordering::Relaxed);
            };
            Region::reset(path, &TABLE, CAPACITY, Access::Private, fill, carry).unwrap();
        },
        |scene, step| {
            let region = Region::attach(&scene.path(), &TABLE).unwrap();
            let carried = word(&region, 9).load(Ordering::Relaxed);
            assert!([99, 100].contains(&carried), "step {step}: {carried}");
            replaced.set(replaced.get() + usize::from(carried == 100));
            let reset = Region::reset(
                &scene.path(),
                &TABLE,
                CAPACITY,
                Access::Private,
                fill,
                |_, _| (),
            );
            assert!(whole(&reset.unwrap().0), "step {step}");
        },
    );
    assert!(kills > 60, "only {kills} kills");
    assert!((1..kills).contains(&replaced.get()));
}

#[test]
fn a_remover_killed_at_any_system_call_leaves_a_region_or_none() {
    let removed = std::cell::Cell::new(0);
    let kills = kill_at_every_step(
        |scene| drop(scene.create()),
        |path| Region::remove(path).unwrap(),
        |scene, step| {
            let (region, born) = create(&scene.path()).unwrap();
            assert!(whole(&region), "step {step}");
            removed.set(removed.get() + usize::from(born == Born::New));
        },
    );
    assert!(kills > 20, "only {kills} kills");
    assert!((1..kills).contains(&removed.get()));
}
