//! `bumpless watch`: each verdict is handed to its command until that takes it, whatever hangs or dies.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child as Process, Command, Stdio};
use std::time::{Duration, Instant};

use bumpless_substrate::guard::spawn_guarded;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::child::{Child, await_until};
use crate::lines::{Lines, Next};
use crate::scene::Scene;

const LIMIT: Duration = Duration::from_secs(30);

/// A `bumpless watch --json` whose command is a script.
struct Watch {
    process: Process,
    lines: Lines,
}

/// Nobody is silent, and no other watch takes over, before this one is late for four of these periods.
const PATIENT_PERIOD: &str = "1s";

impl Watch {
    fn start(scene: &Scene, period: &str, script: &str) -> Self {
        let file = scene.path("command");
        std::fs::write(&file, script).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_bumpless"));
        command.arg("watch").arg(scene.table_path());
        command.args(["--json", "--period", period, "--grace", "10", "--exec"]);
        command.arg(format!("sh {}", file.display()));
        command.current_dir(scene.folder());
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = spawn_guarded(&mut command, None).expect("a watch");
        let pipe = process.stdout.take().expect("a pipe");
        let lines = Lines::new(pipe.into());
        Self { process, lines }
    }

    /// The next line that tells of this.
    #[track_caller]
    fn event(&mut self, event: &str) -> Value {
        loop {
            let Next::Line(line) = self.lines.next(Some(LIMIT)) else {
                panic!("no `{event}` within {LIMIT:?}");
            };
            let found: Value = serde_json::from_str(&line).expect("JSON");
            if found["event"] == event {
                return found;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).expect("a child of ours");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for, ended or not.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A worker that beats, with these units in flight; its slot.
fn beating_worker(scene: &Scene, grace_epochs: u16, units: &str) -> (Child, u64) {
    let mut worker = scene.member();
    let place = worker.done(&format!("register {grace_epochs} worker"));
    worker.done(&format!("mark {units}"));
    worker.done("beating 10");
    let slot = place.split(' ').next().and_then(|slot| slot.parse().ok());
    (worker, slot.expect("a slot"))
}

/// How often a unit of each name was given to the command, by what it wrote into a file.
fn given(file: PathBuf) -> BTreeMap<String, u32> {
    let mut names = BTreeMap::new();
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // A command may be writing the last line now.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines() {
        let report: Value = serde_json::from_str(line).expect("JSON");
        for unit in report["units"].as_array().expect("units") {
            let name = unit["name"].as_str().expect("a name").to_owned();
            *names.entry(name).or_default() += 1;
        }
    }
    names
}

/// 72.
pub fn each_verdict_is_handed_to_a_command_until_it_takes_it_and_never_again(scene: &Scene) {
    let table = scene.table(64);
    // Takes a verdict at the second attempt.
    let script = r#"report=$(cat); echo "$report" >> given
        owner=$(echo "$report" | sed 's/.*"slot":\([0-9]*\),"generation":\([0-9]*\),.*/\1-\2/')
        mkdir "tried-$owner" 2> /dev/null && exit 9; exit 0"#;
    // Only the one that is stopped may be late: where the machine is busy it is, perhaps, before.
    let [endless, silent] = [u16::MAX, 0];
    let workers: Vec<_> = [
        ("0 1", endless),
        ("5", endless),
        ("127", endless),
        ("64", silent),
    ]
    .map(|(units, grace_epochs)| beating_worker(scene, grace_epochs, units))
    .into();
    let mut wanted = BTreeMap::new();
    for (_, slot) in &workers {
        let cells = table.cells(*slot as usize).expect("a slot");
        let generation = cells.slot.peek_claim().generation();
        for unit in cells.slot.units(generation).iter() {
            let creation_id = table.creation_id();
            wanted.insert(format!("{creation_id:016x}/{slot}/{generation}/{unit}"), 2);
        }
    }
    let mut watch = Watch::start(scene, "100ms", script);
    watch.event("primary");
    for ((worker, _), is_stopped) in workers.iter().zip([false, false, false, true]) {
        if is_stopped {
            worker.stop();
        } else {
            worker.kill();
        }
    }
    let (mut acknowledged, mut units) = (Vec::new(), 0);
    while acknowledged.len() < workers.len() {
        let line = watch.event("acknowledged");
        assert_eq!(line["attempt"], 2, "{line}");
        acknowledged.push(line["slot"].as_u64().expect("a slot"));
        units += line["units"].as_u64().expect("a count");
    }
    acknowledged.sort_unstable();
    let mut slots: Vec<_> = workers.iter().map(|(_, slot)| *slot).collect();
    slots.sort_unstable();
    assert_eq!((acknowledged, units), (slots, 5));
    // A life after that: nothing is given again.
    let (last, slot) = beating_worker(scene, endless, "7");
    let generation = table.snapshot(slot as usize).expect("owned").generation;
    last.kill();
    watch.event("acknowledged");
    let creation_id = table.creation_id();
    wanted.insert(format!("{creation_id:016x}/{slot}/{generation}/7"), 2);
    watch.signal(Signal::TERM);
    let code = watch.process.wait().expect("a child of ours").code();
    assert_eq!(code, Some(0));
    assert_eq!(given(scene.path("given")), wanted);
}

/// 73.
pub fn a_command_that_hangs_stalls_no_verdict_and_a_standby_gives_its_units_again(scene: &Scene) {
    let _table = scene.table(64);
    let (one, _) = beating_worker(scene, 0, "1");
    let (two, _) = beating_worker(scene, 0, "2");
    // Hangs for the first one's death, as long as it is told to.
    let script = r#"report=$(cat); echo "$report" >> given
        case "$report" in *'"unit":1,'*) [ -e go-on ] || exec sleep 1000;; esac"#;
    let mut first = Watch::start(scene, PATIENT_PERIOD, script);
    first.event("primary");
    let mut second = Watch::start(scene, PATIENT_PERIOD, script);
    second.event("standby");
    one.kill();
    let verdict = first.event("verdict");
    let hanging = verdict["units"][0]["name"].as_str().expect("a name");
    await_until(LIMIT, "a command that hangs", || {
        given(scene.path("given")).contains_key(hanging)
    });
    let killed = Instant::now();
    two.kill();
    assert_eq!(first.event("verdict")["units"][0]["unit"], 2);
    let told = killed.elapsed();
    assert_eq!(first.event("acknowledged")["units"], 1);
    // Its command dies with it, and what it was about to take is given to the next one.
    std::fs::write(scene.path("go-on"), "").expect("a file");
    first.signal(Signal::KILL);
    // Its own death may be told before.
    while second.event("verdict")["units"][0]["name"] != hanging {}
    while second.event("acknowledged")["units"] != 1 {}
    assert_eq!(given(scene.path("given"))[hanging], 2);
    scene.note(&format!(
        "while a command hung, another death was told after {told:.1?}"
    ));
}

/// 74.
pub fn a_watch_that_was_stopped_while_another_took_over_acknowledges_nothing(scene: &Scene) {
    let table = scene.table(64);
    let (worker, slot) = beating_worker(scene, 0, "3");
    let generation = table.snapshot(slot as usize).expect("owned").generation;
    let name = format!("{:016x}/{slot}/{generation}/3", table.creation_id());
    let script = r#"cat >> given; until [ -e go-on ]; do sleep 0.02; done"#;
    let mut first = Watch::start(scene, PATIENT_PERIOD, script);
    first.event("primary");
    let mut second = Watch::start(scene, PATIENT_PERIOD, script);
    second.event("standby");
    worker.kill();
    let given = || given(scene.path("given"));
    await_until(LIMIT, "the first command", || given().contains_key(&name));
    first.signal(Signal::STOP);
    await_until(LIMIT, "the second command", || {
        given().get(&name) == Some(&2)
    });
    std::fs::write(scene.path("go-on"), "").expect("a file");
    while second.event("acknowledged")["units"] != 1 {}
    first.signal(Signal::CONT);
    let refused = first.event("refused");
    let why = refused["why"].as_str().expect("a reason");
    assert!(why.contains("reported in term"), "{why}");
    assert_eq!(given()[&name], 2);
}
