//! The processes of one run: plant, two nodes, and where something is to be cut, a proxy between them.
//!
//! Contract: every process is this program again, in a process group of its own; it dies with this one,
//! and is ended and reaped when the stage is dropped. What they write lies in a private folder in memory
//! ([`record`](super::record)), which goes with the stage.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use bumpless_substrate::clock::monotonic_ns;
use bumpless_substrate::guard::spawn_guarded;
use rustix::process::{Pid, Signal, kill_process};

use super::plan::{LinkKind, Plan};
use super::record::{NodeCycle, Settings, last_accepted, last_cycle, node_file};
use crate::private_folder::PrivateFolder;
use crate::signals::Signals;
use crate::standby::error::StandbyError;

/// How long a process may take to end when it is asked to.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// One run's processes.
#[derive(Debug)]
pub struct Stage {
    settings: Settings,
    plan: Plan,
    /// Present where something is to be cut.
    proxy: Option<Proxy>,
    plant: Actor,
    nodes: [Option<Actor>; 2],
    lives: [u32; 2],
    deeds: File,
    signals: Signals,
    /// Dropped last: the others have files in it.
    folder: PrivateFolder,
}

impl Stage {
    /// Starts everything.
    pub fn set(
        settings: Settings,
        link: LinkKind,
        has_proxy: bool,
        signals: Signals,
    ) -> Result<Self, StandbyError> {
        let folder = PrivateFolder::in_memory("bumpless-demo-")?;
        let path = |name: &str| folder.path().join(name);
        let text = serde_json::to_string(&settings).unwrap_or_default();
        let written = std::fs::write(path("run.json"), text);
        written.map_err(StandbyError::file("write", &path("run.json")))?;
        let deeds = create(&path("deeds"))?;
        let plan = Plan::new(link, folder.path(), has_proxy);
        let proxy = match plan.has_proxy() {
            true => Some(Proxy::start(&plan)?),
            false => None,
        };
        std::fs::create_dir(path("plant")).map_err(StandbyError::file("make", &path("plant")))?;
        let mut command = this_program(&["plant", "--commission"]);
        command.args(plan.plant_arguments());
        command.arg("--state-dir").arg(path("plant"));
        command.arg("--log").arg(path("plant.log"));
        pair(&mut command, &settings);
        command.stdout(create(&path("plant.json"))?);
        let mut stage = Self {
            plant: Actor::start("plant", &mut command)?,
            settings,
            plan,
            proxy,
            nodes: [None, None],
            lives: [0, 0],
            deeds,
            signals,
            folder,
        };
        for node in [0, 1] {
            let state = stage.folder.path().join(format!("node{node}"));
            std::fs::create_dir(&state).map_err(StandbyError::file("make", &state))?;
            stage.start_node(node)?;
        }
        Ok(stage)
    }

    /// Where everything is written.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a node, or starts it again.
    pub fn start_node(&mut self, node: u8) -> Result<(), StandbyError> {
        let index = usize::from(node);
        self.lives[index] += 1;
        let mut command = this_program(&["node"]);
        command.args(["--id", &node.to_string()]);
        command.args(self.plan.node_arguments(node));
        command.args(["--miss", &self.settings.miss.to_string()]);
        let state = self.folder.path().join(format!("node{node}"));
        command.arg("--state-dir").arg(state);
        command.arg("--log").arg(self.file_of(node, "log"));
        pair(&mut command, &self.settings);
        command.stdout(create(&self.file_of(node, "events"))?);
        self.nodes[index] = Some(Actor::start(&format!("node {node}"), &mut command)?);
        Ok(())
    }

    /// Returns which node is primary, once the other one is qualified.
    pub fn await_redundancy(&mut self, limit: Duration) -> Result<u8, StandbyError> {
        let mut primary = None;
        self.await_until(limit, |stage| {
            let cycles = [0, 1].map(|node| last_cycle(&stage.file_of(node, "log")));
            // One that stands still may be replaced in this moment.
            let recent_ns = monotonic_ns().saturating_sub(2 * stage.settings.period_ns);
            let states = cycles.map(|last| last.filter(|last| last.begin_ns > recent_ns));
            primary = match states.map(|last| last.map(|last| last.state)) {
                [Some(one), Some(other)] if one == "primary" && other == "qualified" => Some(0),
                [Some(one), Some(other)] if one == "qualified" && other == "primary" => Some(1),
                _ => None,
            };
            primary.is_some()
        })?;
        primary.ok_or(StandbyError::NotWithin {
            what: "a primary and a qualified standby",
            limit,
        })
    }

    /// Returns when one living node drives and the plant takes its outputs; also when that is not so for so
    /// long. The moment: the run is judged as it stood then, whatever the machine does to us since.
    pub fn await_one_primary(&mut self, limit: Duration) -> Result<u64, StandbyError> {
        let mut moment_ns = 0;
        self.await_until(limit, |stage| {
            moment_ns = monotonic_ns();
            // Whoever stands still, or waits for the plant, may be replaced in this moment.
            let recent_ns = moment_ns.saturating_sub(2 * stage.settings.period_ns);
            let last = |node: u8| {
                let runs = stage.nodes[usize::from(node)].is_some();
                last_cycle(&stage.file_of(node, "log")).filter(|_| runs)
            };
            let drives = |last: &NodeCycle| last.drives() && last.begin_ns > recent_ns;
            let [one, other] = [0, 1].map(|node| last(node).is_some_and(|last| drives(&last)));
            let writer = last_accepted(&stage.folder.path().join("plant.log"), moment_ns);
            let writer = writer.filter(|offer| offer.at_ns > recent_ns);
            let wanted = [(true, false, 0), (false, true, 1)];
            writer.is_some_and(|offer| wanted.contains(&(one, other, offer.node)))
        })?;
        Ok(moment_ns)
    }

    /// Lets everything run for so long.
    pub fn await_time(&mut self, time: Duration) -> Result<(), StandbyError> {
        self.await_until(time, |_| false)
    }

    fn await_until(
        &mut self,
        limit: Duration,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Result<(), StandbyError> {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && !condition(self) {
            if self.signals.asked() {
                return Err(StandbyError::Interrupted);
            }
            let nodes = self.nodes.iter_mut().flatten();
            for actor in nodes.chain([&mut self.plant]) {
                actor.check_running()?;
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Sends a node a signal.
    pub fn signal(&mut self, what: &str, node: u8, signal: Signal) -> Result<(), StandbyError> {
        let at_ns = monotonic_ns();
        let place = &mut self.nodes[usize::from(node)];
        if let Some(actor) = place {
            actor.signal(signal)?;
        }
        if signal == Signal::KILL {
            *place = None;
        }
        self.note(at_ns, what, node)
    }

    /// Cuts or heals these ways; `node` is the one that suffers.
    pub fn order_proxy(
        &mut self,
        what: &str,
        node: u8,
        order: &str,
        ways: &[String],
    ) -> Result<(), StandbyError> {
        if let Some(proxy) = &mut self.proxy {
            let at_ns = proxy.order(&format!("{order} {}", ways.join(" ")))?;
            self.note(at_ns, what, node)?;
        }
        Ok(())
    }

    /// Writes down what was done.
    pub fn note(&mut self, at_ns: u64, what: &str, node: u8) -> Result<(), StandbyError> {
        writeln!(self.deeds, "{at_ns} {what} {node}").map_err(|error| StandbyError::File {
            doing: "write",
            path: self.folder.path().join("deeds"),
            error,
        })
    }

    /// Asks everybody to end, the nodes first. The run ended at this moment.
    pub fn end(&mut self, at_ns: u64) -> Result<(), StandbyError> {
        self.note(at_ns, "end", 0)?;
        for nodes_turn in [true, false] {
            let nodes = self.nodes.iter_mut().flatten().filter(|_| nodes_turn);
            let plant = Some(&mut self.plant).filter(|_| !nodes_turn);
            let mut actors: Vec<&mut Actor> = nodes.chain(plant).collect();
            for actor in &mut actors {
                actor.signal(Signal::TERM)?;
            }
            for actor in actors {
                actor.await_end();
            }
        }
        Ok(())
    }

    /// The number of paths between the nodes.
    pub fn paths(&self) -> u16 {
        self.plan.paths()
    }

    fn file_of(&self, node: u8, kind: &str) -> PathBuf {
        let life = self.lives[usize::from(node)];
        node_file(self.folder.path(), node, life, kind)
    }
}

/// A process of the stage.
#[derive(Debug)]
struct Actor {
    name: String,
    process: Child,
}

impl Actor {
    fn start(name: &str, command: &mut Command) -> Result<Self, StandbyError> {
        // A terminal's signals are for the parent, which ends its children itself.
        command.process_group(0);
        Ok(Self {
            name: name.to_owned(),
            process: spawn_guarded(command, None)?,
        })
    }

    fn signal(&mut self, signal: Signal) -> Result<(), StandbyError> {
        // A child of ours that was not waited for: the pid is nobody else's.
        kill_process(Pid::from_child(&self.process), signal).map_err(|errno| StandbyError::System {
            doing: "send a signal",
            error: errno.into(),
        })
    }

    fn check_running(&mut self) -> Result<(), StandbyError> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(StandbyError::Ended {
                name: self.name.clone(),
                status,
            }),
            Err(error) => Err(StandbyError::System {
                doing: "look after a child",
                error,
            }),
        }
    }

    fn await_end(&mut self) {
        let deadline = Instant::now() + END_LIMIT;
        while matches!(self.process.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        // Neither fails for a child that was not waited for, ended or not.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The proxy, from outside.
#[derive(Debug)]
struct Proxy {
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    _actor: Actor,
}

impl Proxy {
    fn start(plan: &Plan) -> Result<Self, StandbyError> {
        let mut command = this_program(&["proxy"]);
        command.args(plan.proxy_arguments());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut actor = Actor::start("proxy", &mut command)?;
        let (Some(orders), Some(answers)) =
            (actor.process.stdin.take(), actor.process.stdout.take())
        else {
            return Err(StandbyError::Proxy(String::new()));
        };
        let mut proxy = Self {
            orders,
            answers: BufReader::new(answers),
            _actor: actor,
        };
        proxy.answer()?;
        Ok(proxy)
    }

    /// When it was done; unit: ns.
    fn order(&mut self, order: &str) -> Result<u64, StandbyError> {
        writeln!(self.orders, "{order}").map_err(|error| StandbyError::System {
            doing: "order the proxy",
            error,
        })?;
        self.answer()
    }

    fn answer(&mut self) -> Result<u64, StandbyError> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        read.map_err(|error| StandbyError::System {
            doing: "hear the proxy",
            error,
        })?;
        let at_ns = line.trim_end().strip_prefix("done ");
        at_ns
            .and_then(|word| word.parse().ok())
            .ok_or(StandbyError::Proxy(line))
    }
}

fn this_program(words: &[&str]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("bumpless").arg("standby").args(words);
    command.stdin(Stdio::null());
    command
}

fn pair(command: &mut Command, settings: &Settings) {
    let period = format!("{}us", settings.period_ns / 1_000);
    command.args(["--period", &period]);
    command.args(["--cluster", &std::process::id().to_string()]);
}

fn create(path: &Path) -> Result<File, StandbyError> {
    File::create(path).map_err(StandbyError::file("create", path))
}
