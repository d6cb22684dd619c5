//! A standby pair and its plant as real processes of the tool, for scenarios.
//!
//! Contract: every process dies with the harness, and is killed and reaped when the pair is dropped. What
//! they write lies in a folder of the run, which `bumpless standby report` reads: the figures are its, not
//! the scenario's. No scenario asserts a time: a busy machine is late by itself, and the report tells
//! what a node's own lateness did.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::guard::spawn_guarded;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::child::await_until;
use crate::orders::answer_to;
use crate::proxy::Proxy;
use crate::scene::Scene;
use crate::setup::Setup;
use crate::steps::goes_on;

/// The tool.
pub const BUMPLESS: &str = env!("CARGO_BIN_EXE_bumpless");

/// How long anything here may take.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A pair that stands for so long is not about to change by itself.
const SETTLED_CYCLES: u64 = 20;

pub const PERIOD_NS: u64 = 10_000_000;
const MISS: u32 = 3;

/// One run.
#[derive(Debug)]
pub struct Pair {
    folder: PathBuf,
    setup: Setup,
    plant: Process,
    nodes: [Option<Process>; 2],
    lives: [u32; 2],
    deeds: File,
    /// When the first fault was noted, at which node. On a busy machine it is done some cycles later, and
    /// what was on its way then may be lost.
    fault: Option<(u64, u8)>,
    proxy: Option<Proxy>,
}

/// One cycle of a node, as its log says.
#[derive(Debug, Clone, PartialEq)]
pub struct Cycle {
    pub number: u64,
    pub begin_ns: u64,
    pub spent_ns: u64,
    pub state: String,
}

impl Cycle {
    fn drives(&self) -> bool {
        matches!(self.state.as_str(), "primary" | "solo")
    }
}

/// An output at the plant.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    pub at_ns: u64,
    pub node: u8,
    pub cycle: u64,
    pub value: f64,
    pub is_accepted: bool,
}

impl Pair {
    /// Starts everything in a folder of the scene, and returns when one node has been primary and the other
    /// one qualified for a while; which one is primary.
    pub fn start(scene: &Scene, name: &str, setup: Setup) -> (Self, u8) {
        let mut pair = Self::start_blank(scene, name, setup);
        let first = pair.await_redundancy();
        pair.await_cycles(first, SETTLED_CYCLES);
        let primary = pair.await_redundancy();
        (pair, primary)
    }

    fn start_blank(scene: &Scene, name: &str, setup: Setup) -> Self {
        let folder = scene.path(name);
        for part in ["", "plant", "node0", "node1"] {
            std::fs::create_dir(folder.join(part)).expect("a folder");
        }
        let settings = serde_json::json!({
            "fault": name, "link": "real", "period_ns": PERIOD_NS, "miss": MISS,
        });
        std::fs::write(folder.join("run.json"), settings.to_string()).expect("written");
        let deeds = File::create(folder.join("deeds")).expect("a file");
        let proxy = (!setup.proxy.is_empty()).then(|| Proxy::start(&setup.proxy));
        let mut command = tool(&setup.wrappers[0], "plant");
        command.arg("--commission").args(&setup.plant);
        command.arg("--state-dir").arg(folder.join("plant"));
        command.arg("--log").arg(folder.join("plant.log"));
        command.args(&setup.all);
        command.stdout(File::create(folder.join("plant.json")).expect("a file"));
        let plant = Process::start(&mut command);
        let mut pair = Self {
            folder,
            setup,
            plant,
            nodes: [None, None],
            lives: [0, 0],
            deeds,
            fault: None,
            proxy,
        };
        pair.start_node(0);
        pair.start_node(1);
        pair
    }

    /// Starts a node, or starts it again.
    pub fn start_node(&mut self, node: u8) {
        let index = usize::from(node);
        // One that was told to end may not have ended yet: it still has the folder and the port.
        self.nodes[index] = None;
        self.lives[index] += 1;
        let setup = &self.setup;
        let mut command = tool(&setup.wrappers[index + 1], "node");
        command.args(["--id", &node.to_string(), "--miss", &MISS.to_string()]);
        command.args(&setup.nodes[index]).args(&setup.all);
        command.arg("--state-dir").arg(self.state_dir(node));
        command.arg("--log").arg(self.file_of(node, "log"));
        command.envs(setup.environment[index].iter().cloned());
        command.stdout(File::create(self.file_of(node, "events")).expect("a file"));
        self.nodes[index] = Some(Process::start(&mut command));
    }

    /// Changes what later starts are told.
    pub fn setup_mut(&mut self) -> &mut Setup {
        &mut self.setup
    }

    /// Where a node takes its orders.
    pub fn state_dir(&self, node: u8) -> PathBuf {
        self.folder.join(format!("node{node}"))
    }

    /// Awaits a primary and a qualified standby; which one is primary.
    pub fn await_redundancy(&mut self) -> u8 {
        let mut primary = None;
        await_until(LIMIT, "a primary and a qualified standby", || {
            let cycles = [0, 1].map(|node| self.last_cycle(node));
            // One that stands still may be replaced in this moment.
            let recent_ns = monotonic_ns().saturating_sub(2 * PERIOD_NS);
            let is_recent = |cycle: &Cycle| cycle.begin_ns > recent_ns;
            let states = cycles.map(|cycle| cycle.filter(is_recent).map(|cycle| cycle.state));
            primary = match [states[0].as_deref(), states[1].as_deref()] {
                [Some("primary"), Some("qualified")] => Some(0),
                [Some("qualified"), Some("primary")] => Some(1),
                _ => None,
            };
            primary.is_some()
        });
        primary.expect("just found")
    }

    /// Where a node stood after its last cycle.
    pub fn state(&self, node: u8) -> String {
        let cycle = self.last_cycle(node);
        cycle.map_or_else(String::new, |cycle| cycle.state)
    }

    fn last_cycle(&self, node: u8) -> Option<Cycle> {
        last_line(&self.file_of(node, "log")).and_then(|line| parse_cycle(&line))
    }

    /// Awaits so many more cycles of a node.
    pub fn await_cycles(&self, node: u8, count: u64) {
        let first = self.last_cycle(node).map_or(0, |cycle| cycle.number);
        await_until(LIMIT, &format!("{count} cycles of node {node}"), || {
            self.last_cycle(node)
                .is_some_and(|cycle| cycle.number >= first + count)
        });
    }

    /// Awaits that a node of this life told an event with these words in it, and returns its cycle.
    pub fn await_event(&self, node: u8, wanted: &str) -> u64 {
        let mut found = None;
        await_until(LIMIT, &format!("`{wanted}` of node {node}"), || {
            let mut told = self.events(node).into_iter();
            found = told.find(|event| event["detail"].as_str().is_some_and(|d| d.contains(wanted)));
            found.is_some()
        });
        found
            .and_then(|event| event["cycle"].as_u64())
            .expect("a cycle")
    }

    /// Awaits that a node has taken over and drives. It may have taken over before, and given the role back,
    /// where the machine was late.
    pub fn await_takeover(&self, node: u8) {
        self.await_event(node, "cause: Takeover");
        await_until(LIMIT, &format!("node {node} drives"), || {
            self.last_cycle(node).is_some_and(|cycle| cycle.drives())
        });
    }

    /// What a node told in all its lives.
    pub fn events(&self, node: u8) -> Vec<Value> {
        self.events_since(node, 1)
    }

    /// What a node told in its present life, or its last one.
    pub fn events_of_last_life(&self, node: u8) -> Vec<Value> {
        self.events_since(node, self.lives[usize::from(node)])
    }

    fn events_since(&self, node: u8, first_life: u32) -> Vec<Value> {
        let lives = first_life..=self.lives[usize::from(node)];
        let lines = lives.flat_map(|life| whole_lines(&self.life_file(node, life, "events")));
        lines
            .map(|line| serde_json::from_str(&line).expect("an event"))
            .collect()
    }

    /// The cycles of a node in all its lives.
    pub fn cycles(&self, node: u8) -> Vec<Cycle> {
        let lives = 1..=self.lives[usize::from(node)];
        let lines = lives.flat_map(|life| whole_lines(&self.life_file(node, life, "log")));
        lines
            .map(|line| parse_cycle(&line).unwrap_or_else(|| panic!("no cycle: {line}")))
            .collect()
    }

    /// What the plant was offered.
    pub fn offers(&self) -> Vec<Offer> {
        let lines = whole_lines(&self.folder.join("plant.log")).into_iter();
        lines
            .map(|line| {
                let words: Vec<&str> = line.split(' ').collect();
                let [at, node, _, cycle, value, refusal] = words[..] else {
                    panic!("no output: {line}");
                };
                Offer {
                    at_ns: at.parse().expect("a time"),
                    node: node.parse().expect("a node"),
                    cycle: cycle.parse().expect("a cycle"),
                    value: value.parse().expect("a value"),
                    is_accepted: refusal == "-",
                }
            })
            .collect()
    }

    /// Writes down that something is done now to a node.
    pub fn note(&mut self, what: &str, node: u8) -> u64 {
        let at_ns = monotonic_ns();
        self.note_at(at_ns, what, node);
        at_ns
    }

    fn note_at(&mut self, at_ns: u64, what: &str, node: u8) {
        writeln!(self.deeds, "{at_ns} {what} {node}").expect("written");
        if matches!(what, "kill" | "stop" | "cut" | "hang") {
            self.fault = self.fault.or(Some((at_ns, node)));
        }
    }

    /// SIGKILL to a node.
    pub fn kill(&mut self, node: u8) {
        self.note("kill", node);
        self.nodes[usize::from(node)] = None;
    }

    /// A signal to a node, under this name.
    pub fn signal(&mut self, node: u8, what: &str, signal: Signal) {
        self.note(what, node);
        let process = self.nodes[usize::from(node)].as_ref();
        process.expect("a running node").signal(signal);
    }

    /// Returns when a node has ended by itself.
    pub fn await_ended(&mut self, node: u8) {
        let place = &mut self.nodes[usize::from(node)];
        let process = place.as_mut().expect("a running node");
        await_until(LIMIT, &format!("the end of node {node}"), || {
            process.has_ended()
        });
        *place = None;
    }

    /// Whether a node runs.
    pub fn is_running(&mut self, node: u8) -> bool {
        let process = self.nodes[usize::from(node)].as_mut();
        process.is_some_and(|process| !process.has_ended())
    }

    /// The process id of a node.
    pub fn pid(&self, node: u8) -> u32 {
        let process = self.nodes[usize::from(node)].as_ref();
        process.expect("a running node").0.id()
    }

    /// Cuts (`cut`) or heals (`heal`) these ways, under the name `what`; when.
    pub fn proxy(&mut self, what: &str, node: u8, order: &str) -> u64 {
        let proxy = self.proxy.as_mut().expect("a proxy");
        let at_ns = proxy.order(order);
        self.note_at(at_ns, what, node);
        at_ns
    }

    /// Gives a node an order, as the tool's commands do; its answer.
    pub fn order(&self, node: u8, word: &str) -> String {
        let to = self.state_dir(node).join("orders");
        answer_to(word, &to, &self.folder.join("answer"))
    }

    /// Ends everything; what the tool reports of the run. Must hold for every run: no stale output was
    /// accepted, one node drives at the end, no takeover was false, and there is no bump that lateness does
    /// not explain.
    #[track_caller]
    pub fn report(mut self) -> (Value, Self) {
        let mut moment_ns = 0;
        await_until(LIMIT, "one primary, whose outputs are accepted", || {
            moment_ns = monotonic_ns();
            // Whoever stands still, or waits for the plant, may be replaced in this moment.
            let recent_ns = moment_ns.saturating_sub(2 * PERIOD_NS);
            let mut driving = [0, 1].into_iter().filter(|node| {
                let cycle = self.last_cycle(*node).filter(|cycle| cycle.drives());
                let is_running = self.nodes[usize::from(*node)].is_some();
                cycle.is_some_and(|cycle| is_running && cycle.begin_ns > recent_ns)
            });
            let mut offers = self.offers().into_iter();
            let during = recent_ns + 1..moment_ns;
            let writer = offers.rfind(|offer| offer.is_accepted && during.contains(&offer.at_ns));
            let (one, other) = (driving.next(), driving.next());
            one.is_some() && other.is_none() && writer.map(|offer| offer.node) == one
        });
        // As it stood then, whatever the machine does to us since.
        self.note_at(moment_ns, "end", 0);
        self.nodes = [None, None];
        self.plant.signal(Signal::TERM);
        let ended = self.plant.0.wait().expect("a child of ours");
        assert!(ended.success(), "the plant: {ended}");
        let mut command = Command::new(BUMPLESS);
        command.args(["standby", "report"]).arg(&self.folder);
        let output = command.output().expect("a report");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let last = text.lines().last().unwrap_or_default();
        let figures: Value = serde_json::from_str(last)
            .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
        for (name, wanted) in [
            ("stale_accepted", 0),
            ("primaries_at_end", 1),
            ("false_takeovers", 0),
        ] {
            assert_eq!(figures[name], wanted, "{name}\n{text}");
        }
        if figures["bump"] != figures["lateness_steps"] {
            assert!(self.goes_on_after_the_fault(), "bump\n{text}");
        }
        (figures, self)
    }

    /// Whether the output goes on as the cycles of both nodes say, whichever the old one was heard in last.
    fn goes_on_after_the_fault(&self) -> bool {
        let offers = self.offers().into_iter();
        let accepted: Vec<Offer> = offers.filter(|offer| offer.is_accepted).collect();
        let change = self.fault.and_then(|(at_ns, node)| {
            accepted.windows(2).find(|two| {
                let [last, first] = [&two[0], &two[1]];
                first.at_ns >= at_ns && last.node == node && first.node != node
            })
        });
        change.is_some_and(|change| goes_on(self, &change[0], &change[1]))
    }

    fn file_of(&self, node: u8, kind: &str) -> PathBuf {
        self.life_file(node, self.lives[usize::from(node)], kind)
    }

    fn life_file(&self, node: u8, life: u32, kind: &str) -> PathBuf {
        self.folder.join(format!("node{node}-{life}.{kind}"))
    }
}

/// A process that is killed and reaped when dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    pub fn start(command: &mut Command) -> Self {
        Self(spawn_guarded(command, None).expect("a process"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("a signal to a child of ours");
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("a child of ours").is_some()
    }

    /// Its input.
    pub fn take_stdin(&mut self) -> ChildStdin {
        self.0.stdin.take().expect("a pipe")
    }

    /// Its output.
    pub fn take_stdout(&mut self) -> ChildStdout {
        self.0.stdout.take().expect("a pipe")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for, ended or not.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The tool in a role, started by `wrapper` if that names a program.
pub fn tool(wrapper: &[String], role: &str) -> Command {
    let mut command = match wrapper {
        [] => Command::new(BUMPLESS),
        [program, rest @ ..] => {
            let mut command = Command::new(program);
            command.args(rest).arg(BUMPLESS);
            command
        }
    };
    command.args(["standby", role]).stdin(Stdio::null());
    command
}

/// The run had its takeover; or the machine was late in the moment of the fault, and the role had changed
/// by itself.
#[track_caller]
pub fn assert_taken_over(figures: &Value) {
    assert!(
        figures["takeover_us"].is_f64() || was_late(figures),
        "{figures}"
    );
}

/// Who was primary stayed one when nothing was done to it; or the machine was late, and the role changed by
/// itself.
#[track_caller]
pub fn assert_stayed(stays: bool, figures: &Value) {
    assert!(stays || was_late(figures), "{figures}");
}

fn was_late(figures: &Value) -> bool {
    late_takeovers(figures) > 0
}

/// Takeovers that came of lateness.
pub fn late_takeovers(figures: &Value) -> u64 {
    let late = ["primary_late", "plant_late", "partly_late"];
    late.iter().filter_map(|name| figures[name].as_u64()).sum()
}

/// So many runs in the gate; a long series by `BUMPLESS_XPROC_RUNS`.
pub fn runs(short: usize) -> usize {
    let wanted = std::env::var("BUMPLESS_XPROC_RUNS").ok();
    wanted.and_then(|word| word.parse().ok()).unwrap_or(short)
}

fn whole_lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let end = text.rfind('\n').unwrap_or(0);
    text[..end].lines().map(str::to_owned).collect()
}

fn last_line(path: &Path) -> Option<String> {
    whole_lines(path).pop()
}

fn parse_cycle(line: &str) -> Option<Cycle> {
    let words: Vec<&str> = line.split(' ').collect();
    let [number, begin_ns, _, spent_ns, state, _] = words[..] else {
        return None;
    };
    Some(Cycle {
        number: number.parse().ok()?,
        begin_ns: begin_ns.parse().ok()?,
        spent_ns: spent_ns.parse().ok()?,
        state: state.to_owned(),
    })
}
