//! Workers that somebody else kills or stops.

use std::io::Write;
use std::process::Stdio;

use bumpless_heartbeat::HeartbeatTable;
use rustix::process::Signal;

use crate::rig::{Rig, Running, await_that, process, send};

/// A grace, in scans each 10 ms, within which a worker that nobody stops shows itself, also on a busy machine.
const A_SECOND: &str = "100";

/// A pool whose commands wait until the file `go` is there.
fn waiting_pool(rig: &Rig, more: &[&str]) -> Running {
    let exec = r#"sh -c 'echo >> begun; while ! [ -e go ]; do sleep 0.01; done'"#;
    let fixed = [
        "--exec",
        exec,
        "--output-dir",
        "out",
        "--json",
        "--workers",
        "2",
        "tree",
    ];
    Running::start(rig.pool(fixed.iter().chain(more)))
}

fn begun(rig: &Rig) -> usize {
    std::fs::read(rig.at("begun")).map_or(0, |lines| lines.len())
}

#[test]
fn a_killed_worker_is_replaced_and_its_file_is_done_by_another() {
    let rig = Rig::with_files(2, 1);
    let pool = waiting_pool(&rig, &["--grace", A_SECOND]);
    await_that("both commands run", || begun(&rig) == 2);
    let workers = pool.workers();
    assert_eq!(workers.len(), 2);
    send(workers[0], Signal::KILL);
    await_that("the file is begun again", || begun(&rig) == 3);
    await_that("there are two workers again", || {
        pool.workers()
            .iter()
            .filter(|pid| **pid != workers[0])
            .count()
            == 2
    });
    rig.file("go", b"");
    let said = pool.end();
    assert_eq!(
        (said.code, said.count("accepted")),
        (Some(0), 2),
        "{}",
        said.stderr
    );
    assert_eq!((said.count("reassigned"), said.count("killed")), (1, 0));
}

#[test]
fn a_stopped_worker_is_fenced_and_its_command_is_gone_before_the_file_is_begun_again() {
    let rig = Rig::with_files(2, 1);
    let pool = waiting_pool(&rig, &["--grace", A_SECOND]);
    await_that("both commands run", || begun(&rig) == 2);
    let stopped = pool.workers()[0];
    send(stopped, Signal::STOP);
    await_that("the file is begun again", || begun(&rig) == 3);
    // It did not come back, so it was killed: for a command nobody waits longer.
    assert!(process(stopped).is_none());
    rig.file("go", b"");
    let said = pool.end();
    assert_eq!(
        (said.code, said.count("accepted")),
        (Some(0), 2),
        "{}",
        said.stderr
    );
    assert!(
        said.stderr
            .contains(&format!("epochs > grace {A_SECOND}: replaced")),
        "{}",
        said.stderr
    );
}

#[test]
fn a_hashing_worker_that_stays_stopped_delays_nobody_and_is_gone_at_the_end() {
    let rig = Rig::with_files(2, 1);
    // The walk waits for this pipe, so that the workers are idle when one is stopped.
    let words = format!("--workers 2 --grace {A_SECOND} --json --files-from - --manifest sums");
    let mut command = rig.pool(words.split(' '));
    command.stdin(Stdio::piped());
    let mut pool = Running::start(command);
    await_that("two workers sleep", || {
        let asleep = |pid: &&u32| process(**pid).is_some_and(|process| process.state == 'S');
        pool.workers().iter().filter(asleep).count() == 2
    });
    // One that is stopped before it has a slot is missed by nobody's scan. The pool itself has two.
    await_that("both have a slot", || {
        let table = HeartbeatTable::open_read_only(rig.at("table"));
        table.is_ok_and(|table| table.iter_live().count() == 4)
    });
    let stopped = pool.workers()[0];
    send(stopped, Signal::STOP);
    await_that("it is replaced", || pool.workers().len() == 3);
    let mut names = pool.input();
    names.write_all(b"tree\n").unwrap();
    drop(names);
    let said = pool.end();
    assert_eq!(
        (said.code, said.count("accepted")),
        (Some(0), 2),
        "{}",
        said.stderr
    );
    assert_eq!(said.count("refused"), 0);
    assert!(process(stopped).is_none());
    assert_eq!(rig.complaints("sums"), "");
}

#[test]
fn workers_that_cannot_start_end_the_pool_with_the_reason() {
    let rig = Rig::with_files(1, 1);
    let mut command = rig.pool("--workers 1 --files-from - --manifest sums".split(' '));
    command.stdin(Stdio::piped());
    let mut pool = Running::start(command);
    let _input = pool.input();
    // One that has a slot has opened all that it needs. The pool itself has two.
    await_that("a worker has a slot", || {
        let table = HeartbeatTable::open_read_only(rig.at("table"));
        table.is_ok_and(|table| table.iter_live().count() == 3)
    });
    let worker = pool.workers()[0];
    std::fs::remove_file(rig.at("table.lanes")).unwrap();
    send(worker, Signal::KILL);
    let said = pool.end();
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("table.lanes: "), "{}", said.stderr);
    let last = said.stderr.lines().last().unwrap();
    assert_eq!(
        last,
        "bumpless: 5 workers in a row ended before they could register; the last one: exit 1"
    );
}
