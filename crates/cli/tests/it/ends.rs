//! Signals, a killed parent, and tables that are in use or left behind.

use rustix::process::Signal;

use crate::rig::{Rig, Running, await_that, process, processes, send};

/// A grace, in scans each 10 ms, within which a worker shows itself, also on a busy machine.
const A_SECOND: &str = "100";

fn start_long(rig: &Rig) -> Running {
    start(rig, "sleep 60 & wait")
}

/// Two workers with a shell each, which then does `what`.
fn start(rig: &Rig, what: &str) -> Running {
    let exec = &format!("sh -c 'echo $$ >> begun; {what}'");
    let pool = Running::start(rig.pool([
        "--exec",
        exec,
        "--output-dir",
        "out",
        "--workers",
        "2",
        "--grace",
        A_SECOND,
        "tree",
    ]));
    await_that("both commands run", || commands(rig).len() == 2);
    pool
}

fn commands(rig: &Rig) -> Vec<u32> {
    let begun = std::fs::read_to_string(rig.at("begun")).unwrap_or_default();
    begun.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Everything below a process.
fn family(root: u32) -> Vec<u32> {
    let all = processes();
    let mut members = vec![root];
    let mut next = 0;
    while let Some(parent) = members.get(next).copied() {
        members.extend(
            all.iter()
                .filter(|process| process.parent == parent)
                .map(|p| p.pid),
        );
        next += 1;
    }
    members
}

#[test]
fn sigint_and_sigterm_end_everything_and_leave_no_table_behind() {
    for signal in [Signal::INT, Signal::TERM] {
        let rig = Rig::with_files(4, 1);
        let pool = start_long(&rig);
        // Parent, two workers, two shells, two sleeps, which the shells start after they have said so.
        await_that("all have started", || family(pool.pid()).len() == 7);
        let members = family(pool.pid());
        send(pool.pid(), signal);
        let said = pool.end();
        assert_eq!(said.code, Some(130), "{}", said.stderr);
        assert_eq!(
            members
                .iter()
                .filter(|pid| process(**pid).is_some())
                .count(),
            0
        );
        assert_eq!(rig.names(), ["begun", "out", "tree"]);
        assert_eq!(std::fs::read_dir(rig.at("out")).unwrap().count(), 0);
    }
}

#[test]
fn an_interrupted_hash_leaves_neither_manifest_nor_temporary() {
    let rig = Rig::with_files(4, 1);
    let mut command = rig.pool("--files-from - --manifest sums".split(' '));
    command.stdin(std::process::Stdio::piped());
    let mut pool = Running::start(command);
    let _input = pool.input();
    await_that("it runs", || !pool.workers().is_empty());
    assert!(rig.names().iter().any(|name| name.ends_with(".partial")));
    send(pool.pid(), Signal::TERM);
    assert_eq!(pool.end().code, Some(130));
    assert_eq!(rig.names(), ["tree"]);
}

#[test]
fn a_killed_parent_leaves_no_worker_and_no_command_and_its_table_is_used_again() {
    let rig = Rig::with_files(2, 1);
    // Without a child of its own: the kernel ends the commands, not what they started.
    let pool = start(&rig, "exec sleep 60");
    let workers = pool.workers();
    assert_eq!(workers.len(), 2);
    send(pool.pid(), Signal::KILL);
    let shells = commands(&rig);
    await_that("workers and commands are gone", || {
        workers
            .iter()
            .chain(&shells)
            .all(|pid| process(*pid).is_none())
    });
    drop(pool);
    assert!(rig.names().contains(&"table".to_owned()));
    let said = rig.run_words("--manifest sums --json tree");
    assert_eq!(
        (said.code, said.count("accepted")),
        (Some(0), 2),
        "{}",
        said.stderr
    );
    assert!(
        said.stderr.contains("units of an earlier run dropped"),
        "{}",
        said.stderr
    );
    assert!(!rig.names().contains(&"table".to_owned()));
}

#[test]
fn a_table_in_use_is_left_alone_and_its_user_is_named() {
    let rig = Rig::with_files(2, 1);
    let pool = start_long(&rig);
    let said = rig.run_words("--manifest sums tree");
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("table: in use by pid "),
        "{}",
        said.stderr
    );
    assert!(process(pool.pid()).is_some());
    send(pool.pid(), Signal::INT);
    assert_eq!(pool.end().code, Some(130));
}

#[test]
fn a_table_that_is_taken_away_ends_the_pool_with_an_error() {
    let rig = Rig::with_files(2, 1);
    let pool = start_long(&rig);
    std::fs::remove_file(rig.at("table")).unwrap();
    let said = pool.end();
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("taken away while in use"),
        "{}",
        said.stderr
    );
}
