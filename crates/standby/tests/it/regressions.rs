//! What the model of the pair has found, each as the shortest run that shows it.

use std::collections::VecDeque;

use bumpless_standby::authority::{Authority, LocalFile};
use bumpless_standby::event::Event;
use bumpless_standby::message::{Grant, Heartbeat, Received, Refusal, Reply, Standing, Verdict};
use bumpless_standby::persist::{Store, StoreError};
use bumpless_standby::{
    Checkpoint, CheckpointError, Command, Config, Controller, Epoch, Node, NodeId, Tick,
};

const PERIOD_NS: u64 = 1_000_000;

/// Its state is the last cycle whose input it has read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Latest(u64);

impl Checkpoint for Latest {
    fn schema(&self) -> u64 {
        1
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0.to_le_bytes());
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let bytes = bytes.try_into().map_err(|_| CheckpointError::Length {
            found: bytes.len(),
            wanted: 8,
        })?;
        Ok(Self(u64::from_le_bytes(bytes)))
    }

    fn check(&self) -> Result<(), CheckpointError> {
        Ok(())
    }
}

impl Controller for Latest {
    type Input = u64;
    type Output = u64;

    fn step(&mut self, input: &u64) {
        self.0 = *input;
    }

    fn output(&self) -> u64 {
        self.0
    }

    fn input_digest(input: &u64) -> u32 {
        *input as u32
    }
}

#[derive(Default)]
struct Memory(Option<Vec<u8>>);

impl Store for Memory {
    fn load(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.0.clone())
    }

    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.0 = Some(bytes.to_vec());
        Ok(())
    }
}

/// A node with its authority; no actuator: the lease is longer than the run.
struct Seat {
    node: Node<Latest>,
    file: LocalFile<Memory>,
    cycle: u64,
    grant: Option<Grant>,
}

impl Seat {
    fn new(index: u8) -> Self {
        let mut config = Config::new(1, NodeId(index), NodeId(1 - index), PERIOD_NS);
        config.miss_limit = 20;
        config.lease_cycles = 19;
        config.history_cycles = 32;
        config.path_silent_max = 20;
        config.probe_cycles = 0;
        config.full_every = 1;
        Self {
            node: Node::new(config, u64::from(index) + 1, Latest(0)).unwrap(),
            file: LocalFile::new(Memory::default()),
            cycle: 0,
            grant: None,
        }
    }

    fn tick(&mut self, heard: Option<&Heartbeat>) -> Tick<u64> {
        let heartbeat = heard.map(|heartbeat| Received::Heartbeat {
            path: 0,
            heartbeat: heartbeat.clone(),
        });
        self.tick_with(heartbeat)
    }

    fn tick_with(&mut self, heard: Option<Received>) -> Tick<u64> {
        self.cycle += 1;
        let grant = self.grant.take().map(|grant| Received::Grant(Ok(grant)));
        let received: Vec<_> = grant.into_iter().chain(heard).collect();
        let now_ns = self.cycle * PERIOD_NS;
        let tick = self.node.tick(now_ns, self.cycle, &self.cycle, &received);
        if let Some(above) = tick.ballot_wanted {
            self.file.want(self.node.config().node, above);
            self.grant = self.file.poll().and_then(Result::ok);
        }
        tick
    }
}

/// A primary and a qualified standby, and the heartbeat that each last sent.
fn risen() -> ([Seat; 2], [Heartbeat; 2]) {
    let mut seats = [Seat::new(0), Seat::new(1)];
    let mut last: [Option<Heartbeat>; 2] = [None, None];
    for _ in 0..40 {
        for index in 0..2 {
            let heard = last[1 - index].clone();
            last[index] = seats[index].tick(heard.as_ref()).heartbeat;
        }
        if let [Some(one), Some(other)] = &last
            && (one.standing, other.standing) == (Standing::Primary, Standing::Qualified)
        {
            let last = [one.clone(), other.clone()];
            return (seats, last);
        }
    }
    panic!("a healthy pair did not rise: {last:?}");
}

fn assert_state_is_of_its_cycle(heartbeat: &Heartbeat) {
    let part = heartbeat.part.as_ref().expect("a primary sends its state");
    let bytes: [u8; 8] = part.bytes.as_slice().try_into().unwrap();
    assert_eq!(u64::from_le_bytes(bytes), heartbeat.seq);
}

#[test]
fn who_takes_over_in_the_cycle_of_the_state_it_adopted_sends_that_state() {
    let ([mut primary, mut standby], [_, mut heard]) = risen();
    primary.tick(Some(&heard));
    standby.tick(None);
    primary.node.command(Command::SwitchOver).unwrap();
    for _ in 0..5 {
        let asks = primary.tick(Some(&heard)).heartbeat.unwrap();
        heard = standby.tick(Some(&asks)).heartbeat.unwrap();
        if heard.standing == Standing::Primary {
            break;
        }
    }
    assert_eq!(heard.standing, Standing::Primary);
    assert_state_is_of_its_cycle(&heard);
}

#[test]
fn who_takes_over_with_a_state_of_a_later_cycle_sends_none_until_that_cycle() {
    let ([mut primary, mut standby], [_, heard]) = risen();
    primary.tick(Some(&heard));
    primary.node.command(Command::SwitchOver).unwrap();
    primary.tick(None);
    let ahead = primary.tick(None).heartbeat.unwrap();
    let lead = ahead.seq - standby.cycle;
    assert!(lead >= 2, "the primary leads by {lead} cycles");

    let mut sent = standby.tick(Some(&ahead)).heartbeat.unwrap();
    assert_eq!(sent.standing, Standing::Primary);
    while sent.seq < ahead.seq {
        assert_eq!(
            sent.part, None,
            "its state is of cycle {}, not {}",
            ahead.seq, sent.seq
        );
        sent = standby.tick(None).heartbeat.unwrap();
    }
    assert_state_is_of_its_cycle(&sent);
    let next = standby.tick(None).heartbeat.unwrap();
    assert_state_is_of_its_cycle(&next);
}

/// What an actuator tells ends the only primary, and nobody else drives: both nodes hold its state.
/// `lead` cycles of the standby are run before the other node's next one; each heartbeat is heard so
/// many rounds after it was sent: 0 is the same round.
fn starts_of_a_pair_without_a_primary(lead: u64, latency: usize) -> Vec<NodeId> {
    let ([mut primary, mut standby], [_, heard]) = risen();
    primary.tick(Some(&heard));
    let refused = Received::Reply(Reply {
        cluster: 1,
        node: NodeId(0),
        incarnation: 1,
        actuator: 9,
        epoch: Epoch::new(1, NodeId(0)),
        seq: primary.cycle,
        level: Epoch::new(4, NodeId(1)),
        last_seq: 1,
        verdict: Verdict::Nack(Refusal::Superseded),
    });
    let sent = primary.tick_with(Some(refused)).heartbeat;
    assert_eq!(
        sent.as_ref().map(|sent| sent.standing),
        Some(Standing::Init)
    );
    for _ in 0..lead {
        standby.tick(sent.as_ref());
    }
    let mut seats = [primary, standby];
    let mut sent = [VecDeque::new(), VecDeque::new()];
    let mut starts = Vec::new();
    let mut rounds_since = 0;
    // Well within the lease: there is no actuator here.
    while rounds_since < 10 && seats[0].cycle < 100 {
        rounds_since += usize::from(!starts.is_empty());
        for index in 0..2 {
            // The node that runs second hears the first one's word of this round.
            let waits = if index == 1 {
                latency
            } else {
                latency.max(1) - 1
            };
            let is_due = sent[1 - index].len() > waits;
            let heard = if is_due {
                sent[1 - index].pop_front()
            } else {
                None
            };
            let tick = seats[index].tick(heard.as_ref());
            let promoted = |event: &Event| matches!(event, Event::Promoted { .. });
            if tick.events.iter().any(promoted) {
                starts.push(seats[index].node.config().node);
            }
            sent[index].extend(tick.heartbeat);
        }
    }
    starts
}

#[test]
fn a_pair_without_a_primary_starts_exactly_one_in_every_phase() {
    for (lead, latency) in (0..4).flat_map(|lead| (0..4).map(move |latency| (lead, latency))) {
        let starts = starts_of_a_pair_without_a_primary(lead, latency);
        assert_eq!(
            starts.len(),
            1,
            "ahead by {lead}, latency {latency}: {starts:?}"
        );
    }
}
