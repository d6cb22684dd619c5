//! Boxes of an election, a barrier, a standby pair and its actuator: what they count and what they tell.

use std::time::Duration;

use bumpless_barrier::EpochBarrier;
use bumpless_election::{Leadership, SharedLeaderElection};
use bumpless_failover::FailoverWatchdog;
use bumpless_heartbeat::{Label, Profile};
use bumpless_sidecar::{
    ActuatorOp, AdaptiveInstance, BarrierOp, ElectionOp, Event, EventKind, FixedPolicy, FlapGuard,
    FlapLimits, NodeOp, Scanner, SidecarBox, TableOp,
};
use bumpless_standby::authority::{Authority, LocalFile};
use bumpless_standby::message::{Action, Received, Request};
use bumpless_standby::persist::FileStore;
use bumpless_standby::{
    Actuator, ActuatorConfig, Checkpoint, CheckpointError, Config, Controller, Epoch, Node, NodeId,
};

use crate::scene::{Events, Scene, die, register};

#[test]
fn an_election_tells_each_leader_once_as_this_process_sees_it() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(4);
    let worker = Profile {
        label: Label::new("worker").expect("short"),
        ..Profile::default()
    };
    let low = table
        .register_as(std::process::id(), worker)
        .expect("a slot");
    let high = register(&table);
    let election = events.of(SharedLeaderElection::open(&table, "job").expect("a name"));
    let mut scanner = Scanner::new();
    let id = scanner.register(&election);

    let Ok(Leadership::Mine(token)) = election.try_claim_leadership(low) else {
        panic!("nobody else stands");
    };
    assert!(matches!(
        election.try_claim_leadership(high),
        Ok(Leadership::Theirs(_))
    ));
    for _ in 0..5 {
        assert_eq!(election.beat_as_leader(low).expect("in force"), Some(token));
    }
    assert_eq!(election.current_leader().map(|leader| leader.term), Some(1));
    let told = events.take();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].kind, told[0].value), (EventKind::LeaderChanged, 1));
    assert_eq!(
        (told[0].slot, told[0].generation),
        (low.slot() as u32, low.generation())
    );
    let table_id = table.creation_id();
    assert_eq!((told[0].label, told[0].table_id), (worker.label, table_id));

    die(&table, low);
    let Ok(Leadership::Mine(next)) = election.try_claim_leadership(high) else {
        panic!("the leader died");
    };
    assert!(election.step_down(high).expect("in force"));
    let told = events.take();
    let seen: Vec<_> = told.iter().map(|event| (event.slot, event.value)).collect();
    assert_eq!(
        seen,
        [
            (high.slot() as u32, next.term()),
            (Event::NO_SLOT, next.term())
        ]
    );

    scanner.scan(1);
    let stats = scanner.stats(id).expect("registered");
    let claims = stats.op(ElectionOp::Claim);
    assert_eq!((claims.count, claims.contended), (3, 1));
    assert_eq!(stats.op(ElectionOp::Beat).count, 5);
}

#[test]
fn a_barrier_tells_each_release_with_its_epoch_and_counts_who_gave_up() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(4);
    let (one, other) = (register(&table), register(&table));
    let barrier = events.of(EpochBarrier::create(&table, "phase").expect("a name"));
    let mut scanner = Scanner::new();
    let id = scanner.register(&barrier);
    let mut member = barrier.join(one).expect("a member");
    for _ in 0..3 {
        member.wait().expect("alone");
    }
    let second = barrier.join(other).expect("a member");
    member
        .wait()
        .expect("the other is waited for from the next one on");
    let given_up = member.wait_timeout(Duration::from_millis(1));
    assert!(given_up.is_err());
    drop(second);
    let told = events.take();
    let epochs: Vec<_> = told
        .iter()
        .map(|event| (event.kind.name(), event.value))
        .collect();
    assert_eq!(
        (told[0].generation, told[0].table_id),
        (one.generation(), table.creation_id())
    );
    let wanted = [1, 2, 3, 4].map(|epoch| ("barrier_released", epoch));
    assert_eq!(epochs, wanted);
    assert_eq!(barrier.epoch(), 5);
    scanner.scan(1);
    let stats = scanner.stats(id).expect("registered");
    let waits = stats.op(BarrierOp::Wait);
    assert_eq!(
        (waits.count, waits.contended, waits.latency.timed),
        (5, 1, 5)
    );
    assert!(waits.latency.max_ns >= 1_000_000);
    assert_eq!(stats.op(BarrierOp::Join).count, 2);
}

/// Adds its input in every cycle.
#[derive(Clone, Debug)]
struct Integrator(i64);

impl Checkpoint for Integrator {
    fn schema(&self) -> u64 {
        1
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.0.to_le_bytes());
    }

    fn decode(&self, bytes: &[u8]) -> Result<Self, CheckpointError> {
        let found = bytes.len();
        let sum = bytes
            .try_into()
            .map_err(|_| CheckpointError::Length { found, wanted: 8 })?;
        Ok(Self(i64::from_le_bytes(sum)))
    }

    fn check(&self) -> Result<(), CheckpointError> {
        Ok(())
    }
}

impl Controller for Integrator {
    type Input = i64;
    type Output = i64;

    fn step(&mut self, input: &i64) {
        self.0 += input;
    }

    fn output(&self) -> i64 {
        self.0
    }

    fn input_digest(input: &i64) -> u32 {
        *input as u32
    }
}

const PERIOD_NS: u64 = 10_000_000;
const IDS: [NodeId; 2] = [NodeId(0), NodeId(1)];

/// A pair whose nodes and plant are all observed.
struct Pair {
    nodes: Vec<SidecarBox<Node<Integrator>>>,
    authorities: Vec<LocalFile<FileStore>>,
    actuator: SidecarBox<Actuator<i64>>,
    level: FileStore,
    arrived: [Vec<Received>; 2],
    last_request: Option<Request<i64>>,
}

impl Pair {
    fn new(scene: &Scene, events: &Events) -> Self {
        let mut level = FileStore::new(scene.path("level"));
        let plant = ActuatorConfig {
            cluster: 7,
            nodes: IDS,
            epoch_jump_max: 1_024,
        };
        let mut actuator = Actuator::start(plant, 99, 0, &mut level).expect("no memory yet");
        actuator
            .commission(Epoch::NONE, &mut level)
            .expect("a file");
        let node = |own: usize| {
            let config = Config::new(7, IDS[own], IDS[1 - own], PERIOD_NS);
            events.of(Node::new(config, 10 + own as u64, Integrator(0)).expect("sound"))
        };
        let authority = |own: &str| LocalFile::new(FileStore::new(scene.path(own)));
        Self {
            nodes: vec![node(0), node(1)],
            authorities: vec![authority("0"), authority("1")],
            actuator: events.of(actuator),
            level,
            arrived: [vec![], vec![]],
            last_request: None,
        }
    }

    /// One cycle of those nodes that live.
    fn cycle(&mut self, cycle: u64, living: &[usize]) {
        let now_ns = cycle * PERIOD_NS;
        let heard = std::mem::take(&mut self.arrived);
        for own in living.iter().copied() {
            let tick = self.nodes[own].tick(now_ns, cycle, &10, &heard[own]);
            if let Some(heartbeat) = tick.heartbeat {
                self.arrived[1 - own].push(Received::Heartbeat { path: 0, heartbeat });
            }
            if let Some(request) = tick.request {
                let reply = self.actuator.receive(now_ns, &request, &mut self.level);
                self.arrived[own].extend(reply.map(Received::Reply));
                if own == 0 && matches!(request.action, Action::Drive(_)) {
                    self.last_request = Some(request);
                }
            }
            if let Some(above) = tick.ballot_wanted {
                self.authorities[own].want(IDS[own], above);
                let grant = self.authorities[own].poll();
                self.arrived[own].extend(grant.map(Received::Grant));
            }
        }
    }
}

#[test]
fn a_pair_tells_its_takeover_in_its_own_time_and_the_plant_tells_what_it_refused() {
    let (scene, events) = (Scene::new(), Events::default());
    let mut pair = Pair::new(&scene, &events);
    let mut scanner = Scanner::new();
    let standby = scanner.register(&pair.nodes[1]);
    let plant = scanner.register(&pair.actuator);
    (1..50).for_each(|cycle| pair.cycle(cycle, &[0, 1]));
    let told = events.take();
    let names: Vec<_> = told
        .iter()
        .map(|event| (event.kind.name(), event.slot))
        .collect();
    for wanted in [
        ("promoted", 0),
        ("qualified", 1),
        ("redundancy_restored", 0),
    ] {
        assert!(names.contains(&wanted), "{wanted:?} in {names:?}");
    }
    (50..60).for_each(|cycle| pair.cycle(cycle, &[1]));
    let told = events.take();
    let promoted = told
        .iter()
        .find(|event| event.kind == EventKind::Promoted)
        .expect("a takeover");
    assert_eq!((promoted.slot, promoted.time_ns), (1, 53 * PERIOD_NS));
    assert_eq!(promoted.detail & 0xff, 1, "the epoch's owner");
    assert!(
        told.iter()
            .any(|event| event.kind == EventKind::RedundancyLost)
    );

    // The old primary wakes up, and says once more what it said last.
    let request = pair.last_request.take().expect("it drove");
    let reply = pair
        .actuator
        .receive(61 * PERIOD_NS, &request, &mut pair.level);
    assert!(reply.is_some());
    let told = events.take();
    assert_eq!(told.len(), 1);
    assert_eq!(
        (told[0].kind, told[0].slot),
        (EventKind::StaleOutputRefused, 0)
    );
    assert_eq!(
        (told[0].value, told[0].time_ns),
        (request.epoch.counter(), 61 * PERIOD_NS)
    );

    scanner.scan(1);
    let stats = scanner.stats(standby).expect("registered");
    assert_eq!(
        (
            stats.op(NodeOp::Tick).count,
            stats.op(NodeOp::RoleChange).count
        ),
        (59, 1)
    );
    let drives = scanner
        .stats(plant)
        .expect("registered")
        .op(ActuatorOp::Drive);
    assert!(drives.count > 40 && drives.contended >= 1, "{drives:?}");
}

#[test]
fn a_hold_off_that_a_policy_asks_for_holds_the_next_takeover_off() {
    let (scene, events) = (Scene::new(), Events::default());
    let mut pair = Pair::new(&scene, &events);
    let mut scanner = Scanner::new();
    scanner.register_with(&pair.nodes[1], Box::new(FixedPolicy(5)));
    (1..50).for_each(|cycle| pair.cycle(cycle, &[0, 1]));
    scanner.scan(1);
    assert_eq!(pair.nodes[1].header().tag(), 5);
    pair.cycle(50, &[0, 1]);
    events.take();
    (51..70).for_each(|cycle| pair.cycle(cycle, &[1]));
    let told = events.take();
    let promoted = told
        .iter()
        .find(|event| event.kind == EventKind::Promoted)
        .expect("a takeover");
    // Three silent cycles, and five more.
    assert_eq!(promoted.time_ns, (54 + 5) * PERIOD_NS);
}

#[test]
fn a_flap_guard_around_a_node_counts_its_roles_by_itself() {
    let (scene, events) = (Scene::new(), Events::default());
    let mut pair = Pair::new(&scene, &events);
    let mut scanner = Scanner::new();
    let limits = FlapLimits {
        raise_points: 0.5,
        ..FlapLimits::default()
    };
    scanner.register_with(&pair.nodes[0], Box::new(FlapGuard::new(limits)));
    (1..50).for_each(|cycle| pair.cycle(cycle, &[0, 1]));
    assert_eq!(scanner.scan(50 * PERIOD_NS).migrations, 1);
    assert_eq!(pair.nodes[0].header().tag(), 2);
}

#[test]
fn things_that_share_instruments_are_one_instance() {
    let (scene, events) = (Scene::new(), Events::default());
    let table = scene.table(4);
    let observed = events.of(&table);
    let shared = std::sync::Arc::clone(observed.instruments());
    let watchdog = SidecarBox::with_instruments(FailoverWatchdog::with_grace(&table, 3), shared);
    let _ = observed.register(std::process::id()).expect("a slot");
    let _ = watchdog.scan();
    let told = events.take();
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].instance, told[1].instance);
    assert_eq!(observed.ring().counts().pushed, 2);
    assert_eq!(TableOp::name_of(0), Some("beat"));
}
