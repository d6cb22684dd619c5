//! `bumpless lead`: of many that are started one runs its command, whatever is killed and stopped.

use std::fs::File;
use std::path::Path;
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use bumpless_election::SharedLeaderElection;
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::guard::spawn_guarded;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::child::{Child, await_until};
use crate::scene::Scene;

const NAME: &str = "sole";
const LIMIT: Duration = Duration::from_secs(30);

/// A `bumpless lead` whose command must be the only one.
struct Lead(Process);

impl Lead {
    fn start(scene: &Scene) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        command.args(["lead", "--name", NAME, "--grace", "2s", "--table"]);
        command.arg(scene.table_path()).arg("--");
        command.arg(std::env::current_exe().expect("this program"));
        command.args([crate::roles::ROLE_ARGUMENT, "sole command"]);
        command.arg(scene.folder()).stdin(Stdio::null());
        Self(spawn_guarded(&mut command, None).expect("a lead"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("a child of ours");
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for, ended or not.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command: alone as long as it has the lock, which the kernel drops when it dies.
pub fn sole_command(arguments: &[String]) {
    let folder = Path::new(&arguments[0]);
    let lock = File::create(folder.join("alone")).expect("a file");
    if lock.try_lock().is_err() {
        File::create(folder.join("not alone")).expect("a file");
    }
    let term = std::env::var("BUMPLESS_TERM").expect("a term");
    let pid = std::process::id();
    // In one step, so that no half line is read.
    std::fs::write(folder.join("starting"), format!("{term} {pid}")).expect("a file");
    std::fs::rename(folder.join("starting"), folder.join("started")).expect("a file");
    loop {
        std::thread::park();
    }
}

/// Term and pid of the command that was started last.
fn started(scene: &Scene) -> Option<(u64, Pid)> {
    let line = std::fs::read_to_string(scene.path("started")).ok()?;
    let (term, pid) = line.split_once(' ')?;
    Some((term.parse().ok()?, Pid::from_raw(pid.parse().ok()?)?))
}

/// Awaits a command of a later term than this; its own and its pid.
fn await_start(scene: &Scene, after: u64) -> (u64, Pid) {
    let mut found = None;
    await_until(LIMIT, "a command of a later term", || {
        found = started(scene).filter(|(term, _)| *term > after);
        found.is_some()
    });
    found.expect("awaited")
}

fn is_gone(pid: Pid) -> bool {
    test_kill_process(pid).is_err()
}

/// The lead that leads, by its pid in the table.
fn leading<'a>(table: &HeartbeatTable, leads: &'a mut [Lead]) -> &'a mut Lead {
    let election = SharedLeaderElection::open(table, NAME).expect("an election");
    let mut at = None;
    await_until(LIMIT, "a leader", || {
        let leader = election.current_leader();
        at = leader.and_then(|leader| leads.iter().position(|lead| lead.0.id() == leader.pid));
        at.is_some()
    });
    &mut leads[at.expect("awaited")]
}

/// 53.
pub fn one_of_many_leads_runs_its_command_whoever_is_killed(scene: &Scene) {
    const KILLS: usize = 15;
    let table = scene.table(64);
    let mut leads: Vec<Lead> = (0..4).map(|_| Lead::start(scene)).collect();
    let mut last = await_start(scene, 0);
    let mut times = Vec::new();
    for _ in 0..KILLS {
        let leader = leading(&table, &mut leads);
        let killed = Instant::now();
        leader.signal(Signal::KILL);
        let next = await_start(scene, last.0);
        times.push(killed.elapsed());
        assert!(is_gone(last.1), "the command of a dead lead lives");
        assert_eq!(next.0, last.0 + 1, "one hand-over");
        last = next;
        *leader = Lead::start(scene);
    }
    // A clean end, too: the command is told, and the next one runs.
    let leader = leading(&table, &mut leads);
    leader.signal(Signal::TERM);
    let next = await_start(scene, last.0);
    assert!(is_gone(last.1));
    let code = leader.0.wait().expect("a child of ours").code();
    assert_eq!(code, Some(128 + 15), "the command's own end");
    drop(leads);
    await_until(LIMIT, "the end of the last command", || is_gone(next.1));
    assert!(!scene.path("not alone").exists(), "two commands at once");
    times.sort();
    scene.note(&format!(
        "the next command started within {:.1?} (at most {:.1?})",
        times[KILLS / 2],
        times[KILLS - 1]
    ));
}

/// 54.
pub fn command_of_a_lead_that_hangs_is_ended_before_the_next_one_starts(scene: &Scene) {
    let _table = scene.table(64);
    let _watchdog = Child::start(
        "watching process",
        // Two seconds, for which a busy machine is not late. In few scans: after a gap of two periods it takes
        // nobody's silence for a hang.
        &[scene.table_path().into(), "10".into(), "200".into()],
    );
    let table = HeartbeatTable::attach(scene.table_path()).expect("the table");
    let mut leads: Vec<Lead> = (0..2).map(|_| Lead::start(scene)).collect();
    let first = await_start(scene, 0);
    let hung = leading(&table, &mut leads);
    hung.signal(Signal::STOP);
    let stopped = Instant::now();
    let second = await_start(scene, first.0);
    let took = stopped.elapsed();
    assert!(is_gone(first.1), "ended by its job, as its lead cannot");
    hung.signal(Signal::CONT);
    // It is a candidate like others again, and leads when the other one is gone.
    let hung_pid = hung.0.id();
    let other = leads.iter().find(|lead| lead.0.id() != hung_pid);
    let is_registered = || {
        let mut live = table.iter_live();
        live.any(|(_, seen)| seen.pid == hung_pid && !seen.is_fenced)
    };
    await_until(LIMIT, "a lead that registers anew", is_registered);
    other.expect("the other lead").signal(Signal::KILL);
    let third = await_start(scene, second.0);
    assert!(is_gone(second.1));
    drop(leads);
    await_until(LIMIT, "the end of the last command", || is_gone(third.1));
    assert!(!scene.path("not alone").exists(), "two commands at once");
    scene.note(&format!(
        "a stopped lead's command was replaced after {took:.1?}"
    ));
}
