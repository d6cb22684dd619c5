//! Children that die with their parents.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::sync::Arc;

use bumpless_substrate::guard::{GuardError, become_subreaper, die_with_parent, spawn_guarded};
use bumpless_substrate::region::{PREAMBLE_LEN, Region, RegionError};
use bumpless_substrate::sync::{AtomicU32, Ordering};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::peer::{self, Peer};
use crate::scene::{Scene, TABLE, eventually};

/// A program that lives until it is killed, for longer than any test waits.
fn sleeper() -> std::process::Command {
    let mut command = std::process::Command::new("sleep");
    command
        .arg("60")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Whether a process that is not our child has ended.
fn ended(pid: u32) -> bool {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    let mut wait = [rustix::event::PollFd::new(
        &pidfd,
        rustix::event::PollFlags::IN,
    )];
    let at_once = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let _ = pidfd.as_fd();
    rustix::event::poll(&mut wait, Some(&at_once)).unwrap() == 1
}

/// A region of zeros for pids.
fn pids(scene: &Scene) -> Arc<Region> {
    let access = bumpless_substrate::region::Access::Private;
    let (region, _) = Region::create(&scene.path(), &TABLE, 64, access, |_| ()).unwrap();
    Arc::new(region)
}

fn pid_at(region: &Region, number: u64) -> u32 {
    region
        .at::<AtomicU32>(PREAMBLE_LEN + 4 * number)
        .unwrap()
        .load(Ordering::Acquire)
}

#[test]
fn a_guarded_child_is_recorded_and_dies_with_its_killed_parent() {
    if peer::plays("parent") {
        let region = Arc::new(Region::attach(peer::argument("path").as_ref(), &TABLE).unwrap());
        let mut child = spawn_guarded(&mut sleeper(), Some((region, PREAMBLE_LEN))).unwrap();
        peer::say(child.id());
        child.wait().unwrap();
        peer::done();
    }
    let scene = Scene::new();
    let region = pids(&scene);
    let path = scene.path();
    let mut parent = Peer::start(
        a_guarded_child_is_recorded_and_dies_with_its_killed_parent,
        "parent",
        &[("path", path.as_os_str())],
    );
    let child: u32 = parent.hear().parse().unwrap();
    assert_eq!(pid_at(&region, 0), child);
    assert!(!ended(child));
    parent.kill();
    eventually("the child is dead", || ended(child));
}

#[test]
fn a_parent_killed_at_any_moment_leaves_no_child() {
    const CHILDREN: u64 = 64;
    if peer::plays("parent") {
        let region = Arc::new(Region::attach(peer::argument("path").as_ref(), &TABLE).unwrap());
        peer::say("starts");
        for number in 0..CHILDREN {
            let place = PREAMBLE_LEN + 4 * number;
            let mut command = sleeper();
            command.env("GUARD_TEST", peer::argument("mark"));
            drop(spawn_guarded(&mut command, Some((Arc::clone(&region), place))).unwrap());
        }
        peer::listen();
        peer::done();
    }
    let mut started = 0;
    for round in 0..20 {
        let scene = Scene::new();
        let region = pids(&scene);
        let path = scene.path();
        let mark = format!("{}-{round}", std::process::id());
        let mut parent = Peer::start(
            a_parent_killed_at_any_moment_leaves_no_child,
            "parent",
            &[("path", path.as_os_str()), ("mark", OsStr::new(&mark))],
        );
        assert_eq!(parent.hear(), "starts");
        eventually("so many children are recorded", || {
            pid_at(&region, round % 8) != 0
        });
        parent.kill();
        let marked = format!("GUARD_TEST={mark}");
        eventually("no process has the mark", || {
            !anybody_has(marked.as_bytes())
        });
        for number in 0..CHILDREN {
            let pid = pid_at(&region, number);
            if pid != 0 {
                started += 1;
                eventually("every recorded child is dead", || ended(pid));
            }
        }
    }
    assert!(started >= 20, "only {started} children were started");
}

/// What a child does before it is guarded: kills its parent, and waits until it has another one.
fn orphan_ourselves() -> std::io::Result<()> {
    let parent = rustix::process::getppid();
    if let Some(parent) = parent {
        rustix::process::kill_process(parent, rustix::process::Signal::KILL)?;
    }
    while rustix::process::getppid() == parent {
        std::thread::yield_now();
    }
    Ok(())
}

#[test]
fn a_child_whose_parent_died_before_it_was_guarded_starts_nothing() {
    if peer::plays("parent") {
        let mut command = sleeper();
        // SAFETY: three system calls, again and again.
        unsafe { command.pre_exec(orphan_ourselves) };
        let error = spawn_guarded(&mut command, None).unwrap_err();
        panic!("not killed: {error}");
    }
    let mark = format!("{}-orphan", std::process::id());
    let parent = Peer::start(
        a_child_whose_parent_died_before_it_was_guarded_starts_nothing,
        "parent",
        &[("mark", OsStr::new(&mark))],
    );
    assert_eq!(parent.wait().signal(), Some(libc::SIGKILL));
    let marked = format!("SUBSTRATE_TEST_PART_mark={mark}");
    eventually("no process has the mark", || {
        !anybody_has(marked.as_bytes())
    });
}

/// Whether any process was started with that text in its environment.
fn anybody_has(text: &[u8]) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|e| e.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .any(|e| {
            let environment = std::fs::read(e.path().join("environ")).unwrap_or_default();
            environment
                .split(|&byte| byte == 0)
                .any(|variable| variable == text)
        })
}

#[test]
fn a_program_that_cannot_be_started_leaves_no_pid() {
    let scene = Scene::new();
    let region = pids(&scene);
    let mut command = std::process::Command::new("/no/such/program");
    let error = spawn_guarded(&mut command, Some((Arc::clone(&region), PREAMBLE_LEN))).unwrap_err();
    assert!(matches!(error, GuardError::Spawn { .. }));
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    assert_eq!(pid_at(&region, 0), 0);
}

#[test]
fn a_place_outside_of_the_region_or_read_only_is_refused_before_anything_starts() {
    let scene = Scene::new();
    let region = pids(&scene);
    let beyond = Some((Arc::clone(&region), region.region_len()));
    let error = spawn_guarded(&mut sleeper(), beyond).unwrap_err();
    assert!(
        matches!(error, GuardError::Place(RegionError::OutOfRange { .. })),
        "{error}"
    );
    let observer = Arc::new(Region::observe(&scene.path(), &TABLE).unwrap());
    let error = spawn_guarded(&mut sleeper(), Some((observer, PREAMBLE_LEN))).unwrap_err();
    assert!(
        matches!(error, GuardError::Place(RegionError::ReadOnly { .. })),
        "{error}"
    );
}

#[test]
fn a_child_that_guards_itself_dies_with_its_parent() {
    if peer::plays("child") {
        die_with_parent(peer::argument("parent").parse().unwrap()).unwrap();
        std::fs::write(peer::argument("file"), "guarded").unwrap();
        // Its parent's end of this pipe is held open by the test, too: only the guard ends it.
        peer::listen();
        peer::done();
    }
    if peer::plays("parent") {
        let us = std::process::id().to_string();
        let file = peer::argument("file");
        let arguments = [("parent", OsStr::new(&us)), ("file", OsStr::new(&file))];
        let mut command = peer::command(
            a_child_that_guards_itself_dies_with_its_parent,
            "child",
            &arguments,
        );
        let mut child = command.stdin(Stdio::inherit()).spawn().unwrap();
        peer::say(child.id());
        child.wait().unwrap();
    }
    let scene = Scene::new();
    let file = scene.folder().join("state");
    let mut parent = Peer::start(
        a_child_that_guards_itself_dies_with_its_parent,
        "parent",
        &[("file", file.as_os_str())],
    );
    let child: u32 = parent.hear().parse().unwrap();
    eventually("the child is guarded", || file.exists());
    assert!(!ended(child));
    parent.child.kill().unwrap();
    eventually("the child is dead", || ended(child));
}

#[test]
fn a_parent_that_is_gone_already_is_told() {
    if peer::plays("child") {
        let error = die_with_parent(u32::MAX).unwrap_err();
        let GuardError::ParentGone {
            wanted: u32::MAX,
            found,
        } = error
        else {
            panic!("{error}");
        };
        peer::say(found);
        peer::done();
    }
    let mut child = Peer::start(a_parent_that_is_gone_already_is_told, "child", &[]);
    assert_eq!(child.hear(), std::process::id().to_string());
}

#[test]
fn a_subreaper_becomes_the_parent_of_its_orphaned_grandchildren() {
    if peer::plays("reaper") {
        become_subreaper().unwrap();
        let shell = std::process::Command::new("sh")
            .args(["-c", "sleep 1000 >/dev/null 2>&1 & echo $!"])
            .output()
            .unwrap();
        let pid: i32 = String::from_utf8(shell.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        // Only a parent can wait.
        let options = rustix::process::WaitOptions::empty();
        let (reaped, status) = rustix::process::waitpid(Some(pid), options)
            .unwrap()
            .unwrap();
        assert_eq!(reaped, pid);
        peer::say(status.terminating_signal().unwrap());
        peer::done();
    }
    let mut reaper = Peer::start(
        a_subreaper_becomes_the_parent_of_its_orphaned_grandchildren,
        "reaper",
        &[],
    );
    assert_eq!(reaper.hear(), libc::SIGKILL.to_string());
    assert_eq!(reaper.wait().signal(), None);
}
