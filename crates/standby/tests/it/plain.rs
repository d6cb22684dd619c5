//! The plain form: its three described results, its ends, and two of the faults that its docs name.

use bumpless_standby::plain::{Actuator, Heartbeat, Node, Output, Role};

const MISS_LIMIT: u32 = 3;

fn input(cycle: i64) -> i64 {
    cycle % 7 - 2
}

/// What a loop that was never interrupted has summed up after this cycle.
fn ideal(cycle: i64) -> i64 {
    (1..=cycle).map(input).sum()
}

/// Two nodes in lockstep: what one sends in a cycle reaches the other in the next.
struct Pair {
    nodes: [Option<Node>; 2],
    sent: [Option<Heartbeat>; 2],
    is_linked: bool,
    actuator: Actuator,
    cycle: i64,
    /// Every output, with its cycle, its node and whether it passed the gate.
    outputs: Vec<(i64, usize, Output, bool)>,
}

impl Pair {
    fn new() -> Self {
        Self::of([Role::Primary, Role::Backup])
    }

    fn of([one, other]: [Role; 2]) -> Self {
        Self {
            nodes: [
                Some(Node::new(0, one, MISS_LIMIT)),
                Some(Node::new(1, other, MISS_LIMIT)),
            ],
            sent: [None; 2],
            is_linked: true,
            actuator: Actuator::default(),
            cycle: 0,
            outputs: vec![],
        }
    }

    fn run_up_to(&mut self, last: i64) {
        while self.cycle < last {
            self.cycle += 1;
            let arrived = std::mem::take(&mut self.sent);
            for index in [0, 1] {
                let Some(node) = &mut self.nodes[index] else {
                    continue;
                };
                let received = arrived[1 - index].filter(|_| self.is_linked);
                let (heartbeat, output) = node.tick(input(self.cycle), received);
                self.sent[index] = heartbeat;
                if let Some(output) = output {
                    let passed = self.actuator.drive(output);
                    self.outputs.push((self.cycle, index, output, passed));
                }
            }
        }
    }

    fn node(&self, index: usize) -> &Node {
        self.nodes[index].as_ref().unwrap()
    }

    fn first_output_of(&self, index: usize) -> (i64, Output) {
        let first = self.outputs.iter().find(|(_, node, ..)| *node == index);
        first
            .map(|(cycle, _, output, _)| (*cycle, *output))
            .unwrap()
    }
}

#[test]
fn a_primary_that_dies_at_cycle_50_is_replaced_at_53_by_the_ideal_integral() {
    let mut pair = Pair::new();
    pair.run_up_to(49);
    pair.nodes[0] = None;
    pair.run_up_to(60);
    let value = ideal(53);
    assert_eq!(pair.first_output_of(1), (53, Output { epoch: 1, value }));
    assert_eq!(pair.actuator.last.unwrap().value, ideal(60));
    assert_eq!(pair.actuator.rejected, 0);
}

#[test]
fn a_restarted_node_follows_and_ends_with_the_same_state() {
    let mut pair = Pair::new();
    pair.run_up_to(49);
    pair.nodes[0] = None;
    pair.run_up_to(80);
    pair.nodes[0] = Some(Node::new(0, Role::Backup, MISS_LIMIT));
    pair.run_up_to(100);
    assert_eq!(pair.node(0).role, Role::Backup);
    assert_eq!(pair.node(1).role, Role::Primary);
    assert_eq!(pair.node(0).epoch, 1);
    assert_eq!([pair.node(0).state, pair.node(1).state], [ideal(100); 2]);
}

#[test]
fn a_cut_link_ends_with_one_primary_and_the_outputs_of_the_old_one_are_refused() {
    let mut pair = Pair::new();
    pair.run_up_to(49);
    pair.is_linked = false;
    pair.run_up_to(70);
    assert_eq!([pair.node(0).role, pair.node(1).role], [Role::Primary; 2]);
    pair.is_linked = true;
    pair.run_up_to(80);
    assert_eq!(pair.node(0).role, Role::Backup);
    assert_eq!(pair.node(1).role, Role::Primary);
    assert_eq!(pair.node(0).state, ideal(80));
    let (takeover, _) = pair.first_output_of(1);
    for (cycle, index, _, passed) in &pair.outputs {
        let is_current = *index == 1 || *cycle <= takeover;
        assert_eq!(*passed, is_current, "node {index} in cycle {cycle}");
    }
    // From the takeover to the heartbeat behind the heal.
    assert_eq!(pair.actuator.rejected, 70 - takeover as u32);
}

#[test]
fn on_equal_epochs_the_lower_id_stays_primary() {
    let mut pair = Pair::of([Role::Primary; 2]);
    pair.run_up_to(2);
    assert_eq!(pair.node(0).role, Role::Primary);
    assert_eq!(pair.node(1).role, Role::Backup);
}

#[test]
fn nothing_overflows_and_the_last_epoch_promotes_nobody() {
    let mut node = Node::new(1, Role::Backup, MISS_LIMIT);
    let state = i64::MAX;
    let last = Heartbeat {
        id: 0,
        epoch: u32::MAX,
        state,
    };
    assert_eq!(node.tick(1, Some(last)), (None, None));
    for _ in 0..2 * MISS_LIMIT {
        assert_eq!(node.tick(1, None), (None, None));
    }
    assert_eq!((node.role, node.epoch), (Role::Backup, u32::MAX));
    assert_eq!(node.state, i64::MAX);
    let mut sinking = Node::new(0, Role::Primary, MISS_LIMIT);
    sinking.tick(i64::MIN, None);
    let (_, output) = sinking.tick(-1, None);
    assert_eq!(output.map(|output| output.value), Some(i64::MIN));
}

#[test]
fn as_documented_in_f1_two_that_start_in_silence_both_drive_under_one_epoch() {
    let mut pair = Pair::of([Role::Backup; 2]);
    pair.is_linked = false;
    pair.run_up_to(3);
    let both: Vec<_> = pair
        .outputs
        .iter()
        .map(|(_, node, output, passed)| (*node, output.epoch, *passed))
        .collect();
    assert_eq!(both, [(0, 1, true), (1, 1, true)]);
    pair.run_up_to(100);
    assert_eq!(pair.actuator.rejected, 0);
}

#[test]
fn as_documented_in_f4_and_f5_an_old_heartbeat_delays_the_takeover_and_sets_the_state_back() {
    let mut pair = Pair::new();
    pair.run_up_to(20);
    let old = pair.sent[0];
    pair.run_up_to(49);
    pair.nodes[0] = None;
    // Every second cycle the network delivers what was sent at cycle 20, up to cycle 90.
    for cycle in 50..100 {
        pair.sent[0] = old.filter(|_| cycle % 2 == 0 && cycle <= 90);
        pair.run_up_to(cycle);
    }
    let (takeover, output) = pair.first_output_of(1);
    assert_eq!(takeover, 93, "instead of 53");
    assert_eq!(output.value, ideal(20) + (90..=93).map(input).sum::<i64>());
    assert_ne!(output.value, ideal(93));
}

#[test]
fn as_documented_in_f8_a_pair_that_restarts_behind_its_gate_is_refused_for_ever() {
    let mut pair = Pair::new();
    pair.run_up_to(49);
    pair.nodes[0] = None;
    pair.run_up_to(60);
    let gate = std::mem::take(&mut pair.actuator);
    let mut repowered = Pair::new();
    repowered.actuator = gate;
    repowered.run_up_to(1000);
    assert_eq!(repowered.actuator.rejected, 1000);
}
