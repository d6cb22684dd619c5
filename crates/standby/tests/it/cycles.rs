//! Cycles and their numbers: the same input for the same number, and nodes that count otherwise.

use bumpless_standby::authority::{Authority, LocalFile};
use bumpless_standby::drive::NodeDriver;
use bumpless_standby::frame::encode_sample;
use bumpless_standby::link::{Link, LinkCounts};
use bumpless_standby::message::{
    Action, Fragment, Part, PartKind, Received, Reply, Sample, Verdict,
};
use bumpless_standby::node::State;
use bumpless_standby::{Checkpoint, Command, Config, Mode, Node, Tick};

use crate::plant::{A, B, Memory};
use crate::sim::loops::{Integrator, Plant, Ramp};

const PERIOD_NS: u64 = 10_000_000;

/// What it was given to deliver.
#[derive(Debug, Default)]
struct Given(Vec<Vec<u8>>);

impl Link for Given {
    fn send(&mut self, _: &[u8]) {}

    fn receive(&mut self, frame: &mut Vec<u8>) -> Option<u8> {
        *frame = self.0.pop()?;
        Some(0)
    }

    fn counts(&self) -> LinkCounts {
        LinkCounts::default()
    }
}

/// A driver that has heard the samples of these cycles, whose values are their cycles'.
fn driver_with(cycles: &[u64]) -> NodeDriver<Integrator, Given, Given, LocalFile<Memory>> {
    let samples = cycles.iter().rev().map(|cycle| {
        let mut frame = Vec::new();
        let sample = Sample {
            cluster: 7,
            actuator: 9,
            cycle: *cycle,
            value: *cycle as i64,
        };
        encode_sample(&sample, &mut frame);
        frame
    });
    let node = Node::new(Config::new(7, A, B, PERIOD_NS), 1, Ramp::new().controller()).unwrap();
    let actuator = Given(samples.collect());
    let authority = LocalFile::new(Memory::default());
    let mut driver = NodeDriver::new(node, Given::default(), actuator, authority);
    driver.hear();
    driver
}

#[test]
fn the_input_of_a_cycle_is_the_sample_of_the_one_before_also_when_later_ones_have_come() {
    for heard in [
        &[48, 49][..],
        &[48, 49, 50],
        &[50, 49, 48, 51],
        &[49, 49, 50],
    ] {
        let driver = driver_with(heard);
        let input = driver.sample_before(50).map(|sample| sample.value);
        assert_eq!(input, Some(49), "{heard:?}");
    }
    let driver = driver_with(&[48]);
    assert_eq!(
        driver.sample_before(50).map(|sample| sample.value),
        Some(48)
    );
    assert_eq!(driver.sample_before(48), None);
    assert_eq!(driver.plant_cycle(), Some(48));
}

/// A pair that ticks in step, each node from a number of its own; the first is primary.
struct Apart {
    nodes: [Node<Integrator>; 2],
    files: [LocalFile<Memory>; 2],
    arrived: [Vec<Received>; 2],
    first_cycles: [u64; 2],
    step: u64,
}

impl Apart {
    fn new(mode: Mode, first_cycles: [u64; 2]) -> Self {
        let node = |own, partner, life| {
            let mut config = Config::new(7, own, partner, PERIOD_NS);
            config.probe_cycles = 0;
            config.mode = mode;
            // Found silent by nobody before it falls silent.
            (
                config.miss_limit,
                config.lease_cycles,
                config.history_cycles,
            ) = (100, 99, 101);
            config.path_silent_max = 100;
            Node::new(config, life, Ramp::new().controller()).unwrap()
        };
        let mut nodes = [node(A, B, 1), node(B, A, 2)];
        nodes[0].command(Command::Promote).unwrap();
        Self {
            nodes,
            files: [Memory::default(), Memory::default()].map(LocalFile::new),
            arrived: [vec![], vec![]],
            first_cycles,
            step: 0,
        }
    }

    fn tick(&mut self, index: usize, step: u64) -> Tick<i64> {
        let heard = std::mem::take(&mut self.arrived[index]);
        let cycle = self.first_cycles[index] + step;
        let node = &mut self.nodes[index];
        let tick = node.tick(step * PERIOD_NS, cycle, &10, &heard);
        if let Some(request) = &tick.request {
            self.arrived[index].push(Received::Reply(Reply {
                cluster: request.cluster,
                node: request.node,
                incarnation: request.incarnation,
                actuator: 9,
                epoch: request.epoch,
                seq: request.seq,
                level: request.epoch,
                last_seq: request.seq,
                verdict: Verdict::Ack,
            }));
        }
        if let Some(above) = tick.ballot_wanted {
            self.files[index].want(node.config().node, above);
            self.arrived[index].extend(self.files[index].poll().map(Received::Grant));
        }
        tick
    }
}

impl Apart {
    /// The standby's state after so many cycles of both, of which the first stays primary.
    fn standby_after(&mut self, cycles: u64) -> State {
        self.run(cycles);
        assert!(matches!(
            self.nodes[0].state(),
            State::Primary | State::Solo
        ));
        self.nodes[1].state()
    }

    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step += 1;
            let step = self.step;
            for index in [0, 1] {
                let heartbeat = self.tick(index, step).heartbeat.unwrap();
                self.arrived[1 - index].push(Received::Heartbeat { path: 0, heartbeat });
            }
        }
    }

    /// The outputs of the standby, which hears nothing any more.
    fn outputs_alone(&mut self, cycles: u64) -> Vec<i64> {
        self.arrived[1].clear();
        let steps = self.step + 1..=self.step + cycles;
        let ticks = steps.map(|step| self.tick(1, step));
        let actions = ticks.filter_map(|tick| tick.request.map(|request| request.action));
        actions
            .filter_map(|action| match action {
                Action::Drive(value) => Some(value),
                _ => None,
            })
            .collect()
    }
}

#[test]
fn a_hot_standby_that_counts_otherwise_than_its_primary_is_never_qualified() {
    for first_cycles in [[1_000_000, 0], [0, 1_000_000], [5_000, 0], [0, 5_000]] {
        let mut pair = Apart::new(Mode::Hot, first_cycles);
        assert_eq!(pair.standby_after(300), State::Syncing, "{first_cycles:?}");
    }
    for first_cycles in [[500, 500], [502, 500], [500, 502]] {
        let mut pair = Apart::new(Mode::Hot, first_cycles);
        assert_eq!(
            pair.standby_after(300),
            State::Qualified,
            "{first_cycles:?}"
        );
    }
}

#[test]
fn the_loop_of_a_new_primary_runs_in_every_cycle_however_far_ahead_the_old_one_counted() {
    for first_cycles in [[1_000_000, 0], [0, 1_000_000], [500, 500]] {
        let mut pair = Apart::new(Mode::Warm, first_cycles);
        assert_eq!(
            pair.standby_after(300),
            State::Qualified,
            "{first_cycles:?}"
        );
        let outputs = pair.outputs_alone(150);
        assert!(outputs.len() > 40, "{first_cycles:?}: {outputs:?}");
        assert!(
            outputs.windows(2).all(|two| two[1] == two[0] + 10),
            "{outputs:?}"
        );
    }
}

#[test]
fn a_fragment_of_an_absurd_cycle_hides_nothing_that_comes_after_it() {
    let mut pair = Apart::new(Mode::Hot, [500, 500]);
    assert_eq!(pair.standby_after(100), State::Qualified);
    let mut bytes = Vec::new();
    Ramp::new().controller().encode(&mut bytes);
    let part = Part {
        kind: PartKind::Full,
        total_len: bytes.len() as u32,
        offset: 0,
        state_digest: crc32c::crc32c(&bytes),
        bytes,
    };
    let fragment = Fragment {
        cluster: 7,
        node: A,
        incarnation: 1,
        epoch: pair.nodes[0].status().epoch,
        seq: u64::MAX,
        schema: pair.nodes[0].controller().schema(),
        part,
    };
    pair.arrived[1].push(Received::Fragment { path: 0, fragment });
    assert_eq!(pair.standby_after(400), State::Qualified);
    assert_eq!(pair.nodes[1].status().counts.implausible, 1);
    assert!(pair.nodes[1].adopted().1 >= 990);
}

#[test]
fn a_primary_that_leaves_is_out_of_service_also_when_its_successor_is_heard_first() {
    let mut pair = Apart::new(Mode::Hot, [500, 500]);
    assert_eq!(pair.standby_after(100), State::Qualified);
    pair.nodes[0].command(Command::Leave).unwrap();
    // The second node ticks between two ticks of the first one.
    pair.run(50);
    let states = [&pair.nodes[0], &pair.nodes[1]].map(Node::state);
    assert_eq!(states, [State::Maintenance, State::Solo]);
}
