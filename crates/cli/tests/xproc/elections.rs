//! Elections with real processes: leaders that are killed, stopped and resumed, and many candidates at
//! once.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bumpless_election::{Fence, Leadership, SharedLeaderElection};
use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::HeartbeatTable;
use bumpless_substrate::region::{Access, Format, PREAMBLE_LEN, Region};
use bumpless_substrate::sync::{AtomicU64, Ordering};

use crate::child::{Answer, Child, await_until};
use crate::lines::Next;
use crate::pace::Paced;
use crate::roles::{self, Refusal};
use crate::scene::Scene;

const NAME: &str = "job";
const LIMIT: Duration = Duration::from_secs(30);

/// What a takeover from a dead leader may take, more often than not.
const AT_ONCE: Duration = Duration::from_millis(50);

/// 50.
pub fn killed_leader_is_replaced_with_no_watchdog(scene: &Scene) {
    const KILLS: u64 = 20;
    let table = scene.table(64);
    let election = SharedLeaderElection::open(&table, NAME).expect("an election");
    // One that ticked, and is gone as the leaders will be.
    let watchdog = Child::start(
        "watching process",
        &[scene.table_path().into(), "3".into(), "10".into()],
    );
    await_until(LIMIT, "a tick", || table.global_epoch() > 0);
    watchdog.kill();
    let epoch = table.global_epoch();
    // Who waits looks by itself as seldom as it ever does: what is seen before is told by the kernel.
    // Relaxed: a value on its own.
    let period_ns = &table.header().period_ns;
    period_ns.store(10_000_000_000, Ordering::Relaxed);
    let mut leader = candidate(scene);
    assert_eq!(leader.done("claim"), "mine 1");
    let mut times = Paced::new();
    for term in 2..=KILLS + 1 {
        let mut next = candidate(scene);
        let (pid, before) = (leader.pid(), term - 1);
        assert_eq!(next.done("claim"), format!("theirs {before} {pid}"));
        next.tell("await leadership");
        await_until(LIMIT, "a sleeping candidate", || next.state_letter() == 'S');
        let killed = Instant::now();
        leader.kill();
        assert_eq!(next.answer(), Answer::Done(format!("mine {term}")));
        times.push(killed.elapsed());
        leader = next;
    }
    assert_eq!(table.global_epoch(), epoch, "somebody ticks");
    assert_eq!(
        election.current_leader().map(|leader| leader.term),
        Some(KILLS + 1)
    );
    let [median, longest] = times.assert_at_once(AT_ONCE);
    scene.note(&format!("replaced in {median:.1?} (at most {longest:.1?})"));
}

/// 51.
pub fn stopped_leader_is_fenced_and_its_token_is_refused(scene: &Scene) {
    let table = scene.table(64);
    let mut fence = Fence::new();
    let (mut leader, mut next) = (candidate(scene), candidate(scene));
    assert_eq!(leader.done("claim"), "mine 1");
    fence.admit_term(1).expect("the first");
    let theirs = format!("theirs 1 {}", leader.pid());
    assert_eq!(next.done("claim"), theirs);
    leader.stop();
    let watchdog = FailoverWatchdog::with_grace(&table, 3);
    let mut scans = 0;
    let claimed = loop {
        let claimed = next.done("claim");
        if claimed != theirs {
            break claimed;
        }
        next.done("beat");
        let _report = watchdog.scan();
        scans += 1;
        // A scan that the machine stops in the middle fences nobody for silence.
        assert!(scans < 50, "a hung leader stays");
    };
    assert_eq!(claimed, "mine 2");
    assert!(scans >= 5, "fenced in scan {scans}: late is not fenced yet");
    fence.admit_term(2).expect("the next");
    leader.resume();
    leader.refused("beat", "Table.Fenced");
    leader.refused("claim", "Table.Fenced");
    assert!(
        fence.admit_term(1).is_err(),
        "what it still sends is refused"
    );
    leader.done("register");
    assert_eq!(leader.done("claim"), format!("theirs 2 {}", next.pid()));
}

/// Which candidate held each term; 0 = nobody that knew.
const HOLDERS: Format = Format {
    kind: *b"XHLD",
    version: 1,
    record_size: 8,
    max_capacity: 1 << 16,
    region_len: |terms| PREAMBLE_LEN + 8 * terms as u64,
    revived: |_| (),
};
const ROUNDS: u32 = 1_000;
const PROCESSES: u64 = 8;
/// Each with a registration of its own, so that they are candidates like those of other processes.
const THREADS: u64 = 8;
const CANDIDATES: u64 = PROCESSES * THREADS;

/// 52.
pub fn of_64_candidates_at_once_never_two_hold_one_term(scene: &Scene) {
    let table = scene.table(64);
    let path = scene.path("holders");
    let made = Region::create(&path, &HOLDERS, 4 * ROUNDS, Access::Private, |_| ());
    let (region, _) = made.expect("a region");
    let mut crowds: Vec<Child> = (0..PROCESSES)
        .map(|process| {
            let arguments: [OsString; 3] = [
                scene.table_path().into(),
                path.clone().into(),
                process.to_string().into(),
            ];
            Child::start("crowd", &arguments)
        })
        .collect();
    for crowd in &mut crowds {
        crowd.done("register");
    }
    for crowd in &mut crowds {
        crowd.tell("run");
    }
    let mut held = 0;
    for crowd in &mut crowds {
        match crowd.answer() {
            Answer::Done(terms) => held += roles::number(&terms),
            refused => panic!("{refused:?}"),
        }
    }
    let election = SharedLeaderElection::open(&table, NAME).expect("an election");
    let last = election.election_term();
    assert!(last >= u64::from(ROUNDS), "{last} terms");
    let cells: &[AtomicU64] = region.slice(PREAMBLE_LEN, 4 * ROUNDS).expect("the cells");
    // Relaxed: they have all answered. Term 0 is nobody's.
    let marks = cells[1..].iter().map(|cell| cell.load(Ordering::Relaxed));
    let marks: Vec<u64> = marks.filter(|mark| *mark != 0).collect();
    let (marked, holders) = (marks.len(), BTreeSet::from_iter(marks));
    assert_eq!(marked, held, "each who held a term found its cell empty");
    // A term whose leader was appointed while it withdrew, or after it was done, has no holder.
    assert!(
        marked as u64 <= last && marked > ROUNDS as usize / 2,
        "{marked} of {last}"
    );
    let holders = holders.len();
    assert!(
        holders as u64 > CANDIDATES / 4,
        "{holders} different leaders"
    );
    scene.note(&format!(
        "{marked} of {last} terms held by one each, of {holders} candidates"
    ));
}

/// A process with some candidates that lead in turn with all others.
pub fn crowd(arguments: &[String]) {
    let table = HeartbeatTable::attach(&arguments[0]).expect("the table");
    let holders = Region::attach(arguments[1].as_ref(), &HOLDERS).expect("the holders");
    let holders = Arc::new(holders);
    let process = roles::number(&arguments[2]) as u64;
    let handles: Vec<_> = (0..THREADS)
        .map(|_| table.register(std::process::id()).expect("a free slot"))
        .collect();
    let election = SharedLeaderElection::open(&table, NAME).expect("an election");
    let mut commands = roles::commands();
    while let Next::Line(line) = commands.next(None) {
        if line != "run" {
            roles::answer(&Ok(String::new()));
            continue;
        }
        let held: Vec<Result<u64, String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..)
                .zip(&handles)
                .map(|(thread, handle)| {
                    let (election, holders) = (&election, &holders);
                    let me = process * THREADS + thread;
                    scope.spawn(move || lead_in_turn(election, holders, *handle, me))
                })
                .collect();
            let held = threads.into_iter().map(|thread| thread.join());
            held.map(|held| held.expect("no panic")).collect()
        });
        let held: Result<u64, String> = held.into_iter().sum();
        roles::answer(&held.map(|held| held.to_string()).map_err(Refusal::from));
    }
}

/// Stands no more until so many others have led, or nobody does for a while.
fn stay_away(election: &SharedLeaderElection<'_>, until_term: u64) -> Result<(), String> {
    let mut seen = election.current_leader();
    while election.election_term() < until_term {
        let now = election.wait_for_change(seen, Duration::from_millis(20));
        let now = now.map_err(|error| error.to_string())?;
        if now == seen {
            break;
        }
        seen = now;
    }
    Ok(())
}

/// How many terms this candidate held.
fn lead_in_turn(
    election: &SharedLeaderElection<'_>,
    holders: &Region,
    handle: bumpless_heartbeat::Handle,
    me: u64,
) -> Result<u64, String> {
    let mut held = 0;
    let gate: Result<&AtomicU64, _> = holders.at(PREAMBLE_LEN);
    let gate = gate.map_err(|error| error.to_string())?;
    // Relaxed, both: a count on its own. Nobody holds term 0.
    gate.fetch_add(1, Ordering::Relaxed);
    while gate.load(Ordering::Relaxed) < CANDIDATES {
        std::thread::yield_now();
    }
    while election.election_term() < u64::from(ROUNDS) {
        let claimed = election.try_claim_leadership(handle);
        match claimed.map_err(|error| error.to_string())? {
            Leadership::Mine(token) => {
                let cell: Result<&AtomicU64, _> = holders.at(PREAMBLE_LEN + 8 * token.term());
                let cell = cell.map_err(|error| error.to_string())?;
                // Relaxed: the value alone decides.
                let found = cell.swap(me, Ordering::Relaxed);
                if found != 0 {
                    return Err(format!("{token} was {found}'s, and is {me}'s"));
                }
                held += 1;
                let stepped_down = election.step_down(handle);
                stepped_down.map_err(|error| error.to_string())?;
                stay_away(election, token.term() + CANDIDATES / 2)?;
            }
            Leadership::Theirs(leader) => {
                let waited = election.wait_for_change(Some(leader), Duration::from_millis(20));
                waited.map_err(|error| error.to_string())?;
            }
        }
    }
    // Whoever is appointed behind this one's back would lead nobody.
    election
        .step_down(handle)
        .map_err(|error| error.to_string())?;
    Ok(held)
}

/// A process that stands in the scenario's election, as it is told.
pub fn candidate_process(arguments: &[String]) {
    let table = HeartbeatTable::attach(&arguments[0]).expect("the table");
    let election = SharedLeaderElection::open(&table, NAME).expect("an election");
    let mut handle = table.register(std::process::id()).expect("a free slot");
    let said = |claimed: Leadership| match claimed {
        Leadership::Mine(token) => format!("mine {}", token.term()),
        Leadership::Theirs(leader) => format!("theirs {} {}", leader.term, leader.pid),
    };
    let mut commands = roles::commands();
    while let Next::Line(line) = commands.next(None) {
        let reply: Result<String, Refusal> = match line.as_str() {
            "claim" => {
                let claimed = election.try_claim_leadership(handle);
                claimed.map(said).map_err(Refusal::from)
            }
            "await leadership" => loop {
                match election.try_claim_leadership(handle) {
                    Ok(Leadership::Theirs(leader)) => {
                        let waited = election.wait_for_change(Some(leader), LIMIT);
                        waited.expect("the same election");
                    }
                    claimed => break claimed.map(said).map_err(Refusal::from),
                }
            },
            "beat" => {
                let beaten = election.beat_as_leader(handle);
                beaten.map(|_| String::new()).map_err(Refusal::from)
            }
            "register" => {
                let registered = table.register(std::process::id());
                registered.map_err(Refusal::from).map(|registered| {
                    handle = registered;
                    String::new()
                })
            }
            other => panic!("no command: {other:?}"),
        };
        roles::answer(&reply);
    }
}

fn candidate(scene: &Scene) -> Child {
    Child::start("candidate", &[scene.table_path().into()])
}
