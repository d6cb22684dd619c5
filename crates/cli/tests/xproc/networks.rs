//! Standby pairs in network namespaces of their own, on one bridge: what is cut is the network.
//!
//! ```text
//!   node 0        node 1        plant         each a namespace with one interface, `eth0`
//!   10.7.0.1      10.7.0.2      10.7.0.3
//!     │             │             │
//!     p0            p1            p2          ports of `br0` in a namespace of its own
//!     └─────────────┴─────────────┘
//! ```
//! The namespaces go with the processes that hold them.

use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};

use serde_json::Value;

use crate::child::Child;
use crate::pair::{Pair, Process, assert_stayed, assert_taken_over, runs};
use crate::scene::Scene;
use crate::setup::{Setup, words};
use crate::takeovers::summary;

const LASTS: u64 = 20;

/// The limits of the takeover on a quiet machine, for T = 10 ms and 3 missed cycles; unit: ms.
const MEDIAN_MS: f64 = 3.5 * 10.0 + 2.0;
const MAX_MS: f64 = 4.5 * 10.0 + 5.0;

/// Why no such network can be made here.
pub fn missing() -> Option<String> {
    let mut command = Command::new("unshare");
    command.args([
        "--net", "ip", "link", "add", "name", "br0", "type", "bridge",
    ]);
    let made = command.output();
    match made {
        Ok(output) if output.status.success() => None,
        _ => Some("may not make networks".to_owned()),
    }
}

/// 160.
pub fn killed_primary_is_replaced_across_a_bridge(scene: &Scene) {
    let network = Network::new();
    series(scene, "kill", &network, |pair, _, primary| {
        pair.kill(primary)
    });
}

/// 161.
pub fn primary_whose_port_left_the_bridge_is_replaced_and_comes_back(scene: &Scene) {
    let mut network = Network::new();
    cut_and_heal(scene, "silent", &mut network, "nomaster", "master br0");
}

/// 162.
pub fn primary_without_carrier_is_replaced_and_comes_back(scene: &Scene) {
    let mut network = Network::new();
    cut_and_heal(scene, "carrier", &mut network, "down", "up");
}

/// 163.
pub fn primary_whose_frames_reach_only_the_plant_is_replaced_once(scene: &Scene) {
    let network = Network::new();
    series(scene, "mute", &network, |pair, network, primary| {
        // To its partner's address belongs a card that nobody has: what it sends gets lost, what it
        // hears does not.
        let standby = 1 - primary;
        pair.note("cut", primary);
        network.ip_in(usize::from(primary), &neighbour(standby));
        pair.await_event(primary, "Demoted");
    });
}

fn neighbour(node: u8) -> String {
    let address = format!("10.7.0.{}", node + 1);
    format!("neigh replace {address} lladdr 02:00:00:00:00:99 dev eth0 nud permanent")
}

/// Runs with a fault that stays; the next run has a network of its own again.
fn series(scene: &Scene, name: &str, network: &Network, fault: impl Fn(&mut Pair, &Network, u8)) {
    let mut all = Vec::new();
    for run in 0..runs(2) {
        let (mut pair, primary) = Pair::start(scene, &format!("{name}{run}"), network.setup());
        fault(&mut pair, network, primary);
        pair.await_takeover(1 - primary);
        pair.await_cycles(1 - primary, LASTS);
        all.push(pair.report().0);
        for node in 0..2 {
            network.ip_in(node, "neigh flush dev eth0 nud permanent");
        }
    }
    note(scene, &all);
}

fn cut_and_heal(scene: &Scene, name: &str, network: &mut Network, cut: &str, heal: &str) {
    let mut all = Vec::new();
    for run in 0..runs(2) {
        let (mut pair, primary) = Pair::start(scene, &format!("{name}{run}"), network.setup());
        pair.note("cut", primary);
        network.port(primary, cut);
        pair.await_takeover(1 - primary);
        pair.await_event(primary, "Suspended");
        pair.await_cycles(1 - primary, LASTS);
        pair.note("heal", primary);
        network.port(primary, heal);
        pair.await_event(primary, "Demoted");
        let stays = pair.await_redundancy() == 1 - primary;
        pair.await_cycles(1 - primary, LASTS);
        let (figures, _) = pair.report();
        assert_stayed(stays, &figures);
        all.push(figures);
    }
    note(scene, &all);
}

/// Median and maximum beside their limits, which a busy machine may miss.
fn note(scene: &Scene, all: &[Value]) {
    let of = |name: &str| -> Vec<f64> {
        let mut values: Vec<f64> = all.iter().filter_map(|f| f[name].as_f64()).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let takeovers = of("takeover_us");
    all.iter().for_each(assert_taken_over);
    let (count, last) = (all.len(), summary(&all[all.len() - 1]));
    let measured = match takeovers[..] {
        // As the figures say, which were looked at just now.
        [] => "late before each fault".to_owned(),
        [.., max] => {
            let [median, max] = [takeovers[(takeovers.len() - 1) / 2], max].map(|us| us / 1e3);
            format!("median {median:.1} ms (limit {MEDIAN_MS}), max {max:.1} ms (limit {MAX_MS})")
        }
    };
    scene.note(&format!("{count} runs: {measured}; last: {last}"));
    if let Some(worst) = of("demoted_after_nack_us").last() {
        scene.note(&format!(
            "demoted at most {:.1} ms after a refusal",
            worst / 1e3
        ));
    }
}

/// Three namespaces on a bridge.
#[derive(Debug)]
struct Network {
    /// Of node 0, node 1 and plant.
    ends: [Child; 3],
    orders: ChildStdin,
    _ip: Process,
    _switch: Child,
}

impl Network {
    fn new() -> Self {
        let [switch, node0, node1, plant] =
            [(); 4].map(|()| Child::member_through(&["unshare", "--net"]));
        let ends = [node0, node1, plant];
        let mut command = in_namespace(&switch);
        // It carries out each line when it comes, so that a cut takes no start of a program.
        command
            .args(["ip", "-force", "-batch", "-"])
            .stdin(Stdio::piped());
        let mut ip = Process::start(&mut command);
        let mut orders = ip.take_stdin();
        writeln!(orders, "link add name br0 type bridge\nlink set br0 up").expect("told");
        for (port, end) in ends.iter().enumerate() {
            let pid = end.pid();
            writeln!(
                orders,
                "link add p{port} type veth peer name eth0 netns {pid}\nlink set p{port} master br0 up"
            )
            .expect("told");
        }
        let network = Self {
            ends,
            orders,
            _ip: ip,
            _switch: switch,
        };
        for end in 0..network.ends.len() {
            network.await_interface(end);
            network.ip_in(end, &format!("addr add 10.7.0.{}/24 dev eth0", end + 1));
            network.ip_in(end, "link set eth0 up");
        }
        network
    }

    fn await_interface(&self, end: usize) {
        let what = format!("the interface of end {end}");
        crate::child::await_until(crate::pair::LIMIT, &what, || {
            let mut command = in_namespace(&self.ends[end]);
            let shown = command.args(["ip", "link", "show", "eth0"]).output();
            shown.is_ok_and(|output| output.status.success())
        });
    }

    /// `ip` in an end's namespace.
    fn ip_in(&self, end: usize, order: &str) {
        let mut command = in_namespace(&self.ends[end]);
        let output = command.arg("ip").args(order.split(' ')).output();
        let output = output.expect("ip runs");
        assert!(output.status.success(), "ip {order}: {output:?}");
    }

    /// Sets a port of the bridge.
    fn port(&mut self, port: u8, state: &str) {
        writeln!(self.orders, "link set p{port} {state}").expect("told");
    }

    fn setup(&self) -> Setup {
        let node = |own: u8, other: u8| {
            let own = format!("10.7.0.{}:7010", own + 1);
            let peer = format!("10.7.0.{}:7010", other + 1);
            words(&[
                "--listen",
                &own,
                "--peer",
                &peer,
                "--actuator",
                "10.7.0.3:7000",
            ])
        };
        let wrapper = |end: usize| {
            let namespace = format!("--net=/proc/{}/ns/net", self.ends[end].pid());
            words(&["nsenter", &namespace])
        };
        Setup {
            plant: words(&["--listen", "10.7.0.3:7000"]),
            nodes: [node(0, 1), node(1, 0)],
            wrappers: [wrapper(2), wrapper(0), wrapper(1)],
            ..Setup::default()
        }
    }
}

fn in_namespace(end: &Child) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{}/ns/net", end.pid()));
    command
}
